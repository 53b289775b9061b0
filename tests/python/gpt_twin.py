"""The model of examples/train_gpt.c in torch, with weights of its files: for the test that compares losses, and the
benchmark that compares times.
"""

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Shape:
    layers: int
    width: int
    heads: int
    length: int
    batch: int

    def arguments(self):
        """As the program wants them."""
        return [word for name, value in dataclasses.asdict(self).items() for word in (f"--{name}", str(value))]


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width, self.heads = shape.width, shape.heads
        self.norm1, self.qkv, self.project = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.widen, self.narrow = (
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, shape.width), nn.Embedding(shape.length, shape.width)
        self.norm, self.head = nn.LayerNorm(shape.width), nn.Linear(shape.width, 256)
        self.blocks = nn.Sequential(*(Block(shape) for _ in range(shape.layers)))

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places.weight)))

    def take(self, weights):
        """In the order of train_gpt.c: those of no block, then block after block. A linear layer has its weights
        input by input, and then its bias.
        """

        def next_of(*shape):
            nonlocal at
            part = weights[at : at + torch.Size(shape).numel()].view(*shape)
            at += part.numel()
            return part

        at = 0
        parts = [
            self.tokens,
            self.places,
            self.norm,
            self.head,
            *(part for block in self.blocks for part in block.children()),
        ]
        with torch.no_grad():
            for part in parts:
                if isinstance(part, nn.Linear):
                    part.weight.copy_(next_of(part.in_features, part.out_features).T)
                else:
                    part.weight.copy_(next_of(*part.weight.shape))
                if not isinstance(part, nn.Embedding):
                    part.bias.copy_(next_of(*part.bias.shape))
        assert at == len(weights)


def train(shape, text, n_steps, weights=None):
    """Yields the loss of every step. text: a tensor of bytes."""
    model = GPT(shape)
    if weights is not None:
        model.take(weights)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    starts = [i for i in range(0, len(text), shape.length) if i + shape.length < len(text)]
    for step in range(n_steps):
        rows = [starts[(step * shape.batch + i) % len(starts)] for i in range(shape.batch)]
        tokens, targets = (torch.stack([text[i + shift : i + shift + shape.length] for i in rows]) for shift in (0, 1))
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()
