"""Random models for the PyTorch front end: a seed makes a module, its inputs and a loss, always the same.

Models are layers of blocks (random_blocks.py, random_effects.py), some of them in a residual, a branch, a region
under autocast or a checkpointed one. Blocks may not fit together (a block writes into what an earlier one saved):
eager code raises then, and the seed is no model."""

from __future__ import annotations

import random
from typing import Callable, Dict, List, Tuple

import random_effects  # noqa: F401  (its blocks, into the table)
import torch
from random_blocks import BLOCKS, VOCABULARY, Size
from torch import nn
from torch.utils.checkpoint import checkpoint

# ---- blocks of blocks ----


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, side):
        return x + self.inner(x, side)


class Branches(nn.Module):
    def __init__(self, *inner):
        super().__init__()
        self.inner = nn.ModuleList(inner)

    def forward(self, x, side):
        a, b = (inner(x, side) for inner in self.inner)
        return a * torch.sigmoid(b)


class Twice(nn.Module):
    """The same parameters and buffers at two places."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, side):
        return self.inner(self.inner(x, side).tanh(), side)


class Products(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, side):
        return self.down(nn.functional.gelu(self.up(x)))


class Autocast(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, side):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.inner(x, side)
        return y.to(x.dtype)


class Checkpointed(nn.Module):
    def __init__(self, *inner):
        super().__init__()
        self.inner = nn.ModuleList(inner)

    def run(self, x):
        for inner in self.inner:
            x = inner(x, {})
        return x

    def forward(self, x, side):
        return checkpoint(self.run, x, use_reentrant=False)


def pick(size: Size, pure: bool = False) -> nn.Module:
    names = [name for name in BLOCKS if BLOCKS[name].pure or not pure]
    (name,) = size.random.choices(names, [BLOCKS[name].weight for name in names])
    made = BLOCKS[name].make(size)
    made.block = name
    return made


def grow(size: Size) -> nn.Module:
    """A block, or a block of blocks."""
    kind = size.random.random()
    if kind < 0.60:
        return pick(size)
    if kind < 0.75:
        return Residual(pick(size))
    if kind < 0.83:
        return Branches(pick(size), pick(size))
    if kind < 0.89:
        return Twice(pick(size))
    if kind < 0.94:
        return Autocast(pick(size))
    return Checkpointed(*(pick(size, pure=True) for _ in range(2)))


class Model(nn.Module):
    def __init__(self, size: Size, n_layers: int):
        super().__init__()
        middle = size.random.randrange(n_layers + 1)
        self.before = nn.ModuleList(grow(size) for _ in range(middle))
        self.behind = nn.ModuleList(grow(size) for _ in range(n_layers - middle))
        # where torch.compile starts a new graph
        (self.breaks,) = size.random.choices(["", "break", "data", "loop"], [12, 1, 1, 0.3])
        self.head = size.random.choice(["plain", "view", "twice", "loss"])

    def forward(self, x, other, tokens, log, mask):
        side = {"other": other, "tokens": tokens, "log": log, "mask": mask, "outputs": []}
        for layer in self.before:
            x = layer(x, side)
            if self.breaks == "loop":
                torch._dynamo.graph_break()
        if self.breaks == "break":
            torch._dynamo.graph_break()
        if self.breaks == "data" and x.detach().sum() > 0:
            x = x.tanh()
        for layer in self.behind:
            x = layer(x, side)
        if self.head == "loss":
            return (x.float().square().mean(), *side["outputs"])
        if self.head == "view":
            x = x[:, :-1].transpose(0, 1)
        return (x, x.view_as(x), *side["outputs"]) if self.head == "twice" else (x, *side["outputs"])

    def deepen(self, width: int) -> None:
        """Puts products between all layers, as models have that people checkpoint by hand."""
        for part in ("before", "behind"):
            layers = [made for layer in getattr(self, part) for made in (Residual(Products(width)), layer)]
            setattr(self, part, nn.ModuleList(layers))

    def blocks(self) -> List[str]:
        """The names of all blocks, as they stand."""
        return [module.block for module in self.modules() if hasattr(module, "block")]


# ---- inputs ----


def laid_out(
    size: Size, shape: Tuple[int, ...], how: str
) -> Tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]:
    """A tensor, and the view of it that the model gets."""
    if how == "transposed":
        return torch.randn(shape[::-1], dtype=size.dtype), lambda base: base.permute(*range(base.dim() - 1, -1, -1))
    if how == "strided":
        return torch.randn(*shape[:-1], 2 * shape[-1], dtype=size.dtype), lambda base: base[..., ::2]
    if how == "offset":
        return torch.randn(shape[0] + 2, *shape[1:], dtype=size.dtype), lambda base: base[1:-1]
    if how == "expanded":
        return torch.randn(1, *shape[1:], dtype=size.dtype), lambda base: base.expand(shape)
    return torch.randn(shape, dtype=size.dtype), lambda base: base


class Case:
    """A model, its inputs, and how it is trained; all of it from the seed."""

    def __init__(self, seed: int, most_layers: int = 30, deep: bool = False):
        choose = random.Random(seed)
        torch.manual_seed(seed)
        (dtype,) = choose.choices([torch.float32, torch.float64, torch.bfloat16], [7, 2, 1])
        size = Size(
            choose,
            batch=choose.choice([16, 64]),
            time=choose.choice([4, 8]),
            width=choose.choice([8, 16, 32]),
            dtype=dtype,
        )
        n_layers = 3 + int((most_layers - 2) * choose.random() ** 4)
        self.seed = seed
        self.model = Model(size, n_layers)
        if deep:
            self.model.deepen(size.width)
        self.model.to(dtype)
        self.accumulates = choose.random() < 0.15  # gradients of the first step stay
        self.dynamic = choose.random() < 0.05
        self.unused = choose.sample(range(1, 6), 2)  # results that the loss does not read
        self.momentum = choose.choice([0.0, 0.9])
        shape = (size.batch, size.time, size.width)
        layouts = ["plain"] * 6 + ["transposed", "strided", "offset", "expanded"]
        self.x, self.view_x = laid_out(size, shape, choose.choice(layouts))
        self.other, self.view_other = laid_out(size, shape, choose.choice(layouts))
        self.log, self.view_log = laid_out(size, shape[2:], choose.choice(["plain"] * 3 + ["strided", "offset"]))
        self.x.requires_grad_(choose.random() < 0.4 or not any(p.requires_grad for p in self.model.parameters()))
        self.other.requires_grad_(choose.random() < 0.4)
        self.grows_x, self.grows_other = choose.random() < 0.5, choose.random() < 0.5  # an input that is no leaf
        self.shares = choose.random() < 0.05  # x and other are views of one tensor
        self.tokens = torch.randint(0, VOCABULARY, shape[:2])
        self.mask = torch.rand(*shape[:2], 1) < 0.2

    def arguments(self) -> Tuple[torch.Tensor, ...]:
        """What the model is called with at the next step."""
        x = self.view_x(self.x * 1 if self.grows_x else self.x)
        other = self.view_other(self.other * 1 if self.grows_other else self.other)
        return (
            x,
            x.flip(0) if self.shares and self.grows_x else x if self.shares else other,
            self.tokens,
            self.view_log(self.log),
            self.mask,
        )

    def loss(self, results: Tuple[torch.Tensor, ...]) -> torch.Tensor:
        total = torch.zeros(())
        for i, result in enumerate(results):
            if result.is_floating_point() and result.requires_grad and i not in self.unused:
                total = total + result.float().square().mean() / (i + 1)
        return total

    def tensors(self) -> Dict[str, torch.Tensor]:
        """What a step may have changed, by name."""
        found = {
            "x": self.x,
            "other": self.other,
            "log": self.log,
            **dict(self.model.named_buffers()),
            **dict(self.model.named_parameters()),
        }
        return {
            **found,
            **{f"gradient of {name}": tensor.grad for name, tensor in found.items() if tensor.requires_grad},
        }
