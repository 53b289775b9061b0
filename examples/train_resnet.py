"""A ResNet within a memory budget by Checkpointable: the model must be an nn.Sequential, and nothing else changes, not
one bit of the result.
Usage: python examples/train_resnet.py [BUDGET] [STEPS]      (default: 50% of what keep-all needs, 10 steps)"""

import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn

import remat.torch


class Residual(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(c_out),
        )
        self.shortcut = nn.Identity() if c_in == c_out and stride == 1 else nn.Conv2d(c_in, c_out, 1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(depth=3, classes=4):
    layers, c_in = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for width in (16, 32, 64):
        layers.append(
            nn.Sequential(
                *(Residual(c_in if i == 0 else width, width, 2 if i == 0 and width > 16 else 1) for i in range(depth))
            )
        )
        c_in = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(c_in, classes))


def batch(n, device):
    """Waves in four directions, in noise: which direction?"""
    labels = torch.randint(4, (n,))
    angle = labels * torch.pi / 4
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    waves = torch.sin(0.8 * (x * angle.cos().view(n, 1, 1) + y * angle.sin().view(n, 1, 1)))
    return (waves.unsqueeze(1) + 0.5 * torch.randn(n, 3, 32, 32)).to(device), labels.to(device)


def train(model, steps, device):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        images, labels = batch(32, device)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    budget, steps = sys.argv[1] if len(sys.argv) > 1 else "50%", int(sys.argv[2]) if len(sys.argv) > 2 else 10
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(0)
    plain = resnet().to(device)
    model = remat.torch.Checkpointable(copy.deepcopy(plain), budget)
    losses = train(model, steps, device)
    model.explain()
    print(f"loss {losses[0]:.4f} to {losses[-1]:.4f} in {steps} steps")
    train(plain, steps, device)
    same = all(torch.equal(a, b) for a, b in zip(plain.state_dict().values(), model.state_dict().values()))
    print(f"weights and running statistics as without a budget, to the last bit: {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
