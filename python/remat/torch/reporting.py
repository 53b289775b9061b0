"""What was planned, for programs (`reports`, `last_report`) and for people (`report`); warnings, each line once; a line of progress while planning."""
from __future__ import annotations

import contextlib
import sys
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional

EMPTY: Dict[str, Any] = {name: None for name in (
    "graph", "planned", "reason", "device", "budget_bytes", "peak_bytes", "keep_all_peak_bytes", "need_bytes", "resident_bytes", "saved_bytes", "overhead", "bound_gap",
    "steps", "ops", "recomputed_ops", "replayed_ops", "pinned_ops", "strategy", "cost_model", "cached", "digest", "graphs", "graph_index", "step_peak_bytes",
    "step_keep_all_bytes", "outside_bytes", "later_bytes", "existing_gradient_bytes")}
EMPTY.update(reason="", recomputed_ops=0, replayed_ops=0, pinned_ops=0, overhead=0.0, cached=False, graphs=1, graph_index=0)

_reports: List[Dict[str, Any]] = []
_warned: set = set()


def last_report() -> Optional[Dict[str, Any]]:
    """What was last planned: a dict with the fields of `reports()`; None before the first plan."""
    return dict(_reports[-1]) if _reports else None


def reports() -> List[Dict[str, Any]]:
    """A dict for every graph planned in this process, all with the same fields (None where one does not apply): graph, planned (False: torch's own partition, and
    `reason`), device, budget_bytes, peak_bytes, keep_all_peak_bytes, need_bytes, resident_bytes, saved_bytes, overhead, bound_gap, steps, ops, recomputed_ops,
    replayed_ops, pinned_ops, strategy, cost_model, cached, digest; graphs and graph_index (of how many in the step, which), step_peak_bytes,
    step_keep_all_bytes, outside_bytes, later_bytes, existing_gradient_bytes."""
    return [dict(report) for report in _reports]


def add(report: Dict[str, Any]) -> None:
    _reports.append(report)


def warn(line: str) -> None:
    if line not in _warned:
        _warned.add(line)
        warnings.warn(line, stacklevel=3)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Optional[Callable[[Any], bool]]]:
    """A callback for the planner that shows a line on a terminal once planning has taken a second; None where nobody would see it."""
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
