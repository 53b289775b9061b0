"""What the budget means for a training step, and how the graphs of a step share it.

The budget is for everything that is in memory during a step. A percentage is of what the step needs with everything
kept, and becomes a number of bytes at the first step that was seen whole; from then on those bytes count, whatever the
sizes of later batches. A budget that was met once never ends the training: where a later step does not fit, a warning
says what is missing, and the plan of least memory runs (`strict`: an error).

Memory. Graphs run as F1 F2 .. Fn Bn .. B2 B1, and one graph may take part several times. While graph i + 1 runs, graph
i stands at its boundary: it holds what it saved and what it returned, but for results that the next graph alone reads:
those are that graph's from then on. So the extra bytes of graph i + 1 at its peak are workspace of the boundary of
graph i, and the gradients of later graphs' parameters stay from there on. The peak of the first graph, with everything
resident of the others counted, is the peak of the step.

Method. From the last graph to the first, each graph but the first may hold a share of what it would hold with
everything kept (share 0: the least that was found); the first gets the budget. The largest share that fits is found
by bisection, and of all that were tried the cheapest step is taken."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

import torch
from torch.utils.weak import WeakIdKeyDictionary

from ..errors import BudgetError, size_text
from . import fitting, reporting, steps
from .joint import Unsupported
from .measuring import library_bytes
from .options import Budget, Settings, bytes_of
from .planning import Solution
from .steps import Run

ROUNDS = 4  # of bisection for the share
LOOKS = 2  # steps after the first one in which it is seen what lies between graphs


class Training:
    """What is known of the training of one model."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.budget_bytes: Optional[int] = None  # what a percentage came to
        self._parameters: Dict[int, Any] = {}  # that its graphs read: weak references, by id
        self.last: List[Run] = []  # the forward runs of the last step
        self.met = False  # there was a plan within the budget
        self.outside_bytes = 0  # .grad buffers that exist during the whole step (accumulation)
        self.before_bytes = 0  # those that the caller drops before the backward pass
        # sequences of graphs that were planned, with the sizes planned for
        self.known: Dict[Tuple[int, ...], List[Tuple[Tuple[int, ...], ...]]] = {}
        # results that were dropped before the backward pass in the step that was planned from
        self.dropped: Dict[Tuple[int, ...], List[Set[int]]] = {}
        self.looks: Dict[Tuple[int, ...], int] = {}  # how often a sequence was looked at again for more

    @property
    def budget(self) -> Budget:
        return self.budget_bytes if self.budget_bytes is not None else self.settings.budget

    def reads(self, parameters: Iterable[Any]) -> None:
        for leaf in parameters:
            known = self._parameters.get(id(leaf))
            if known is None or known() is not leaf:
                self._parameters[id(leaf)] = weakref.ref(leaf)

    def leaves(self) -> List[Any]:
        """The parameters that its graphs read."""
        return [leaf for leaf in (known() for known in self._parameters.values()) if leaf is not None]

    def outside(self, device: torch.device) -> int:
        """What is in memory besides, all the time."""
        return (
            self.settings.reserve
            + self.outside_bytes
            + (library_bytes(device) if self.settings.budget is not None else 0)
        )

    def covers(self, runs: Sequence[Run]) -> bool:
        """Such a step, or a larger one of the same graphs, was planned."""
        sizes = tuple(run.sizes for run in runs)
        return any(
            all(fits(run, planned) for run, planned in zip(sizes, known))
            for known in self.known.get(tuple(run.graph.serial for run in runs), ())
        )

    def learnt(self, runs: Sequence[Run]) -> None:
        key = tuple(run.graph.serial for run in runs)
        self.known.setdefault(key, []).append(tuple(run.sizes for run in runs))
        self.dropped[key] = [set(run.dropped) for run in runs]

    def drops_more(self, runs: Sequence[Run]) -> bool:
        """Whether results were dropped that were held in the step that was planned from: where graphs are compiled,
        the compiler may hold some.
        """
        key = tuple(run.graph.serial for run in runs)
        if len(runs) < 2 or self.looks.get(key, 0) >= LOOKS:
            return False
        self.looks[key] = self.looks.get(key, 0) + 1
        return any(set(run.dropped) - known for run, known in zip(runs, self.dropped.get(key, ())))


def fits(sizes: Sequence[int], planned: Sequence[int]) -> bool:
    return all(size <= most for size, most in zip(sizes, planned))


_trainings: Any = WeakIdKeyDictionary()  # of parameters


