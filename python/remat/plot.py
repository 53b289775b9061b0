"""Pictures of plans, drawn with matplotlib: the memory of every step, overhead against budget, strategies side by side,
and measured memory over what was predicted. Each function draws on `ax`, or on axes of a new figure, and returns the
axes. The program draws the same with `--svg`, without Python.

Rows are plans (`Graph.plan`, `Graph.curve`), or the objects that `remat curve --json` and `remat compare --json` print.

A plan fits every budget above its own, so a line holds its value to the right. A bound holds for every budget below its
own, so the shade holds its value to the left: no plan, of any planner, can be in it.

>>> import matplotlib
>>> matplotlib.use("Agg")
>>> import remat, remat.plot
>>> graph = remat.load("zoo:resnet18")
>>> axes = remat.plot.timeline(graph, graph.plan("70%", "rotor"))
>>> axes.get_xlabel()
'step of resnet18'
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from .core import Graph, Plan
from .errors import UsageError, size_text

Row = Union[Plan, Mapping[str, Any]]
Sample = Tuple[float, int]

# Those of Okabe and Ito; dashes and marks tell lines apart without colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b58900", "#7f8790")
MARKS, DASHES = "os^DvP", ("-", "--", ":", "-.", (0, (4, 2)), (0, (9, 2)))
SHADE = {"facecolor": "#8c959f40", "edgecolor": "#8c959f", "hatch": "\\\\\\", "linewidth": 0}


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "remat.plot draws with matplotlib, which is not here: pip install matplotlib (remat plan --svg FILE needs nothing)"
        ) from error
    return pyplot.subplots(figsize=(7.2, 3.6), layout="constrained")[1]


def _size_axis(axis: Any) -> None:
    """Bytes as people write them, at round numbers of a binary unit."""
    from matplotlib import ticker

    class Binary(ticker.MaxNLocator):  # type: ignore[misc, name-defined]
        def tick_values(self, low: float, high: float) -> Any:
            unit = 1024.0 ** max(0, (int(max(abs(low), abs(high), 1)).bit_length() - 1) // 10)
            return super().tick_values(low / unit, high / unit) * unit

    def text(x: float, _position: Any) -> str:
        power = min(5, max(0, (int(abs(x)).bit_length() - 1) // 10))
        return f"{x / 1024**power:.5g}" + (f" {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}" if x else "")

    axis.set_major_locator(Binary(nbins=7, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(ticker.FuncFormatter(text))


def _percent_axis(axis: Any) -> None:
    from matplotlib import ticker

    axis.set_major_formatter(ticker.PercentFormatter(1.0))


def _plain(name: str) -> str:
    """A name as text that matplotlib does not read as a formula, nor as a label to hide."""
    shown = "".join(c if c.isprintable() else "?" for c in name).replace("$", r"\$")
    return " " + shown if shown.startswith("_") else shown


def _legend(ax: Any) -> None:
    """Above the picture, so that it hides nothing."""
    n = len(ax.get_legend_handles_labels()[1])
    ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=min(n, 4), borderaxespad=0.2)


class _Point(NamedTuple):
    strategy: str
    budget_bytes: Optional[int]
    peak_bytes: Optional[int]
    overhead: Optional[float]  # None: it does not fit, or does not apply
    bound: Optional[float]  # no plan in any order has a lower overhead within this budget
    need_bytes: Optional[int]


def _point(row: Row) -> _Point:
    if isinstance(row, Plan):
        fields: Dict[str, Any] = row.summary
        bound = fields["any_order_cost"]
    else:
        fields = dict(row)
        bound = fields.get("any_order_bound_cost")
    try:
        once, cost, fits = fields["keep_all_cost"], fields["cost"], fields["within_budget"]
        strategy, budget, peak, need = (fields[key] for key in ("strategy", "budget_bytes", "peak_bytes", "need_bytes"))
    except KeyError as error:
        raise UsageError(
            f"a row has no {error.args[0]!r}: rows are plans, or objects of `remat curve --json`"
        ) from None

    def over(x: Optional[int]) -> Optional[float]:
        if x is None or not fits or once is None:
            return None
        return x / once - 1 if once else 0.0

    return _Point(strategy, budget, peak, over(cost), over(bound), need)


def _points(rows: Iterable[Row]) -> List[_Point]:
    points = [_point(row) for row in rows]
    if not points:
        raise UsageError("there is no row to draw")
    return points


def _stairs(ax: Any, values: Sequence[int], edges: Sequence[float], **look: Any) -> Any:
    return ax.stairs(values, edges, baseline=0 if look.get("fill") else None, **look)


def timeline(graph: Graph, plan: Union[Plan, Iterable[Any]], ax: Any = None, *, keep_all: bool = True) -> Any:
    """The memory of every step of a plan, or of bare steps, over that of keep-all; the budget is a dashed line.

    >>> import remat
    >>> graph = remat.load("zoo:resnet18")
    >>> line = timeline(graph, graph.plan("70%", "rotor")).patches[-1]
    >>> int(max(line.get_data().values)) <= graph.plan("70%", "rotor").peak_bytes
    True
    """
    if not isinstance(graph, Graph):
        raise UsageError(f"a timeline is of a Graph, not of {type(graph).__name__}")
    ax = _axes(ax)
    steps = plan.steps if isinstance(plan, Plan) else list(plan)
    memory = graph.memory(steps)
    if keep_all:
        before = graph.memory(graph.plan())
        _stairs(
            ax,
            before,
            range(len(before) + 1),
            fill=True,
            color="#9ccff0",
            label=f"keep-all, {size_text(max(before, default=0))}",
        )
    name = _plain(plan.strategy) if isinstance(plan, Plan) else "steps"
    _stairs(
        ax,
        memory,
        range(len(memory) + 1),
        color=COLOURS[0],
        linewidth=1.2,
        label=f"{name}, {size_text(max(memory, default=0))}",
    )
    if isinstance(plan, Plan) and plan.budget_bytes is not None:
        ax.axhline(
            plan.budget_bytes,
            color=COLOURS[1],
            linestyle="--",
            linewidth=1.4,
            label=f"budget, {size_text(plan.budget_bytes)}",
        )
    if memory:
        ax.plot([memory.index(max(memory)) + 0.5], [max(memory)], "o", color="black", markersize=4)
    ax.set(xlabel=_plain(f"step of {graph.name}" if graph.name else "step"), xlim=(0, None), ylim=(0, None))
    _size_axis(ax.yaxis)
    _legend(ax)
    return ax


def curve(rows: Iterable[Row], ax: Any = None) -> Any:
    """Overhead against budget, a line for each strategy among the rows; shaded is where no plan can be.

    >>> import remat
    >>> graph = remat.load("zoo:resnet18")
    >>> budgets = ["60%", "80%", "100%"]
    >>> axes = curve(graph.curve(budgets, "rotor") + graph.curve(budgets, "mincut"))
    >>> [line.get_label() for line in axes.lines]
    ['rotor', 'mincut']
    """
    points = [point for point in _points(rows) if point.budget_bytes is not None]
    ax = _axes(ax)
    names = list(dict.fromkeys(point.strategy for point in points))
    for k, name in enumerate(names):
        own = sorted((p.budget_bytes, p.overhead) for p in points if p.strategy == name and p.overhead is not None)
        ax.plot(
            [x for x, _ in own],
            [y for _, y in own],
            color=COLOURS[k % 6],
            linestyle=DASHES[k % 6],
            marker=MARKS[k % 6],
            markersize=5,
            drawstyle="steps-post",
            label=_plain(name),
        )
    proved = _bounds(points)
    if proved:
        ax.fill_between(
            [x for x, _ in proved], [y for _, y in proved], step="pre", label="proved: no plan is here", **SHADE
        )
    ax.set(xlabel="budget", ylabel="overhead", ylim=(0, None))
    _size_axis(ax.xaxis)
    _percent_axis(ax.yaxis)
    _legend(ax)
    return ax


def _bounds(points: Sequence[_Point]) -> List[Tuple[int, float]]:
    """(budget, bound), rising: the best that is proved at that budget or a larger one."""
    found: Dict[int, float] = {}
    best = None
    for point in sorted((p for p in points if p.budget_bytes is not None), key=lambda p: -(p.budget_bytes or 0)):
        if point.bound is not None:
            best = point.bound if best is None else max(best, point.bound)
        if best is not None and point.budget_bytes is not None:
            found[point.budget_bytes] = best
    return sorted(found.items())


def compare(rows: Iterable[Row], ax: Any = None) -> Any:
    """A bar for each row, as long as its overhead; the part above the best proved bound is hatched. The rows are of one
    budget.

    >>> import remat
    >>> graph = remat.load("zoo:resnet18")
    >>> axes = compare([graph.plan("70%", name) for name in ("mincut", "rotor")])
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['mincut', 'rotor']
    """
    points = _points(rows)
    if len({point.budget_bytes for point in points}) > 1:
        raise UsageError("rows of one budget compare; for several budgets there is curve()")
    ax = _axes(ax)
    bound = max((p.bound for p in points if p.bound is not None), default=0.0)
    for y, point in enumerate(points):
        if point.overhead is None:
            least = "" if point.peak_bytes is None else f": least peak {size_text(point.peak_bytes)}"
            ax.text(0, y, f" does not fit{least}" if least else " does not apply", va="center", color="#57606a")
            continue
        ax.barh(y, min(bound, point.overhead), height=0.6, color="#56b4e9")
        ax.barh(
            y,
            max(0.0, point.overhead - bound),
            left=min(bound, point.overhead),
            height=0.6,
            facecolor="#fbd38d",
            edgecolor="#c05600",
            hatch="////",
            linewidth=0,
        )
        ax.text(point.overhead, y, f" +{100 * point.overhead:.2f} %", va="center")
    ax.set_yticks(range(len(points)), [_plain(point.strategy) for point in points])
    most = max((p.overhead for p in points if p.overhead is not None), default=0.0)
    ax.set(xlabel="overhead; hatched: above what is proved", xlim=(0, 1.2 * most or 1), ylim=(len(points) - 0.5, -0.5))
    _percent_axis(ax.xaxis)
    return ax


def memory_of_snapshot(snapshot: Mapping[str, Any], device: int = 0) -> List[Sample]:
    """(seconds, bytes) behind every allocation and free that torch recorded:
    `torch.cuda.memory._record_memory_history()`, the step, then `torch.cuda.memory._snapshot()`. What was allocated
    before the recording counts: it is what is there at the end, less what the events changed.

    >>> snapshot = {"segments": [{"device": 0, "requested_size": 96}], "device_traces": [[
    ...     {"action": "alloc", "addr": 1, "size": 64, "time_us": 5},
    ...     {"action": "alloc", "addr": 2, "size": 32, "time_us": 7},
    ...     {"action": "free_completed", "addr": 2, "size": 32, "time_us": 9}]]}
    >>> memory_of_snapshot(snapshot)
    [(5e-06, 96), (7e-06, 128), (9e-06, 96)]
    """
    traces = snapshot.get("device_traces")
    if not traces or device >= len(traces) or not traces[device]:
        raise UsageError(
            f"the snapshot has no events of device {device}: call torch.cuda.memory._record_memory_history() before the step"
        )
    sizes: Dict[int, int] = {}
    changes: List[Tuple[float, int]] = []
    for event in traces[device]:
        at = event.get("time_us", len(changes)) / 1e6
        if event["action"] == "alloc":
            sizes[event["addr"]] = event["size"]
            changes.append((at, event["size"]))
        elif event["action"] == "free_completed":
            changes.append((at, -sizes.pop(event["addr"], event["size"])))
    there = sum(segment["requested_size"] for segment in snapshot["segments"] if segment.get("device", 0) == device)
    live = there - sum(change for _, change in changes)
    samples = []
    for at, change in changes:
        live += change
        samples.append((at, live))
    return samples


def measured(
    samples: Union[Mapping[str, Any], Iterable[Sample]],
    predicted: Sequence[int] = (),
    budget: Optional[int] = None,
    ax: Any = None,
    *,
    device: int = 0,
) -> Any:
    """Measured memory over what was predicted. `samples` are pairs (time or step, bytes), or a snapshot of torch
    (`memory_of_snapshot`), whose events are taken in order, since its clock is that of the host; `predicted` is the
    memory of every step (`Graph.memory`). Both lines go from the beginning to the end of the step.

    >>> import remat
    >>> graph = remat.load("zoo:resnet18")
    >>> plan = graph.plan("70%", "rotor")
    >>> axes = measured(list(enumerate(graph.memory(plan))), graph.memory(plan), plan.budget_bytes)
    >>> [text.get_text().split(",")[0] for text in axes.get_legend().get_texts()]
    ['predicted', 'measured', 'budget']
    """
    events = enumerate(y for _, y in memory_of_snapshot(samples, device)) if isinstance(samples, Mapping) else samples
    pairs = [(float(x), int(y)) for x, y in events]
    if not pairs:
        raise UsageError("there is no sample to draw")
    ax = _axes(ax)
    if predicted:
        edges = [i / len(predicted) for i in range(len(predicted) + 1)]
        _stairs(ax, predicted, edges, fill=True, color="#9ccff0", label=f"predicted, peak {size_text(max(predicted))}")
    first, span = pairs[0][0], (pairs[-1][0] - pairs[0][0]) or 1
    ax.plot(
        [(x - first) / span for x, _ in pairs],
        [y for _, y in pairs],
        color=COLOURS[0],
        linewidth=1.2,
        drawstyle="steps-post",
        label=f"measured, peak {size_text(max(y for _, y in pairs))}",
    )
    if budget is not None:
        ax.axhline(budget, color=COLOURS[1], linestyle="--", linewidth=1.4, label=f"budget, {size_text(budget)}")
    ax.set(xlabel="part of the step", xlim=(0, 1), ylim=(0, None))
    _size_axis(ax.yaxis)
    _percent_axis(ax.xaxis)
    _legend(ax)
    return ax
