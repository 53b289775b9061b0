"""Blocks of random models that compute: the table that they are in, plain layers, and views. random_effects.py has
those that do more than that.

Every block maps a tensor (batch, time, width) to one of the same shape. `side` carries the other inputs of the
model, and `side["outputs"]` collects results besides the main one. A block is a function of (x, side), or a module
made from a `Size`; `@block(weight)` puts it into the table."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Callable, Dict, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY = 12


@dataclass
class Size:
    """What a block is made for; `random` decides its details."""

    random: random.Random
    batch: int
    time: int
    width: int
    dtype: torch.dtype


class Entry(NamedTuple):
    weight: float
    make: Callable[[Size], nn.Module]
    pure: bool  # reads x alone and has no effect but its result: may stand in a checkpointed region


BLOCKS: Dict[str, Entry] = {}


class Apply(nn.Module):
    """A function of the table as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]):
        super().__init__()
        self.function = function

    def forward(self, x, side):
        return self.function(x, side)


def block(weight: float, pure: bool = False) -> Callable[[Any], Any]:
    def add(made: Any) -> Any:
        make = made if isinstance(made, type) else lambda size: Apply(made)
        BLOCKS[made.__name__] = Entry(weight, make, pure)
        return made

    return add


# ---- plain layers ----


@block(8, pure=True)
class Linear(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size.width, size.width, bias=size.random.random() < 0.7)
        self.act = size.random.choice(
            [torch.tanh, F.gelu, F.relu, F.silu, torch.sin, torch.sigmoid, F.softplus, F.hardswish]
        )
        if size.random.random() < 0.15:
            self.layer.weight.requires_grad_(False)
        if size.random.random() < 0.1:
            self.requires_grad_(False)

    def forward(self, x, side):
        return self.act(self.layer(x))


@block(2, pure=True)
class Wide(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(size.width, 4 * size.width), nn.GELU(), nn.Dropout(0.2), nn.Linear(4 * size.width, size.width)
        )

    def forward(self, x, side):
        return self.layers(x)


@block(2)
class BatchNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.BatchNorm1d(
            size.width, affine=size.random.random() < 0.8, track_running_stats=size.random.random() < 0.9
        )
        if size.random.random() < 0.15:
            self.norm.eval()

    def forward(self, x, side):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


@block(2, pure=True)
class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = size.random.choice(
            [
                lambda: nn.LayerNorm(size.width),
                lambda: nn.RMSNorm(size.width),
                lambda: nn.GroupNorm(2, size.time),
                lambda: nn.LayerNorm((size.time, size.width)),
            ]
        )()

    def forward(self, x, side):
        return self.norm(x)


@block(1)
class InstanceNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.InstanceNorm1d(size.width, track_running_stats=True, affine=True)

    def forward(self, x, side):
        return self.norm(x.mT).mT


