"""The graphs of one training step, which share one budget. torch.compile hands them over one at a time (a graph break, a loss that is compiled by
itself), and each is planned as it comes; the first step shows which of them run together and in which order. Before the second step they
are planned together and the new code is put in place of the old, while no backward is pending. A forward run that is still differentiated later (retain_graph)
needs the backward function of its own plan: the first saved tensor, which has no elements, carries the number of the plan in its shape (lower.token).

Memory. Graphs run as F1 F2 .. Fn Bn .. B2 B1. While graph i + 1 runs, graph i stands at its boundary: it holds what it saved and what it returned. So the
extra bytes of graph i + 1 at its peak are workspace of the boundary of graph i, and the gradients of later graphs' parameters stay from there on.
The first graph's peak, with everything resident of the others and existing .grad buffers counted, is the peak of the step.
"""
from __future__ import annotations

import itertools
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch import fx
from torch.multiprocessing.reductions import StorageWeakRef

from ..errors import BudgetError, size_text
from . import compiler, lower
from .compiler import Settings, Solution, Work
from .joint import is_scalar

_sessions: Dict[int, Tuple[Any, "Session"]] = {}
_records: "weakref.WeakValueDictionary[int, Record]" = weakref.WeakValueDictionary()  # the compiled functions hold them
_serials = itertools.count(1)


def session_of(options: Any, settings: Settings) -> "Session":
    """One session for each torch.compile call: the graphs of one call come with the same options object."""
    known = _sessions.get(id(options))
    if known is None or known[0] is not options or known[1].settings != settings:
        while len(_sessions) >= 256:  # the oldest; its compiled functions still work, each graph by itself
            del _sessions[next(iter(_sessions))]
        known = _sessions[id(options)] = (options, Session(settings))
    return known[1]


def _keys(values: Sequence[Any], device_type: str) -> Dict[int, int]:
    """Storages of tensors on the device, with their bytes."""
    found = {}
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == device_type:
            storage = value.untyped_storage()
            found[storage._cdata] = storage.nbytes()
    return found


def _donate_nothing() -> None:
    """Eager kernels write into no saved tensor, so a graph may be differentiated again (retain_graph); torch would refuse it for those that a backward pass may reuse."""
    context = torch._guards.TracingContext.try_get()
    donated = getattr(context.fw_metadata if context else None, "bw_donated_idxs", None)
    if donated:
        donated.clear()  # the list that torch looks at


class Record:
    """One joint graph of a session: its work, the plan in force, and the functions that torch calls."""

    def __init__(self, session: "Session", work: Work):
        self.session, self.work = session, work
        self.forward: Optional[Callable[[List[Any]], Any]] = None
        self.backwards: Dict[int, Callable[[List[Any]], Any]] = {}  # by the number of the plan; 0 is what torch compiled
        self.inputs: Dict[int, int] = {}
        self.outputs: Set[int] = set()
        self.watched = list(work.static or ())
        self.serial = next(_serials)
        _records[self.serial] = self

    def modules(self, solution: Solution) -> Tuple[fx.GraphModule, fx.GraphModule]:
        self.solution = solution
        made = lower.split(solution.joint, solution.schedule, len(self.backwards))
        self.n_sizes = sum(is_scalar(node) for node in made[0].graph.find_nodes(op="output")[0].args[0][self.work.num_fwd_outputs:])
        for side, module in zip(("forward", "backward"), made):
            module.meta["remat_record"] = (self.serial, side)
        return made

    def replace(self, solution: Solution) -> None:
        number = len(self.backwards)
        forward, backward = self.modules(solution)
        self.backwards[number] = lower.compile_boxed(backward)
        self.forward = lower.compile_boxed(forward)

    def run_forward(self, args: List[Any]) -> Any:
        session = self.session
        session.begin(self, args)
        recording, device_type = session.recording, self.solution.joint.device.type
        if recording:
            self.inputs = _keys(args, device_type)
        result = self.forward(args)  # type: ignore[misc]
        if recording:
            self.outputs = set(_keys(result[:self.work.num_fwd_outputs], device_type))
        token = result[self.work.num_fwd_outputs]
        session.pending.append((self, StorageWeakRef(token.untyped_storage())))
        return result

    def run_backward(self, args: List[Any]) -> Any:
        token = args[self.n_sizes]
        result = self.backwards[token.shape[1]](args)
        self.session.end(self)
        return result


