"""Sequential models for the tests of Checkpointable: small, and each with something that is easy to get wrong."""

import torch
from torch import nn


class Residual(nn.Module):
    """A residual block with batch norms and a rectifier that writes in place."""

    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU(inplace=True),
            nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(c_out),
        )
        self.shortcut = (
            nn.Sequential()
            if c_in == c_out and stride == 1
            else nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))
        )

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class Dense(nn.Module):
    def __init__(self, c_in, growth):
        super().__init__()
        self.norm, self.conv, self.drop = (
            nn.BatchNorm2d(c_in),
            nn.Conv2d(c_in, growth, 3, padding=1, bias=False),
            nn.Dropout2d(0.1),
        )

    def forward(self, x):
        return torch.cat([x, self.drop(self.conv(torch.relu(self.norm(x))))], 1)


class Block(nn.Module):
    """A transformer block on a pair (hidden states, mask), with dropout inside attention."""

    def __init__(self, width, heads=2):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, pair):
        x, mask = pair
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.out((nn.functional.dropout(scores, 0.1, self.training) @ v).transpose(1, 2).flatten(-2))
        return x + self.mlp(self.norm2(x)), mask


class First(nn.Module):
    def forward(self, pair):
        return pair[0]


class Recurrent(nn.Module):
    """An LSTM that hands its state on: a value with a tuple inside a tuple."""

    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, width, batch_first=True)

    def forward(self, value):
        x, state = value if isinstance(value, tuple) else (value, None)
        y, state = self.lstm(x, state)
        return y + x, state


def mlp():
    return nn.Sequential(
        *(layer for _ in range(5) for layer in (nn.Linear(48, 48), nn.GELU(), nn.Dropout(0.2)))
    ), torch.randn(256, 48)


def vgg():
    layers, c_in = [], 3
    for width in (8, 8, None, 16, 16, None):
        if width is None:
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(c_in, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            c_in = width
    head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 16, 32), nn.ReLU(), nn.Dropout(), nn.Linear(32, 10))
    return nn.Sequential(nn.Sequential(*layers), head), torch.randn(8, 3, 16, 16)


def resnet():
    blocks = [
        Residual(8, 8),
        Residual(8, 8),
        Residual(8, 16, 2),
        Residual(16, 16),
        Residual(16, 32, 2),
        Residual(32, 32),
    ]
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
        nn.Sequential(*blocks),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    ), torch.randn(8, 3, 16, 16)


def transformer():
    return nn.Sequential(*(Block(32) for _ in range(5)), First(), nn.LayerNorm(32), nn.Linear(32, 50)), (
        torch.randn(4, 24, 32),
        torch.ones(24, 24, dtype=torch.bool).triu(1),
    )


def lstm():
    return nn.Sequential(
        nn.Linear(24, 24), *(Recurrent(24) for _ in range(4)), First(), nn.Dropout(0.1), nn.Linear(24, 5)
    ), torch.randn(8, 16, 24)


def densenet():
    layers, channels = [nn.Conv2d(3, 8, 3, padding=1)], 8
    for block in range(2):
        for _ in range(4):
            layers.append(Dense(channels, 6))
            channels += 6
        layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1), nn.AvgPool2d(2)]
        channels //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)), torch.randn(
        8, 3, 16, 16
    )


def buffers():
    """Buffers that change the result (spectral norm's vectors) and that batch norm's flag does not cover (instance
    norm's statistics).
    """
    layers = []
    for _ in range(4):
        layers += [
            nn.utils.spectral_norm(nn.Conv2d(6, 6, 3, padding=1)),
            nn.InstanceNorm2d(6, affine=True, track_running_stats=True),
            nn.BatchNorm2d(6, momentum=None),
            nn.SiLU(),
        ]
    return nn.Sequential(*layers), torch.randn(6, 6, 12, 12)


MODELS = {f.__name__: f for f in (mlp, vgg, resnet, transformer, lstm, densenet, buffers)}
