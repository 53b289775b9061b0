"""What was planned, for programs (`reports`, `last_report`) and for people (`report`); warnings, each line once; a
line of progress while planning.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from ..errors import size_text

EMPTY: Dict[str, Any] = {
    name: None
    for name in (
        "graph",
        "planned",
        "reason",
        "device",
        "budget_bytes",
        "peak_bytes",
        "keep_all_peak_bytes",
        "need_bytes",
        "resident_bytes",
        "saved_bytes",
        "overhead",
        "modelled_ms",
        "bound_gap",
        "steps",
        "ops",
        "recomputed_ops",
        "replayed_ops",
        "pinned_ops",
        "strategy",
        "cost_model",
        "cached",
        "digest",
        "rank",
        "graphs",
        "graph_index",
        "step_peak_bytes",
        "step_keep_all_bytes",
        "outside_bytes",
        "later_bytes",
        "existing_gradient_bytes",
        "generated_peak_bytes",
    )
}
EMPTY.update(
    reason="", recomputed_ops=0, replayed_ops=0, pinned_ops=0, overhead=0.0, cached=False, graphs=1, graph_index=0
)

_reports: List[Dict[str, Any]] = []
_warned: set = set()


def last_report() -> Optional[Dict[str, Any]]:
    """What was last planned: a dict with the fields of `reports()`; None before the first plan."""
    return dict(_reports[-1]) if _reports else None


def reports() -> List[Dict[str, Any]]:
    """A dict for every graph planned in this process, all with the same fields (None where one does not apply):
    graph, planned (False: torch's own partition, and `reason`), device, budget_bytes, peak_bytes,
    keep_all_peak_bytes, need_bytes, resident_bytes, saved_bytes, overhead, modelled_ms (what the graph takes, by the costs
    that were planned with), bound_gap, steps, ops, recomputed_ops, replayed_ops, pinned_ops, strategy, cost_model, cached, digest, rank (of the process that planned, where several
    train together); graphs and graph_index (of how many in the step, which), step_peak_bytes, step_keep_all_bytes,
    outside_bytes, later_bytes, existing_gradient_bytes; generated_peak_bytes (what the code that Inductor generated
    needs, read from it).
    """
    return [dict(report) for report in _reports]


def add(report: Dict[str, Any], solution: Any = None) -> None:
    """`solution`: what was planned (planning.Solution). Those of the last step are kept, for `report`."""
    _reports.append(report)
    if solution is not None:
        solution.reported = report
    if report["graph_index"] == 0:
        _last.clear()
    if solution is not None:
        _last.append(solution)


def of(solution: Any) -> Dict[str, Any]:
    """The report of a solution, to be added to."""
    return solution.reported if solution.reported is not None else dict(EMPTY)


# ---- for people ----

_last: List[Any] = []
MOST_LINES = 8
NOWHERE = "(outside modules)"


def module_path(node: Any) -> str:
    """Where in the model a node of torch.fx comes from: "transformer.h.3.mlp"."""
    stack = (node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}) if node is not None else {}
    path = list(stack.values())[-1][0] if stack else ""
    path = re.sub(r"^L\['(\w+)'\]\.?", "", str(path))
    return re.sub(r"\._modules\['?(\w+)'?\]|\['?(\w+)'?\]", r".\1\2", path).lstrip(".") or NOWHERE


def _recomputed(solutions: Sequence[Any]) -> List[str]:
    """What runs again, by module, the dearest first."""
    found: Dict[str, List[int]] = {}
    for solution in solutions:
        seen = set()
        for op in solution.schedule:
            if op in seen:
                entry = found.setdefault(module_path(solution.joint.ops[op].node), [0, 0])
                entry[0] += 1
                entry[1] += solution.graph.op(op)["cost"]
            seen.add(op)
    ranked = sorted(found.items(), key=lambda item: -item[1][1])
    lines = [f"  {path}: {n} ops" for path, (n, _) in ranked[:MOST_LINES]]
    return lines + ([f"  and {len(ranked) - MOST_LINES} modules more"] if len(ranked) > MOST_LINES else [])


def _largest(solution: Any) -> List[str]:
    """The largest tensors in memory at the peak, and where they come from."""
    document, schedule = solution.joint.document, solution.schedule
    memory = solution.graph.memory(schedule)
    peak = memory.index(max(memory))
    made: Dict[int, int] = {}  # the step that made the newest instance of a storage, up to the peak
    needed: Dict[int, int] = {solution.joint.root(v): len(schedule) for v in document["outputs"]}
    for step, op in enumerate(schedule):
        for value in document["nodes"][op]["out"]:
            if step <= peak and "alias" not in document["values"][value]:
                made[value] = step
        for value in document["nodes"][op]["in"]:
            root = solution.joint.root(value)
            if step >= peak and step <= needed.get(root, step):
                needed.setdefault(root, step)
    makers = {value: op for op, node in enumerate(document["nodes"]) for value in node["out"]}
    live = sorted(
        ((document["values"][v].get("storage", document["values"][v]["size"]), v) for v in made if v in needed),
        reverse=True,
    )
    where = document["nodes"][schedule[peak]]["name"]
    lines = [f"at the peak ({where}, in {module_path(solution.joint.ops[schedule[peak]].node)}):"]
    for n_bytes, value in live[:MOST_LINES]:
        lines.append(
            f"  {size_text(n_bytes)}  {document['values'][value]['name']}, of {module_path(solution.joint.ops[makers[value]].node)}"
        )
    return lines


def report() -> str:
    """The step that was planned last, for people: budget and peak, what runs again and what takes the memory, by
    module.

    >>> import remat.torch
    >>> isinstance(remat.torch.report(), str)
    True
    """
    if not _reports:
        return "remat: nothing was planned yet"
    last = _reports[-1]
    if not last["planned"]:
        return f"remat: not planned: {last['reason']}"
    limit = "no budget" if last["budget_bytes"] is None else f"budget {size_text(last['budget_bytes'])}"
    graphs = f"{last['graphs']} graphs, " if last["graphs"] > 1 else ""
    costs = sum(s.verdict.cost for s in _last), sum(s.info["keep_all_cost"] for s in _last)
    again = sum(len(s.schedule) - len(set(s.schedule)) for s in _last)
    code = last["generated_peak_bytes"] if last["graphs"] == 1 else None
    by_code = f", by its code {size_text(code)}" if code is not None else ""
    lines = [
        f"remat: {graphs}{limit}, peak {size_text(last['step_peak_bytes'])}{by_code} (everything kept: {size_text(last['step_keep_all_bytes'])}); "
        f"{again} ops run again, {100 * (costs[0] / costs[1] - 1) if costs[1] else 0:.1f} % more modelled time"
    ]
    if again:
        lines += ["run again, the dearest modules first:", *_recomputed(_last)]
    if _last:
        lines += _largest(_last[0])
    return "\n".join(lines)


def warn(line: str) -> None:
    if line not in _warned:
        _warned.add(line)
        warnings.warn(line, stacklevel=3)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Optional[Callable[[Any], bool]]]:
    """A callback for the planner that shows a line on a terminal once planning has taken a second; None where nobody
    would see it.
    """
    if not sys.stderr.isatty():
        yield None
        return
    began, shown = time.monotonic(), [False]

    def show(_state: Any) -> bool:
        seconds = time.monotonic() - began
        if seconds > 1:
            shown[0] = True
            sys.stderr.write(f"\rremat: {what}, {seconds:.0f} s ")
            sys.stderr.flush()
        return False

    try:
        yield show
    finally:
        if shown[0]:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