def training_of(parameters: Sequence[Any], settings: Settings) -> Training:
    """Graphs that read the same parameters, under the same options, belong to one training, whatever the sizes they
    were compiled for.
    """
    for parameter in parameters:
        found = _trainings.get(parameter)
        if found is not None and found.settings == settings:
            return found
    made = Training(settings)
    for parameter in parameters:
        _trainings[parameter] = made
    return made


# ---- when plans are made ----


def _solve_alone(graph: Any, work: Any, limit: Budget, sizes: Any) -> Solution:
    """One graph by itself, within the limit, or, once the budget was met, with the least memory and a warning."""
    training = graph.training
    memory = dict(sizes=sizes, outside_bytes=training.outside(graph.device), before_bytes=training.before_bytes)
    try:
        return work.solve(limit, **memory)
    except BudgetError as error:
        unknown = graph.is_part and isinstance(limit, str)  # a percentage of a step that is not known yet
        if not unknown:
            if not training.met or training.settings.strict:
                raise
            reporting.warn(f"remat: {error}: the plan of least memory is used")
        return work.solve("min", **memory)


def first_solution(graph: Any, work: Any) -> Solution:
    """For a graph that was just traced: alone within the budget, or, behind another one in the same step, with the
    least memory until the step is known.
    """
    training = graph.training
    alone = not any(run.graph.training.settings == training.settings for run in steps.of(graph.device).pending())
    found = _solve_alone(graph, work, training.budget if alone or training.settings.budget is None else "min", None)
    training.met = training.met or alone
    return found


def first_fitted(graph: Any, work: Any) -> Solution:
    """The same for Inductor's kernels: a plan whose code, read before it is compiled, keeps the budget (fitting.py), or
    needs least where the budget is "min". What was chosen once is remembered.
    """
    training = graph.training
    budget, least = training.budget, training.settings.budget == "min"
    if budget is None or graph.is_part or steps.of(graph.device).pending():
        return first_solution(graph, work)  # of a part of a step it is not known what it may need
    memory = dict(sizes=None, outside_bytes=training.outside(graph.device), before_bytes=training.before_bytes)
    look = work.recall(budget, **memory)
    if look is not None:
        training.met = True
        return _read(look, None if least else bytes_of(budget, look.solution.info["keep_all_peak_bytes"]))
    first = first_solution(graph, work)
    limit = first.budget_bytes
    if limit is None or not first.again and work.is_own(first):
        return first
    meets = least or limit == bytes_of(budget, first.info["keep_all_peak_bytes"])  # else it is the least instead

    def plan(room: int) -> List[Solution]:
        try:
            return work.candidates(room, nearly=True, **memory)
        except BudgetError:
            return work.candidates("min", **memory)

    fit = fitting.Fit(0 if least else limit, plan, work.read)
    look = fit.least() if least else fit.run(first)
    if look is None:
        return first
    if meets:
        work.remember(look, budget, **memory)
    return _read(look, None if least else limit)


def _read(look: fitting.Look, limit: Optional[int]) -> Solution:
    budget_bytes = look.solution.verdict.peak_bytes if limit is None else limit
    return replace(look.solution, budget_bytes=budget_bytes, code_ns=look.ns, drafts=look.drafts)


def unforeseen(run: Run, occurrence: int) -> Solution:
    """A plan for sizes that are larger than any before, or for one more run of a graph in a step than there ever
    was.
    """
    graph, training = run.graph, run.graph.training
    # others of the step are not known to leave more
    limit = "min" if occurrence > 0 or len(training.last) > 1 else training.budget
    try:
        found = _solve_alone(graph, graph.work, limit, graph.symbols(run.sizes))
    except Unsupported as error:
        if training.settings.strict:
            raise
        if occurrence:
            what, how = "one more run of a graph in a step was", "it runs a plan that is there"
        else:
            what, how = "larger sizes were", "they run the plan for smaller ones"
        reporting.warn(f"remat: {what} not planned ({error}): {how}")
        found = graph.plans[-1].solution
    graph.install(run.sizes, occurrence, found)
    reporting.add(found.report(existing_gradient_bytes=training.outside_bytes + training.before_bytes), found)
    return found


def begin(run: Run) -> None:
    """The first forward run of a step. Gradients that exist before it are in memory too; plans that did not count
    them are made again.
    """
    training = run.graph.training
    if run.before > max(training.outside_bytes, training.before_bytes):
        reporting.warn(
            f"remat: {size_text(run.before)} of gradients exist before the step: planned again with them counted"
        )
        training.outside_bytes, training.before_bytes = run.before, 0
        training.known.clear()
        again = (
            training.last
            if training.last and training.last[0].graph is run.graph and training.last[0].sizes == run.sizes
            else [run]
        )
        _plan(again, training)