class Session:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.sequence: List[Record] = []  # forward runs since the last time that nothing was pending
        self.backwards: List[Record] = []
        self.pending: List[Tuple[Record, Any]] = []  # forward runs whose backward may still come
        self.recording = settings.budget is not None
        self.fresh: List[Record] = []  # planned, not compiled yet
        self.together: Set[Tuple[int, ...]] = set()  # sequences that were planned
        self.gradient_bytes = 0  # existing .grad buffers, the most that were seen
        self.counted_bytes = 0  # of them, in the plans in force

    def see_gradients(self, tensors: Sequence[Any]) -> None:
        held = {}
        for tensor in tensors:
            if isinstance(tensor, torch.Tensor) and tensor.is_leaf and tensor.grad is not None:
                parts = (tensor.grad._indices(), tensor.grad._values()) if tensor.grad.layout is torch.sparse_coo else (tensor.grad,)
                held[id(tensor)] = sum(part.untyped_storage().nbytes() for part in parts)
        self.gradient_bytes = max(self.gradient_bytes, sum(held.values()))

    # ---- compile time ----

    def add(self, work: Work) -> Tuple[fx.GraphModule, fx.GraphModule]:
        """Plans a new graph: alone within the budget, or, behind another one in the same step, with the least memory until the step is known."""
        self._prune()
        later = bool(self.pending)
        solution = work.solve("min" if later and self.settings.budget is not None else self.settings.budget,
                              outside_bytes=self.settings.reserve + self.gradient_bytes)
        self.counted_bytes = self.gradient_bytes
        if solution.joint.dynamic:
            compiler._warn("remat: dynamic shapes: planned for the sizes at hand; at other sizes the plan is run as it is, and its peak grows and shrinks with them")
        self.recording = self.settings.budget is not None
        record = Record(self, work)
        self.fresh.append(record)
        made = record.modules(solution)
        compiler._reports.append(solution.report())
        return made

    def compile(self, module: fx.GraphModule, _inputs: Any) -> Any:
        """A module as a function of a boxed list: one that can be replaced, if it belongs to a planned graph."""
        _donate_nothing()
        run = lower.compile_boxed(module)
        identity, side = module.meta.get("remat_record", (None, None))
        record = _records.get(identity)
        if record is None:
            return run
        if side == "forward":
            record.forward = run
            self.fresh = [other for other in self.fresh if other is not record]
            boxed: Any = lambda args: record.run_forward(args)  # noqa: E731
        else:
            record.backwards[0] = run
            boxed = lambda args: record.run_backward(args)  # noqa: E731
        boxed._boxed_call = True
        return boxed

    # ---- run time ----

    def begin(self, record: Record, args: List[Any]) -> None:
        self._prune()
        if not self.pending:
            if self.sequence:
                self._finish()
            if self.settings.budget is not None:
                self._watch(record, args)
        if self.recording:
            self.sequence.append(record)

    def _prune(self) -> None:
        """Results that were dropped get no backward pass."""
        if self.pending:
            self.pending = [entry for entry in self.pending if not entry[1].expired()]

    def end(self, record: Record) -> None:
        for i in range(len(self.pending) - 1, -1, -1):
            if self.pending[i][0] is record:  # none: a second backward of one forward
                del self.pending[i]
                if self.recording:
                    self.backwards.append(record)
                break

    def _watch(self, record: Record, args: List[Any]) -> None:
        """Gradients that exist before a step are in memory too (accumulation); plans that did not count them are made again."""
        self.see_gradients([args[i] for i in record.watched if i < len(args)])
        if self.gradient_bytes > self.counted_bytes and not record.solution.joint.dynamic:
            compiler._warn(f"remat: {size_text(self.gradient_bytes)} of gradients exist before the step: planned again with them counted")
            self.counted_bytes = self.gradient_bytes
            self.together.clear()
            self._plan([record])
            self.recording = True

    def _finish(self) -> None:
        """A step is over: graphs that were met together for the first time are planned together."""
        sequence, backwards = self.sequence, self.backwards
        self.sequence, self.backwards, self.recording = [], [], False
        key = tuple(record.serial for record in sequence)
        if len(sequence) < 2 or key in self.together:
            return
        self.together.add(key)
        if len(set(key)) != len(key) or [record.serial for record in backwards] != list(reversed(key)):
            compiler._warn("remat: a graph runs several times before its backward pass, or backward passes are not in reverse order: "
                           "the budget holds for each graph alone, not for the step")
            return
        if any(record.solution.joint.dynamic for record in sequence):
            compiler._warn("remat: graphs with dynamic shapes are not planned together: the budget holds for each graph alone, not for the step")
            return
        compiler._warn(f"remat: the step has {len(sequence)} graphs: planned together for one budget (compiled once more)")
        self._plan(sequence)

    def _plan(self, records: List[Record]) -> None:
        """Plans the graphs of a step together and puts the code in place: the later ones keep as much as pays."""
        if any(record.forward is None or not record.backwards for record in records):
            compiler._warn("remat: this torch hides a compiled function: the plan stays as it is, and the budget holds for each graph alone")
            return
        resident: Dict[int, int] = {}
        made: Set[int] = set()
        for record in records:
            resident.update({key: n for key, n in record.inputs.items() if key not in made})
            made |= record.outputs
        outside = self.settings.reserve + self.counted_bytes
        if len(records) > 1:
            outside += sum(n for key, n in resident.items() if key not in records[0].inputs)
        keep_all = self._keep_all(records, outside)
        budget = self.settings.budget
        if isinstance(budget, str) and budget != "min":
            budget = compiler.bytes_of(budget, keep_all)
        best: Optional[List[Solution]] = None
        failure: Optional[BudgetError] = None
        for share in ((None, 0.5, "min") if len(records) > 1 else (None,)):
            try:
                found = self._solve(records, budget, outside, share)
            except BudgetError as error:
                failure = error
                continue
            if best is None or sum(s.verdict.cost for s in found) < sum(s.verdict.cost for s in best):
                best = found
            if budget != "min" and best[0].verdict.cost == best[0].info["keep_all_cost"]:
                break
        if best is None:
            assert failure is not None
            raise failure
        for index, (record, solution) in enumerate(zip(records, best)):
            record.replace(solution)
            compiler._reports.append(solution.report(
                graphs=len(records), graph_index=index, step_peak_bytes=best[0].verdict.peak_bytes, step_keep_all_bytes=keep_all,
                outside_bytes=outside if index == 0 else 0, later_bytes=solution.joint.later_bytes, existing_gradient_bytes=self.counted_bytes))

    def _solve(self, records: List[Record], budget: Any, outside: int, share: Any) -> List[Solution]:
        """From the last graph to the first. Later graphs get a share of what they would keep (None: all of it), the first one the budget."""
        found: List[Solution] = []
        later_bytes = later_gradients = 0
        for index in range(len(records) - 1, -1, -1):
            record = records[index]
            memory = dict(outside_bytes=outside if index == 0 else 0, later_bytes=later_bytes, later_gradients=later_gradients)
            if index == 0:
                limit = budget
            elif isinstance(share, float):
                info = record.work.keep_all_info(**memory)
                limit = info["resident_bytes"] + int(share * (info["keep_all_peak_bytes"] - info["resident_bytes"]))
            else:
                limit = share
            try:
                solution = record.work.solve(limit, **memory)
            except BudgetError:
                if index == 0:
                    raise
                solution = record.work.solve("min", **memory)
            found.insert(0, solution)
            later_bytes = solution.extra_bytes
            later_gradients += self._parameter_gradients(records, index, solution)
        return found

    def _parameter_gradients(self, records: List[Record], index: int, solution: Solution) -> int:
        """Bytes of the gradients that a graph leaves behind: of inputs that are no result of an earlier graph."""
        static = set(records[index].work.static or ())
        joint, total = solution.joint, 0
        for i, result in enumerate(joint.bwd_outputs):
            if isinstance(result, fx.Node) and i in static:
                total += joint.bytes_of(result.meta["val"])
        return total

    def _keep_all(self, records: List[Record], outside: int) -> int:
        """The peak of the whole step with everything kept."""
        return self._solve(records, None, outside, None)[0].verdict.peak_bytes  # type: ignore[return-value]