@block(2, pure=True)
class Convolution(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.groups = size.random.choice([1, 1, 2, size.width])
        self.conv = nn.Conv1d(size.width, size.width, 3, padding=1, groups=self.groups)

    def forward(self, x, side):
        return F.relu(self.conv(x.transpose(1, 2)).transpose(1, 2), inplace=True)


@block(1, pure=True)
class ConvolutionImage(nn.Module):
    """The time as an image of one row of channels-last pixels, and a pooling with indices."""

    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(size.width // 4, size.width // 4, 3, padding=1)

    def forward(self, x, side):
        image = x.unflatten(2, (4, -1)).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
        pooled, where = F.max_pool2d(self.conv(image), 2, return_indices=True)
        return F.max_unpool2d(pooled, where, 2).permute(0, 2, 3, 1).reshape(x.shape) + x


@block(2)
class Embedding(nn.Module):
    def __init__(self, size):
        super().__init__()
        kind = size.random.random()
        self.embed = nn.Embedding(
            VOCABULARY,
            size.width,
            padding_idx=0 if kind < 0.3 else None,
            max_norm=1.0 if kind > 0.85 else None,
            scale_grad_by_freq=0.5 < kind < 0.6,
            sparse=0.6 < kind < 0.63,
        )
        self.bag = (
            nn.EmbeddingBag(VOCABULARY, size.width, mode=size.random.choice(["sum", "mean", "max"]))
            if size.random.random() < 0.3
            else None
        )

    def forward(self, x, side):
        x = x + self.embed(side["tokens"])
        return x if self.bag is None else x * self.bag(side["tokens"]).unsqueeze(1)


@block(1)
class TiedEmbedding(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed, self.head = nn.Embedding(VOCABULARY, size.width), nn.Linear(size.width, VOCABULARY, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x, side):
        logits = self.head(x + self.embed(side["tokens"]))
        side["outputs"].append(F.cross_entropy(logits.flatten(0, 1), side["tokens"].flatten(), ignore_index=1))
        return F.softmax(logits, -1) @ self.embed.weight


@block(2, pure=True)
class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.project = nn.Linear(size.width, 3 * size.width)
        self.dropout, self.causal = size.random.choice([0.0, 0.0, 0.3]), size.random.random() < 0.5

    def forward(self, x, side):
        q, k, v = (part.unflatten(2, (2, -1)).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        return (
            F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
            .transpose(1, 2)
            .flatten(2)
        )


@block(1)
class Transformer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            size.width,
            2,
            2 * size.width,
            dropout=size.random.choice([0.0, 0.2]),
            batch_first=True,
            norm_first=size.random.random() < 0.5,
        )
        self.attention = nn.MultiheadAttention(size.width, 2, batch_first=True)

    def forward(self, x, side):
        y, weights = self.attention(x, self.layer(x), x, key_padding_mask=side["tokens"] == 0)
        side["outputs"].append(weights)
        return torch.nan_to_num(y)


@block(1, pure=True)
class Recurrence(nn.Module):
    """A loop over time with one cell."""

    def __init__(self, size):
        super().__init__()
        self.cell = size.random.choice([nn.GRUCell, nn.RNNCell])(size.width, size.width)

    def forward(self, x, side):
        state, states = torch.zeros_like(x[:, 0]), []
        for part in x.unbind(1):
            state = self.cell(part, state)
            states.append(state)
        return torch.stack(states, 1)


@block(1, pure=True)
class Normed(nn.Module):
    """A weight that is computed from parameters; spectral norm also writes buffers."""

    def __init__(self, size):
        super().__init__()
        self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(size.width, size.width))

    def forward(self, x, side):
        return torch.tanh(self.layer(x))


@block(1)
class SpectralNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.utils.parametrizations.spectral_norm(nn.Linear(size.width, size.width))

    def forward(self, x, side):
        return torch.tanh(self.layer(x))


@block(1, pure=True)
class Activations(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.prelu, self.glu = nn.PReLU(size.time), size.random.random() < 0.5

    def forward(self, x, side):
        return F.glu(torch.cat([x, x * 0.5], -1)) if self.glu else F.elu(self.prelu(x), inplace=True)


@block(1, pure=True)
def reductions(x, side):
    return x - x.logsumexp(-1, keepdim=True) + x.cumsum(1) / x.std((1, 2), keepdim=True).clamp_min(0.1) + x.amax(0)


@block(1, pure=True)
def sorting(x, side):
    ordered, where = x.sort(1)
    top = x.topk(2, dim=-1).values.sum(-1, keepdim=True)
    return ordered.gather(1, where) * torch.sigmoid(top)


@block(1, pure=True)
def products(x, side):
    return torch.einsum("btd,bsd->bts", x, x).softmax(-1) @ torch.bmm(x, x.mT).sigmoid() @ x


@block(1, pure=True)
def casts(x, side):
    return (x.double().sin() + x.bfloat16().relu()).to(x.dtype) + x.half().to(x.dtype)


@block(0.5, pure=True)
def mapped(x, side):
    return torch.vmap(lambda row: row.tanh() * row.sum())(x) * 0.1


# ---- views ----


@block(2, pure=True)
def transposed(x, side):
    return torch.sin(x.transpose(0, 2)).transpose(2, 0)


@block(2, pure=True)
def slices(x, side):
    return torch.cat([x[:, 1::2], x[:, ::2] * 2], 1)


@block(1, pure=True)
def windows(x, side):
    return x.unfold(1, 2, 2).flatten(2).tanh().view(x.shape)


@block(1, pure=True)
def overlapping_windows(x, side):
    return F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1).amax(-1)


@block(1, pure=True)
def strided(x, side):
    y = x.contiguous()
    return y + y.as_strided((x.shape[0], 1, x.shape[2]), (x.shape[1] * x.shape[2], 1, 1), x.shape[2]).sigmoid()


@block(2, pure=True)
def expanded(x, side):
    return x * x.mean(1, keepdim=True).expand_as(x) + x[:1].expand(x.shape[0], -1, -1)


@block(2, pure=True)
def parts(x, side):
    a, b = x.chunk(2, -1)
    c, d = x.split([1, x.shape[1] - 1], 1)
    return torch.cat([b.exp().clamp_max(3), a], -1) + torch.cat([d, c.cos()], 1)


@block(1, pure=True)
def diagonals(x, side):
    return x + (x @ x.mT).diagonal(0, 1, 2).unsqueeze(-1).tanh()


@block(1, pure=True)
def narrowed(x, side):
    return x.narrow(1, 1, x.shape[1] - 1).sum(1, keepdim=True).tanh() + x.select(2, 0).unsqueeze(-1)


@block(1, pure=True)
def permuted(x, side):
    return x.permute(2, 0, 1).reshape(x.shape[2], -1).softmax(0).view(x.shape[2], x.shape[0], -1).movedim(0, -1)


@block(1, pure=True)
def unbound(x, side):
    return torch.stack([part.tanh() if i % 2 else part for i, part in enumerate(x.unbind(2))], 2)


@block(1, pure=True)
def complex_numbers(x, side):
    y = torch.view_as_complex(x.float().unflatten(2, (-1, 2)).contiguous())
    y = y * y.conj() + torch.polar(torch.ones_like(y.real), y.imag)
    return torch.view_as_real(y.conj().resolve_conj()).flatten(2).tanh().to(x.dtype)


@block(1, pure=True)
def fourier(x, side):
    y = torch.fft.rfft(x.float(), dim=1)
    return (torch.fft.irfft(y * 0.5, n=x.shape[1], dim=1) + y.conj().imag.sum(1, keepdim=True).tanh()).to(x.dtype)


@block(1, pure=True)
def bits(x, side):
    """A mask out of the bits of the numbers: a view of another dtype, without a gradient."""
    words = x.detach().float().contiguous().view(torch.int32)
    return x * (words & 1 == 0) + x.detach().view_as(x) * 0.1