def learn(runs: Sequence[Run], in_reverse: bool) -> None:
    """A step is over: these are its forward runs that got a backward pass. Those with the same options share a
    budget.
    """
    rest = list(runs)
    while rest:
        settings = rest[0].graph.training.settings
        _learn([run for run in rest if run.graph.training.settings == settings], in_reverse)
        rest = [run for run in rest if run.graph.training.settings != settings]
        if rest:
            reporting.warn("remat: graphs with different options run in one step: each budget counts its own graphs")


def _learn(runs: Sequence[Run], in_reverse: bool) -> None:
    """Graphs that were met together for the first time are planned together."""
    training = next((run.graph.training for run in runs if run.graph.parameters_read), runs[0].graph.training)
    for run in runs:
        if run.graph.training is not training:
            training.reads(run.graph.training.leaves())
            run.graph.training = training
    training.last = list(runs)
    first = runs[0]
    dropped_before = training.outside_bytes > 0 and first.before > 0 and not first.accumulates
    if dropped_before:  # the caller drops gradients between the forward and the backward pass
        training.outside_bytes, training.before_bytes = 0, training.outside_bytes
        training.known.clear()
    if training.covers(runs) and not training.drops_more(runs) or len(runs) == 1 and not dropped_before:
        if training.budget_bytes is None and len(runs) == 1 and training.settings.budget != "min":
            training.budget_bytes = first.graph.budget_bytes
        return
    if not in_reverse:
        training.learnt(runs)
        reporting.warn(
            "remat: backward passes are not in the reverse order of forward passes: the budget holds for each graph alone, not for the step"
        )
        return
    if len(runs) > 1:
        reporting.warn(f"remat: the step has {len(runs)} graphs: planned together for one budget (compiled once more)")
    _plan(runs, training)


def _plan(runs: Sequence[Run], training: Training) -> None:
    try:
        problem = _Step(runs, training)
        try:
            found = problem.solve()
        except BudgetError as error:
            if training.settings.strict:
                raise
            reporting.warn(f"remat: {error}: the step does not fit its budget, the plan of least memory is used")
            found = problem.least()
    except (BudgetError, Unsupported) as error:
        if training.settings.strict:
            raise
        reporting.warn(f"remat: the step was not planned ({error}): its plans stay as they are")
        training.learnt(runs)
        return
    training.learnt(runs)
    counts: Dict[int, int] = {}
    for index, (run, solution) in enumerate(zip(runs, found)):
        occurrence = counts[run.graph.serial] = counts.get(run.graph.serial, -1) + 1
        run.graph.install(run.sizes, occurrence, solution)
        reporting.add(
            solution.report(
                graphs=len(runs),
                graph_index=index,
                step_peak_bytes=found[0].verdict.peak_bytes,
                step_keep_all_bytes=problem.keep_all_bytes,
                budget_bytes=problem.budget_bytes,
                outside_bytes=problem.outside if index == 0 else 0,
                later_bytes=solution.joint.later_bytes,
                existing_gradient_bytes=training.outside_bytes + training.before_bytes,
            ),
            solution,
        )


# ---- how a step shares its budget ----


