"""Random models for the PyTorch front end: a seed makes a module, its inputs and a loss, always the same.

Every block maps a tensor (batch, time, width) to one of the same shape and may do something unkind on the way: write into what it got, hand out
views, draw random numbers, keep state. `side` carries the other inputs of the model, and `side["outputs"]` collects results besides the main one.
Blocks may not fit together (a block writes into what an earlier one saved): eager code raises then, and the seed is no model.

A block is a function of (x, side), or a module made from a `Size`; `@block(weight)` puts it into the table.
"""
from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

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
        self.act = size.random.choice([torch.tanh, F.gelu, F.relu, F.silu, torch.sin, torch.sigmoid, F.softplus, F.hardswish])
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
        self.layers = nn.Sequential(nn.Linear(size.width, 4 * size.width), nn.GELU(), nn.Dropout(0.2), nn.Linear(4 * size.width, size.width))

    def forward(self, x, side):
        return self.layers(x)


@block(2)
class BatchNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.BatchNorm1d(size.width, affine=size.random.random() < 0.8, track_running_stats=size.random.random() < 0.9)
        if size.random.random() < 0.15:
            self.norm.eval()

    def forward(self, x, side):
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


@block(2, pure=True)
class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = size.random.choice([lambda: nn.LayerNorm(size.width), lambda: nn.RMSNorm(size.width), lambda: nn.GroupNorm(2, size.time), lambda: nn.LayerNorm((size.time, size.width))])()

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
        self.embed = nn.Embedding(VOCABULARY, size.width, padding_idx=0 if kind < 0.3 else None, max_norm=1.0 if kind > 0.85 else None, scale_grad_by_freq=0.5 < kind < 0.6,
                                  sparse=0.6 < kind < 0.63)
        self.bag = nn.EmbeddingBag(VOCABULARY, size.width, mode=size.random.choice(["sum", "mean", "max"])) if size.random.random() < 0.3 else None

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
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal).transpose(1, 2).flatten(2)


@block(1)
class Transformer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(size.width, 2, 2 * size.width, dropout=size.random.choice([0.0, 0.2]), batch_first=True, norm_first=size.random.random() < 0.5)
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


# ---- writes into activations ----

@block(2, pure=True)
def overwritten(x, side):
    y = x * 2
    y.mul_(0.5).add_(1)
    return y.sub_(0.5)


@block(2, pure=True)
def overwritten_views(x, side):
    y = x + 1
    y[:, 0] = 0.5
    y[:, 1::2].mul_(2)
    y.select(2, 0).add_(y.select(2, 1), alpha=0.5)
    y.transpose(1, 2)[:, :1].neg_()
    return y


@block(1)
def overwritten_by_index(x, side):
    y = x.clone()
    y[side["tokens"] == 2] = 0
    y.masked_fill_(side["mask"], 0.25)
    rows = side["tokens"][:, 0] % x.shape[0]
    y.index_add_(0, rows, x.detach() * 0.1)
    y.index_put_((rows,), x.cos(), accumulate=True)
    return y.scatter_add_(1, torch.zeros_like(side["tokens"]).unsqueeze(-1).expand_as(x), x)


@block(1)
def overwritten_argument(x, side):
    """Writes into what it got, which may be saved, or an input of the model, or still be read by a residual."""
    return x.add_(0.5)


@block(0.5)
def overwritten_argument_view(x, side):
    x[:, 0].mul_(0.5)
    return x.sin()


@block(1, pure=True)
def detached_write(x, side):
    y = x * 1.5
    y.detach()[:, 0].fill_(0.1)
    with torch.no_grad():
        y.mul_(0.9)
    return y


@block(1, pure=True)
def reshaped_in_place(x, side):
    y = x.sin()
    y.transpose_(1, 2).unsqueeze_(0)
    return y.squeeze_(0).mT.contiguous()


@block(1, pure=True)
def filled(x, side):
    """A new tensor that is written row by row."""
    y = torch.empty_like(x)
    for t in range(x.shape[1]):
        y[:, t] = x[:, t].tanh() + (y[:, t - 1] if t else 0)
    return y


@block(1)
def copied_from_other(x, side):
    y = x.cos()
    y[:, :1].copy_(side["other"][:, :1])
    return y.clamp_(-1, 1)


# ---- state ----

