"""How time and memory trade off for one model on this machine: training steps measured at several budgets, with torch's
own choices beside them.

Problem. Which budget to take depends on what each costs here, and predictions are no measurements.

Method. Every variant (a budget, or a choice that torch offers) is compiled by itself and trained for a few steps on the
model itself: twice to warm up, then timed one by one. The peak is the allocator's on CUDA. A CPU has no such count:
there it is what the plan, or the code that Inductor generated for it, needs, and torch's own choices have none. A
variant that fails has a reason in place of numbers.

Invariant: parameters' gradients, buffers and generators are afterwards what they were. Cost: a compilation and
`steps + 2` training steps for each variant."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import pathlib
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from ..errors import Error, UsageError, size_text
from . import reporting
from .checking import _tensors
from .options import Budget, bytes_of, check_budget

PEERS: Dict[str, Dict[str, Any]] = {
    "torch.compile": {},
    "aggressive_recomputation": {"aggressive_recomputation": True},
    "activation_memory_budget=0.5": {"activation_memory_budget": 0.5},
}
MARGIN = 0.97  # of free memory: the allocator's blocks are not where one wants them
LOWER = (1.0, 0.9, 0.8)  # of the memory that there is: budgets that `tune` tries


@dataclass
class Point:
    """One variant: median milliseconds of a step, its peak in bytes (None: not known here), and what was predicted of
    both: what the plan's code needs, where that was read, else what the plan does, and the time by the costs that were
    planned with. Or why there is none.
    """

    variant: str
    budget: Budget = None
    ms: Optional[float] = None
    peak_bytes: Optional[int] = None
    predicted_bytes: Optional[int] = None
    predicted_ms: Optional[float] = None
    reason: str = ""


@dataclass
class Curve:
    """What was measured; `str()` of it is a table."""

    device: str
    points: List[Point] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{'variant':<30} {'ms':>9} {'predicted':>9} {'peak':>10} {'predicted':>10}"]
        for point in self.points:
            if point.ms is None:
                lines.append(f"{point.variant:<30} {point.reason[:46]}")
            else:
                sizes = ["-" if n is None else size_text(n) for n in (point.peak_bytes, point.predicted_bytes)]
                predicted = "-" if point.predicted_ms is None else f"{point.predicted_ms:.2f}"
                lines.append(f"{point.variant:<30} {point.ms:>9.2f} {predicted:>9} {sizes[0]:>10} {sizes[1]:>10}")
        return "\n".join(lines)

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names = ("variant", "budget", "ms", "predicted_ms", "peak_bytes", "predicted_bytes", "reason")
        writer.writerow(names)
        for point in self.points:
            values = [getattr(point, name) for name in names]
            writer.writerow(["" if value is None else value for value in values])
        return out.getvalue()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """As CSV, or as a plot (.png, .svg, .pdf), which needs matplotlib."""
        path = pathlib.Path(path)
        if path.suffix == ".csv":
            path.write_text(self.csv())
        else:
            self._plot(path)

    def _plot(self, path: pathlib.Path) -> None:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise UsageError(f"{path}: a plot needs matplotlib; .csv needs nothing") from None
        figure = Figure(figsize=(7, 4.5))
        axes = figure.subplots()
        known = [point for point in self.points if point.ms is not None and point.peak_bytes is not None]
        ours = sorted(
            (point for point in known if point.variant.startswith("remat")), key=lambda point: point.peak_bytes or 0
        )
        axes.plot(
            [(point.peak_bytes or 0) / 2**20 for point in ours], [point.ms for point in ours], "o-", label="remat"
        )
        for point in known:
            if point not in ours:
                axes.plot([(point.peak_bytes or 0) / 2**20], [point.ms], "s", label=point.variant)
        axes.set(xlabel="peak, MiB", ylabel="ms per step", title=self.device)
        axes.legend()
        figure.savefig(path)


# ---- one variant ----


@contextlib.contextmanager
def _untouched(model: torch.nn.Module) -> Iterator[None]:
    """Gradients, buffers and generators are put back."""
    gradients = [parameter.grad for parameter in model.parameters()]
    buffers = [buffer.detach().clone() for buffer in model.buffers()]
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    with torch.random.fork_rng(devices):
        try:
            for parameter in model.parameters():
                parameter.grad = None
            yield
        finally:
            with torch.no_grad():
                for buffer, before in zip(model.buffers(), buffers):
                    buffer.copy_(before)
            for parameter, gradient in zip(model.parameters(), gradients):
                parameter.grad = gradient


def _stepper(
    function: Callable[..., Any],
    model: torch.nn.Module,
    arguments: Tuple[Tuple[Any, ...], Dict[str, Any]],
    loss: Optional[Callable[..., torch.Tensor]],
) -> Callable[[], None]:
    def step() -> None:
        result = function(*arguments[0], **arguments[1])
        tensors = _tensors(result)
        target = (
            loss(result)
            if loss is not None
            else tensors[0]
            if tensors and tensors[0].dim() == 0
            else sum(t.float().mean() for t in tensors if t.requires_grad)
        )
        if not isinstance(target, torch.Tensor) or not target.requires_grad:
            raise UsageError("nothing to measure: no result needs a gradient")
        target.backward()
        for parameter in model.parameters():
            parameter.grad = None

    return step


def _measured(step: Callable[[], None], device: torch.device, steps: int) -> Tuple[float, Optional[int]]:
    """Median milliseconds of a step, and its peak on CUDA."""
    cuda = device.type == "cuda"
    for _ in range(2):
        step()
    if cuda:
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        if cuda:
            torch.cuda.synchronize(device)
        times.append(1e3 * (time.perf_counter() - began))
    return sorted(times)[len(times) // 2], torch.cuda.max_memory_allocated(device) if cuda else None


class _Bench:
    """What all variants of a call have in common."""

    def __init__(
        self,
        model: torch.nn.Module,
        inputs: Any,
        loss: Optional[Callable[..., torch.Tensor]],
        steps: int,
        options: Dict[str, Any],
    ):
        if not isinstance(model, torch.nn.Module):
            raise UsageError(f"an nn.Module is measured, not a {type(model).__name__}")
        self.model = getattr(model, "_orig_mod", model)
        self.arguments = (
            ((), inputs)
            if isinstance(inputs, dict)
            else (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,), {})
        )
        self.loss, self.steps, self.options = loss, steps, options
        self.device = next((p.device for p in self.model.parameters()), torch.device("cpu"))

    def run(self, point: Point, rules: Dict[str, Any], compile: Callable[[Any], Any]) -> Point:
        """Fills in a point. Memory that runs out, a budget that nothing fits and what the compiler refuses are
        reasons; the next variant is measured all the same.
        """
        torch._dynamo.reset()
        before = len(reporting.reports())
        try:
            with _untouched(self.model), torch._functorch.config.patch(rules):
                point.ms, point.peak_bytes = _measured(
                    _stepper(compile(self.model), self.model, self.arguments, self.loss), self.device, self.steps
                )
        except (torch._dynamo.exc.BackendCompilerFailed, torch.OutOfMemoryError, Error) as error:
            if isinstance(error, UsageError):
                raise
            inner = getattr(error, "inner_exception", None) or error
            point.reason = str(inner).splitlines()[0] if str(inner) else type(inner).__name__
        finally:
            torch._dynamo.reset()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
        made = reporting.reports()[before:]
        if point.ms is not None and made:
            last = made[-1]
            point.predicted_bytes = last["graphs"] == 1 and last["generated_peak_bytes"] or last["step_peak_bytes"]
            times = [report["modelled_ms"] for report in made[-last["graphs"] :]]
            point.predicted_ms = None if None in times else sum(times)
            point.peak_bytes = point.peak_bytes or point.predicted_bytes
            point.reason = "" if last["planned"] else last["reason"]
        return point

    def ours(self, budget: Budget) -> Point:
        name = f"remat {size_text(budget) if isinstance(budget, int) else budget}"
        options = {"kernels": "inductor", **self.options, "budget": budget}
        return self.run(
            Point(name, budget), {}, lambda model: torch.compile(model, backend="remat", dynamic=False, options=options)
        )

    def torchs(self, name: str) -> Point:
        return self.run(Point(name), PEERS[name], lambda model: torch.compile(model, dynamic=False))


def _each(whats: Sequence[Tuple[str, Callable[[], Point]]], curve: Curve, progress: bool) -> Curve:
    """Measures one after another; on a terminal a bar says how far it is."""
    shown = progress and sys.stderr.isatty()
    for done, (name, measure) in enumerate(whats):
        if shown:
            bar = "#" * (20 * done // len(whats))
            sys.stderr.write(f"\r\033[K[{bar:<20}] {done}/{len(whats)} {name}"[:80])
            sys.stderr.flush()
        curve.points.append(measure())
    if shown:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
    return curve


# ---- what is asked for ----


def curve(
    model: torch.nn.Module,
    inputs: Any,
    budgets: Sequence[Budget] = ("100%", "80%", "60%", "40%", "min"),
    *,
    loss: Optional[Callable[..., torch.Tensor]] = None,
    steps: int = 5,
    peers: Sequence[str] = tuple(PEERS),
    progress: bool = True,
    **options: Any,
) -> Curve:
    """Time and peak of a training step at each budget, and with torch's own choices (`peers`). `inputs`: what the
    model is called with, a tensor, a tuple or a dict of keywords; `loss(result)` gives what is differentiated, by
    default the result if it is a scalar, else the mean of all. `options` are those of the backend; kernels are
    Inductor's unless they say otherwise.
    """
    unknown = [name for name in peers if name not in PEERS]
    if unknown:
        raise UsageError(f"peers={unknown[0]!r}: {', '.join(PEERS)}")
    for budget in budgets:
        check_budget(budget)
    bench = _Bench(model, inputs, loss, steps, options)
    whats = [(name, lambda name=name: bench.torchs(name)) for name in peers] + [
        (f"remat {budget}", lambda budget=budget: bench.ours(budget)) for budget in budgets
    ]
    return _each(whats, Curve(str(bench.device)), progress)  # type: ignore[arg-type]


def free_bytes(device: torch.device) -> int:
    """What a step may have in all: free memory, and what this process holds already."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def tune(
    model: torch.nn.Module,
    inputs: Any,
    *,
    memory: Union[int, str, None] = None,
    loss: Optional[Callable[..., torch.Tensor]] = None,
    steps: int = 5,
    progress: bool = True,
    **options: Any,
) -> Point:
    """The fastest variant that was measured to fit `memory` (by default what is free on the device, less 3 % for
    fragmentation; what the optimizer will need is to be taken off by `reserve=`): torch's own choice where that
    fits, else one of a few budgets. Its `budget` goes into the options of the backend.
    """
    bench = _Bench(model, inputs, loss, steps, options)
    limit = bytes_of(memory) if memory is not None else int(MARGIN * free_bytes(bench.device))
    plain = bench.ours("100%")
    if (
        plain.ms is not None
        and plain.peak_bytes is not None
        and plain.peak_bytes + bytes_of(options.get("reserve", 0)) <= limit
    ):
        return plain
    whats = [
        (f"remat {size_text(int(share * limit))}", lambda share=share: bench.ours(int(share * limit)))
        for share in LOWER
    ]
    found = _each(whats, Curve(str(bench.device)), progress).points  # type: ignore[arg-type]
    fitting = [point for point in found if point.ms is not None and (point.peak_bytes or 0) <= limit]
    if not fitting:
        reasons = (
            "; ".join(dict.fromkeys(point.reason for point in found if point.reason))
            or f"the smallest took {size_text(min(point.peak_bytes or 0 for point in found))}"
        )
        raise Error(f"nothing fits {size_text(limit)}: {reasons}")
    return min(fitting, key=lambda point: point.ms or 0.0)