class _Step:
    """The forward runs of a step, to be planned together."""

    def __init__(self, runs: Sequence[Run], training: Training):
        self.runs, self.training = runs, training
        resident: Dict[int, int] = {}
        made: Set[int] = set()
        for run in runs:
            resident.update({key: n for key, n in run.inputs.items() if key not in made})
            made |= run.outputs.keys()
        self.outside = training.outside(runs[0].graph.device) + sum(
            n for key, n in resident.items() if key not in runs[0].inputs
        )
        self.dropped: List[List[int]] = [[] for _ in runs]
        self.passed_on: List[List[int]] = [[] for _ in runs]
        self.given: List[List[int]] = [[] for _ in runs]
        for index in range(len(runs) - 1):
            self._look_between(index)
        self.keep_all = self._chain(lambda index, memory: self._work(index).solve(None, **memory))
        self.keep_all_bytes: int = self.keep_all[0].verdict.peak_bytes  # type: ignore[assignment]
        budget = training.budget
        if isinstance(budget, str) and budget != "min":
            budget = training.budget_bytes = bytes_of(budget, self.keep_all_bytes)
        self.budget = budget
        self.budget_bytes = budget if isinstance(budget, int) else None

    def _work(self, index: int) -> Any:
        return self.runs[index].graph.work

    def _look_between(self, index: int) -> None:
        """Results that the caller dropped before the backward pass, because only later graphs of the step read them:
        held until the boundary; those that nothing but the next graph reads, as one argument, are passed on to it.
        """
        run, following = self.runs[index], self.runs[index + 1]
        later = {key for other in self.runs[index + 2 :] for key in other.inputs}
        joint = self._work(index + 1).joint()
        for position in run.dropped:
            key = run.results[position].cdata
            places = following.places.get(key, [])
            alone = (
                len(places) == 1
                and key not in later
                and sum(other is not None and other.cdata == key for other in run.results) == 1
            )
            if (
                alone
                and following.n_arguments == len(joint.primals)
                and key not in run.inputs
                and joint.can_be_given(places[0])
            ):
                self.passed_on[index].append(position)
                self.given[index + 1].append(places[0])
            elif places or key in later:
                self.dropped[index].append(position)

    def _chain(self, choose: Callable[[int, Dict[str, Any]], Solution]) -> List[Solution]:
        """A solution for each run, chosen from the last to the first; each knows what the later ones need."""
        found: List[Solution] = []
        later_bytes = later_gradients = 0
        for index in range(len(self.runs) - 1, -1, -1):
            run = self.runs[index]
            memory = dict(
                sizes=run.graph.symbols(run.sizes),
                dropped=tuple(self.dropped[index]),
                passed_on=tuple(self.passed_on[index]),
                given=tuple(self.given[index]),
                outside_bytes=self.outside if index == 0 else 0,
                before_bytes=self.training.before_bytes if index == 0 else 0,
                later_bytes=later_bytes,
                later_gradients=later_gradients,
            )
            solution = choose(index, memory)
            found.insert(0, solution)
            later_bytes = solution.extra_bytes
            later_gradients += sum(
                n for i, n in enumerate(solution.joint.gradient_bytes) if i in set(self._work(index).static or ())
            )
        return found

    def _shared(self, share: float, budget: Budget) -> List[Solution]:
        """Every graph but the first holds at most a share of what it would with everything kept."""

        def choose(index: int, memory: Dict[str, Any]) -> Solution:
            work = self._work(index)
            if index == 0:
                return work.solve(budget, **memory)
            # A later graph needs no more than a boundary as tight as its own peak: beyond that nothing but what it
            # holds counts, and the same plan serves every run that is followed by so much.
            own = work.solve(None, **{**memory, "later_bytes": 0})
            last = memory["later_bytes"] == 0
            near = {**memory, "later_bytes": min(memory["later_bytes"], own.extra_bytes)}
            least = work.solve("min", **near)
            most = work.solve(None, **near)
            if last:
                limit = least.extra_bytes + share * (own.extra_bytes - least.extra_bytes)
            else:
                after = max(near["later_bytes"], most.joint.tangent_bytes + near["later_gradients"])
                limit = after + least.held_bytes + share * (most.held_bytes - least.held_bytes)
            limit = int(limit) + least.info["resident_bytes"]
            solution = (
                least
                if limit <= least.verdict.peak_bytes
                else most
                if limit >= most.verdict.peak_bytes
                else work.solve(limit, **near)
            )
            return solution if near == memory else work.judge(solution, **memory)

        return self._chain(choose)

    def least(self) -> List[Solution]:
        return self._shared(0, "min")

    def solve(self) -> List[Solution]:
        """Within the budget, or BudgetError."""
        if self.budget is None or isinstance(self.budget, int) and self.keep_all_bytes <= self.budget:
            return self.keep_all
        if len(self.runs) == 1:
            return self._shared(0, self.budget)
        if self.budget == "min":
            return self.least()
        tried: Dict[float, Optional[List[Solution]]] = {}

        def fits_with(share: float) -> bool:
            try:
                tried[share] = self._shared(share, self.budget)
            except BudgetError:
                if share == 0:
                    raise
                tried[share] = None
            return tried[share] is not None

        low, high = 0.0, 1.0
        if fits_with(high):
            fits_with(0.5)
        elif fits_with(low):
            for _ in range(ROUNDS):
                middle = (low + high) / 2
                low, high = (middle, high) if fits_with(middle) else (low, middle)
        return min(
            (found for found in tried.values() if found),
            key=lambda found: sum(solution.verdict.cost for solution in found),
        )