@block(2)
class RunningMean(nn.Module):
    """Reads its buffer before and behind a write: what is computed again needs the old contents."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size.width))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x, side):
        y = torch.tanh(x - self.mean)
        self.mean.mul_(0.9).add_(x.detach().mean((0, 1)), alpha=0.1)
        self.steps += 1
        return y + self.mean / self.steps


@block(1)
class Cache(nn.Module):
    """Writes into views of its buffer, and hands the buffer out."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, size.time, size.width))
        self.hands_out = size.random.random() < 0.3

    def forward(self, x, side):
        y = x + self.rows[1]
        self.rows[1:].copy_(self.rows[:-1].clone())
        self.rows[0] = x.detach().mean(0)
        self.rows.transpose(1, 2)[2].add_(0.01)
        if self.hands_out:
            side["outputs"].append(self.rows[1])
        return torch.sin(y * self.rows.mean())


@block(0.5)
class Replaced(nn.Module):
    """A buffer that is a new tensor after every step, and an attribute that counts."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("last", torch.zeros(size.width))
        self.count = 0

    def forward(self, x, side):
        y = x + self.last
        self.last = x.detach().mean((0, 1))
        self.count += 1
        return y / self.count


@block(1)
def logged(x, side):
    """An input that is written: read before and behind."""
    y = x * side["log"].clone()
    side["log"].add_(x.detach().mean((0, 1)))
    return y.tanh() + side["log"]


@block(0.5)
def logged_view(x, side):
    side["log"][::2].mul_(0.5)
    return x + side["log"].flip(0)


@block(0.5)
def other_overwritten(x, side):
    """An input that may need a gradient."""
    y = x + side["other"].sin()
    side["other"].mul_(0.5)
    return y * side["other"].sigmoid()


@block(1.5)
def other_read(x, side):
    return x * torch.sigmoid(side["other"]) + side["other"].mT.reshape(x.shape) * 0.1


# ---- random numbers ----

@block(3, pure=True)
class Dropout(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.drop = size.random.choice([nn.Dropout(0.3), nn.Dropout(0.5, inplace=True), nn.AlphaDropout(0.2), nn.Dropout1d(0.3), nn.RReLU()])

    def forward(self, x, side):
        return self.drop(torch.sin(x))


@block(1, pure=True)
def noise(x, side):
    return x + torch.rand_like(x) * 0.1 + torch.randn(x.shape[1:], dtype=x.dtype) * x.detach()


@block(1, pure=True)
def coins(x, side):
    keep = torch.bernoulli(torch.sigmoid(x.detach()))
    return torch.where(keep.bool(), x, x.tanh()) * torch.empty_like(x).uniform_(0.5, 1)


@block(0.5, pure=True)
def shuffled(x, side):
    return x[torch.randperm(x.shape[0])] + F.gumbel_softmax(x, dim=-1) + torch.randint(0, 3, x.shape[-1:]).to(x.dtype).normal_()


# ---- autograd functions ----

class Saves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y, x)
        return y

    @staticmethod
    def backward(ctx, gradient):
        y, x = ctx.saved_tensors
        return gradient * (1 - y * y) + 0.01 * x.cos()


class Stashes(torch.autograd.Function):
    """Keeps a tensor besides torch's own saving, and a result without a gradient."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.stash, ctx.factor = x.sigmoid(), factor
        signs = x.sign()
        ctx.mark_non_differentiable(signs)
        return x * factor, signs

    @staticmethod
    def backward(ctx, gradient, _):
        return gradient * ctx.factor + ctx.stash * 0.01, None


class WritesInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        ctx.log.add_(gradient.sum((0, 1)))
        return gradient * 0.5, None


class DrawsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cos()

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return -gradient * x.sin() + torch.rand_like(gradient) * 0.01


