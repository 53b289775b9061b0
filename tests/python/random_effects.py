"""Blocks of random models that do something unkind: write into what they got, keep state, draw random numbers, have
backward passes or ops of their own, or hand out more than one result. They are in the table of random_blocks.py
behind those that compute.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from random_blocks import block
from torch import nn

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
        self.drop = size.random.choice(
            [nn.Dropout(0.3), nn.Dropout(0.5, inplace=True), nn.AlphaDropout(0.2), nn.Dropout1d(0.3), nn.RReLU()]
        )

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
    return (
        x[torch.randperm(x.shape[0])]
        + F.gumbel_softmax(x, dim=-1)
        + torch.randint(0, 3, x.shape[-1:]).to(x.dtype).normal_()
    )


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
        (x,) = ctx.saved_tensors
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
