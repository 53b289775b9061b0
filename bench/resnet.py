"""The layers of ResNet-50, for benchmarks on a GPU that call them in ways of their own."""

import torch.nn.functional as F
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, a, width, stride):
        super().__init__()
        b = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(a, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, b, 1, bias=False),
            nn.BatchNorm2d(b),
        )
        self.skip = (
            nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))
            if a != b or stride > 1
            else nn.Identity()
        )

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet50Layers(nn.Module):
    """Stem, blocks and head."""

    def __init__(self, depths=(3, 4, 6, 3)):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks, a = nn.ModuleList(), 64
        for i, depth in enumerate(depths):
            for j in range(depth):
                self.blocks.append(Bottleneck(a, 64 << i, 2 if i and not j else 1))
                a = 4 * (64 << i)
        self.head = nn.Linear(a, 1000)