class WritesArgument(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(0.5)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 0.5


@block(1, pure=True)
def function_saving(x, side):
    return Saves.apply(x)


@block(1)
def function_stashing(x, side):
    y, signs = Stashes.apply(x, 0.7)
    side["outputs"].append(signs)
    return y + signs * 0.1


@block(0.5)
class FunctionWritingInBackward(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("log", torch.zeros(size.width))

    def forward(self, x, side):
        return WritesInBackward.apply(x, self.log)


@block(1)
def function_drawing_in_backward(x, side):
    return DrawsInBackward.apply(x)


@block(0.5)
def function_writing(x, side):
    return WritesArgument.apply(x * 2)


@block(1)
def hooked(x, side):
    y = x.sin()
    if y.requires_grad:
        y.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    return y


# ---- ops of our own ----

CALLS = {"counted": 0}  # the hidden state


def counted_factor() -> float:
    CALLS["counted"] += 1
    return 1 + 0.1 * CALLS["counted"]


@torch.library.custom_op("random_models::scaled", mutates_args=())
def scaled_op(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


@torch.library.custom_op("random_models::counted", mutates_args=())
def counted_op(x: torch.Tensor) -> torch.Tensor:
    return x * counted_factor()


@torch.library.custom_op("random_models::noisy", mutates_args=())
def noisy_op(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand_like(x)


@torch.library.custom_op("random_models::logging", mutates_args=("log",))
def logging_op(x: torch.Tensor, log: torch.Tensor) -> torch.Tensor:
    log += x.mean((0, 1))
    return x * log


scaled_op.register_fake(lambda x, factor: torch.empty_like(x))
counted_op.register_fake(lambda x: torch.empty_like(x))
noisy_op.register_fake(lambda x: torch.empty_like(x))
logging_op.register_fake(lambda x, log: torch.empty_like(x))


def keep_factor(ctx, inputs, output):
    ctx.factor = inputs[1]


scaled_op.register_autograd(lambda ctx, gradient: (scaled_op(gradient, ctx.factor), None), setup_context=keep_factor)
counted_op.register_autograd(lambda ctx, gradient: gradient * 0.5)
noisy_op.register_autograd(lambda ctx, gradient: gradient)


@block(1, pure=True)
def op_pure(x, side):
    return scaled_op(x, 0.9).tanh()


@block(0.5)
def op_with_hidden_state(x, side):
    return counted_op(x).tanh()


@block(0.5)
def op_with_hidden_random_numbers(x, side):
    return noisy_op(x).tanh()


@block(0.5)
class OpThatWrites(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("log", torch.ones(size.width))

    def forward(self, x, side):
        return x + logging_op(x.detach(), self.log).sigmoid()


# ---- what the planner may leave to torch, and what has no gradient ----

@block(0.3)
def sizes_of_data(x, side):
    return x + x[side["tokens"] > 3].sum(0).tanh()


@block(0.3)
def conditional(x, side):
    return torch.cond(side["tokens"][0, 0] > 3, lambda y: y.sin(), lambda y: y.cos(), (x,))


@block(0.5)
def without_gradient(x, side):
    with torch.no_grad():
        y = (x @ x.mT).softmax(-1) @ x
    return x * y.sigmoid()


# ---- results besides the main one ----

@block(1)
def results(x, side):
    side["outputs"] += [x[:, ::2], x.detach().argmax(-1), x.transpose(1, 2), x.mean()]
    return x.cos()


@block(0.5)
def results_that_are_inputs(x, side):
    side["outputs"] += [side["other"], side["log"][1:], side["tokens"].view(-1), side["other"].mT]
    return x.sin()


@block(0.5)
def results_that_are_written(x, side):
    y = x.sin()
    view = y[:, 0]
    side["outputs"] += [view, y]
    y.mul_(0.5)
    return y + 1


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
    name, = size.random.choices(names, [BLOCKS[name].weight for name in names])
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
        self.breaks, = size.random.choices(["", "break", "data", "loop"], [12, 1, 1, 0.3])  # where torch.compile starts a new graph
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

    def blocks(self) -> List[str]:
        """The names of all blocks, as they stand."""
        return [module.block for module in self.modules() if hasattr(module, "block")]


# ---- inputs ----

def laid_out(size: Size, shape: Tuple[int, ...], how: str) -> Tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]:
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

    def __init__(self, seed: int, most_layers: int = 30):
        choose = random.Random(seed)
        torch.manual_seed(seed)
        dtype, = choose.choices([torch.float32, torch.float64, torch.bfloat16], [7, 2, 1])
        size = Size(choose, batch=choose.choice([16, 64]), time=choose.choice([4, 8]), width=choose.choice([8, 16, 32]), dtype=dtype)
        n_layers = 3 + int((most_layers - 2) * choose.random() ** 4)
        self.seed = seed
        self.model = Model(size, n_layers).to(dtype)
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
        return x, x.flip(0) if self.shares and self.grows_x else x if self.shares else other, self.tokens, self.view_log(self.log), self.mask

    def loss(self, results: Tuple[torch.Tensor, ...]) -> torch.Tensor:
        total = torch.zeros(())
        for i, result in enumerate(results):
            if result.is_floating_point() and result.requires_grad and i not in self.unused:
                total = total + result.float().square().mean() / (i + 1)
        return total

    def tensors(self) -> Dict[str, torch.Tensor]:
        """What a step may have changed, by name."""
        found = {"x": self.x, "other": self.other, "log": self.log, **dict(self.model.named_buffers()), **dict(self.model.named_parameters())}
        return {**found, **{f"gradient of {name}": tensor.grad for name, tensor in found.items() if tensor.requires_grad}}
