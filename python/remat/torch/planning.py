"""One joint graph and one budget: the plan, its file on the disk, and what comes of it once it is lowered."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import re
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch import fx

from .. import core
from ..errors import BudgetError, Error, Infeasible, NotFound, size_text
from . import distributed, lower, measuring, reporting
from .joint import Joint, Unsupported, tensors_of
from .options import Budget, Settings, bytes_of

DEVICES = {"H200": "h200", "H100": "h100", "A100": "a100", "V100": "v100"}


def roofline(settings: Settings, device: torch.device) -> str:
    if settings.device:
        return f"roofline:{settings.device}"
    if device.type == "cuda" and torch.cuda.is_available():
        name = torch.cuda.get_device_name(device)
        return "roofline:" + next((known for part, known in DEVICES.items() if part in name), "h100")
    return "roofline:cpu"


def device_of_module(module: fx.GraphModule) -> torch.device:
    """An accelerator that a graph has tensors on, or the CPU."""
    found = {
        tensor.device
        for node in module.graph.nodes
        for _, tensor in tensors_of(node.meta.get("val"))
        if tensor.device.type not in ("cpu", "meta")
    }
    return min(found, key=str, default=torch.device("cpu"))


# ---- plans on the disk ----


def cache_folder(settings: Settings) -> Optional[pathlib.Path]:
    if not settings.cache:
        return None
    if isinstance(settings.cache, str):
        return pathlib.Path(settings.cache)
    base = os.environ.get("REMAT_CACHE_DIR")
    return (
        pathlib.Path(base)
        if base
        else pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "remat"
    )


def _cached(path: Optional[pathlib.Path], graph: core.Graph) -> Optional[core.Plan]:
    """A plan that lies on the disk, if the verifier takes it for this graph."""
    if path is None:
        return None
    try:
        plan = core.load(path)
        return plan if isinstance(plan, core.Plan) and graph.verify(plan) else None
    except Error:  # there is none, or something else lies there
        return None


class Made(NamedTuple):
    """A plan, whether it came from the disk, and the process that made it (None: there is one alone)."""

    plan: core.Plan
    cached: bool
    rank: Optional[int]


def make_plan(graph: core.Graph, settings: Settings, budget: Budget, keep_all_peak_bytes: int) -> Made:
    """A plan within the budget, the same in all processes that train together. Nothing fits: an error that says what
    would.
    """
    costs = [graph.op(op)["cost"] for op in range(graph.n_ops)] if graph.cost_model == "given" else graph.cost_model
    question = repr((graph.digest, costs, budget, settings.strategy, sorted(settings.search.items()), core.version()))
    here: List[Tuple[core.Plan, bool]] = []

    def find() -> bytes:
        here.append(_plan_here(graph, settings, budget, keep_all_peak_bytes, question))
        return here[0][0].to_bytes(compress=True) if distributed.together() else b""

    data, rank = distributed.shared(question, find)
    if not here and data is not None:
        plan = core.parse(data)
        if plan.digest != graph.digest or not graph.verify(plan):
            raise Error(f"the plan that process {rank} made is not one of this process's graph")
        return Made(plan, False, rank)
    return Made(*(here[0] if here else _plan_here(graph, settings, budget, keep_all_peak_bytes, question)), rank)


def _plan_here(
    graph: core.Graph, settings: Settings, budget: Budget, keep_all_peak_bytes: int, question: str
) -> Tuple[core.Plan, bool]:
    """A plan from the disk or from a search, and which."""
    folder, path = cache_folder(settings), None
    if folder is not None and budget is not None:
        path = folder / f"{hashlib.sha256(question.encode()).hexdigest()[:32]}.json.gz"
    plan = _cached(path, graph)
    if plan is not None:
        return plan, True
    with reporting.progress(f"planning {graph.n_ops} ops") as shown:
        plan = graph.plan(
            budget,
            None if budget is None and settings.strategy != "mincut" else settings.strategy,
            strict=False,
            progress=shown,
            **settings.search,
        )
        if plan.stopped == "signal":
            raise KeyboardInterrupt
        if plan.status:
            least = graph.plan("min", settings.strategy, strict=False, progress=shown, **settings.search)
            # a search that went for the least got there, the other did not
            if isinstance(budget, int) and least.peak_bytes <= budget and graph.verify(least):
                return least, False
            kind = Infeasible if plan.status == 10 else NotFound
            peak = min(plan.peak_bytes, least.peak_bytes)
            raise kind(
                f"{graph._why(plan)}; the least that was found to do is {peak} bytes ({size_text(peak)}, "
                f"{100 * peak / keep_all_peak_bytes:.1f} % of keep-all)",
                plan,
            )
    if path is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            plan.save(path)
        except OSError:
            pass  # a cache that cannot be written is no cache
    return plan, False


# ---- a joint graph to plan ----


@dataclass
class Solution:
    """A plan for one joint graph, lowered and verified."""

    joint: Joint
    schedule: List[int]
    plan: core.Plan
    verdict: core.Verdict
    info: Dict[str, Any]
    graph: core.Graph
    cached: bool
    budget_bytes: Optional[int]
    rank: Optional[int] = None  # of the process that planned; None: there is one alone
    asked: Budget = None  # the budget that the planner was asked for
    code_ns: Optional[float] = None  # that its code takes, by the bytes that its kernels read and write (fitting.py)
    drafts: Tuple[Any, ...] = ()  # code that was written of its halves (reading.py)
    reported: Optional[Dict[str, Any]] = None  # the report that was made of it

    def __deepcopy__(self, _memo: Any) -> "Solution":
        return self  # torch copies modules, with what their meta holds

    @functools.cached_property
    def code(self) -> Tuple[Any, ...]:
        """What runs, in order: solutions that differ in nothing else share a compiled function."""
        return tuple(
            entry for entry in (self.joint.ops[op] for op in self.schedule) if entry.kind not in ("before", "pass_on")
        )

    @property
    def again(self) -> int:
        """How many ops run again."""
        return len(self.schedule) - len(set(self.schedule))

    @property
    def extra_bytes(self) -> int:
        """What the graph needs at its peak besides what was there before it."""
        return self.verdict.peak_bytes - self.info["resident_bytes"]  # type: ignore[operator]

    @property
    def held_bytes(self) -> int:
        """What it holds between its forward and its backward pass, besides what was there before it."""
        at = self.schedule.index(self.joint.boundary)
        made = self.joint.tangent_bytes + self.joint.later_gradients
        return (
            self.graph.memory(self.schedule)[at]
            - self.info["resident_bytes"]
            - self.joint.document["nodes"][self.joint.boundary]["workspace"]
            - made
        )

    def report(self, **more: Any) -> Dict[str, Any]:
        plan, info, verdict = self.plan, self.info, self.verdict
        return {
            **reporting.EMPTY,
            "graph": plan.graph,
            "planned": True,
            "device": str(self.joint.device),
            "budget_bytes": self.budget_bytes,
            "peak_bytes": verdict.peak_bytes,
            "keep_all_peak_bytes": info["keep_all_peak_bytes"],
            "need_bytes": info["need_bytes"],
            "resident_bytes": info["resident_bytes"],
            "saved_bytes": plan.saved_bytes,
            "overhead": verdict.cost / info["keep_all_cost"] - 1 if info["keep_all_cost"] else 0.0,
            "modelled_ms": (self.code_ns or verdict.cost) / 1e6,
            "bound_gap": plan.gap,
            "steps": len(self.schedule),
            "ops": info["ops"],
            "recomputed_ops": self.again,
            "replayed_ops": len(self.joint.states_of or ()),
            "pinned_ops": info["pinned"],
            "strategy": plan.strategy,
            "cost_model": self.graph.cost_model,
            "cached": self.cached,
            "digest": plan.digest,
            "rank": self.rank,
            "step_peak_bytes": verdict.peak_bytes,
            "step_keep_all_bytes": info["keep_all_peak_bytes"],
            **more,
        }


def located(text: str, joint: Joint) -> str:
    """A message with the module behind the op that it names: "at tanh_backward in h.2"."""
    nodes = {entry.node.name: entry.node for entry in joint.ops if entry.node is not None}

    def with_module(found: "re.Match[str]") -> str:
        path = reporting.module_path(nodes.get(found[1]))
        return found[0] if path == reporting.NOWHERE else f"{found[0]} in {path}"

    return re.sub(r"(?<=needed at )(\w+)", with_module, text)


# what Joint is told of states of generators and copies of inputs
COPYING = frozenset(("states_of", "copies_of", "pin_readers", "free_copies"))


@dataclass
class Work:
    """A joint graph to plan, as AOTAutograd hands it over."""

    module: fx.GraphModule
    num_fwd_outputs: int
    static: Optional[Sequence[int]]
    settings: Settings

    signature: List[str] = field(default_factory=list)  # the joint graph as it came: a second trace must have the same
    # nanoseconds and workspaces of nodes, by name
    measured: Optional[Tuple[Optional[Dict[str, int]], Dict[str, int]]] = None
    solved: Dict[str, Any] = field(default_factory=dict)  # what was found, by question
    device: torch.device = torch.device("cpu")
    ONE_SCALE: ClassVar[bool] = True  # times are measured for all ops or for none

    @classmethod
    def of(
        cls,
        module: fx.GraphModule,
        _joint_inputs: Any,
        num_fwd_outputs: int,
        static: Optional[Sequence[int]],
        settings: Settings,
    ) -> "Work":
        return cls(
            module, num_fwd_outputs, static, settings, signature=[str(node.target) for node in module.graph.nodes]
        )

    def joint(self, **more: Any) -> Joint:
        """The remat graph; it is asked for many times, and made once for all questions that have the same one as
        their answer.
        """
        more = {name: value for name, value in self._telling(more).items() if value or name in COPYING}
        key = repr(("joint", any(self.measured or ()), sorted(more.items())))
        if key not in self.solved:
            self.solved[key] = self._joint(more, *(self.measured or (None, None)))
        return self.solved[key]

    def _joint(self, more: Dict[str, Any], costs: Any, workspaces: Any) -> Joint:
        return Joint(
            self.module,
            self.num_fwd_outputs,
            self.static,
            replay=self.settings.random == "replay",
            costs=costs,
            workspaces=workspaces,
            recompute=self.settings.recompute,
            **more,
        )

    def _telling(self, more: Dict[str, Any]) -> Dict[str, Any]:
        """What of it makes a difference: which states and copies there are makes none where there are none to choose
        from.
        """
        if COPYING.isdisjoint(more) or any(entry.kind in ("rng_state", "copy") for entry in self.joint().ops):
            return more
        return {name: value for name, value in more.items() if name not in COPYING}

    def measure(self) -> None:
        """Workspaces of ops on their device, and their times in place of the roofline: on CUDA, and where it is
        asked for. Ops that cannot be tried by themselves have no workspace, and then times are the roofline's for
        all (`ONE_SCALE`).
        """
        joint = self.joint()
        self.measured = None, {}
        if joint.device.type != "cuda" and self.settings.costs != "measure":
            return
        found, failed = self._measured(joint)
        if failed:
            whose = "times" if self.ONE_SCALE else "their times"
            reporting.warn(
                f"remat: {failed} ops could not be tried by themselves: {whose} are the roofline's, and their workspaces are not counted"
            )
        times = (
            None
            if failed and self.ONE_SCALE or self.settings.costs == "roofline"
            else {name: time for name, (time, _) in found.items()}
        )
        self.measured = times, {name: n for name, (_, n) in found.items()}

    def _measured(self, joint: Joint) -> Tuple[Dict[str, Tuple[int, int]], int]:
        """By name of the node, and how many could not be tried: the same in all processes that train together, or
        their plans would differ.
        """

        def find() -> bytes:
            found, failed = measuring.measured(joint, cache_folder(self.settings), channels_last=self.channels_last())
            return json.dumps([{node.name: both for node, both in found.items()}, failed]).encode()

        device = torch.cuda.get_device_name(joint.device) if joint.device.type == "cuda" else "cpu"
        data, _ = distributed.shared(repr(("measure", device, self.channels_last(), joint.graph().digest)), find)
        found, failed = json.loads(find() if data is None else data)
        return found, failed

    def channels_last(self) -> bool:
        """Whether convolutions run in that layout, whatever the graph says."""
        return False

    def keep_all_info(self, **memory: Any) -> Dict[str, Any]:
        """Numbers of the graph with everything kept: no state is copied, and of inputs that will be overwritten only
        those that the backward pass reads.
        """
        key = repr(("info", sorted(memory.items())))
        if key not in self.solved:
            graph = self.joint(states_of=set(), copies_of=self._needed_copies(), **memory).graph()
            self.solved[key] = graph.prepare(self._cost_model(self.device)).info()
        return self.solved[key]

    def _needed_copies(self) -> Set[fx.Node]:
        joint = self.joint()
        self.device = joint.device
        return lower.read_behind(joint, list(range(len(joint.ops))))

    def _cost_model(self, device: torch.device) -> str:
        return "given" if self.measured and self.measured[0] else roofline(self.settings, device)

    def solve(self, budget: Budget, **memory: Any) -> Solution:
        """A plan within the budget; `memory` is what Joint must know besides: other graphs of the step, sizes, what
        the caller holds.
        """
        key = repr((budget, sorted(memory.items())))
        if key not in self.solved:
            self.solved[key] = self._solve(budget, memory)
        return self.solved[key]

    def _solve(self, budget: Budget, memory: Dict[str, Any]) -> Solution:
        """States of generators and copies of inputs take memory, and a plan needs those that it reads. So a graph
        that has them all is planned first; where nothing fits there, and for the least memory, one that has none but
        what everything kept needs, too.
        """
        if self.measured is None:
            self.measure()
        base = self.keep_all_info(**memory)
        keep_all_peak_bytes = base["keep_all_peak_bytes"]
        if isinstance(budget, str) and budget != "min":
            budget = bytes_of(budget, keep_all_peak_bytes)
        full = self.joint(**memory)
        bare = self.joint(states_of=set(), copies_of=self._needed_copies(), pin_readers=True, **memory)
        found: List[Solution] = []
        # popped when raised: an exception that a frame of its traceback holds keeps the step's tensors alive
        failures: List[BudgetError] = []
        for joint in [full] if len(full.ops) == len(bare.ops) else [bare] if budget is None else [full, bare]:
            try:
                found.append(self._planned(joint, budget, memory, keep_all_peak_bytes))
            except BudgetError as error:
                failures = failures or [error.with_traceback(None)]
            if found and budget != "min":
                return found[0]
        if not found:
            assert isinstance(budget, int)
            if (
                isinstance(failures[0], Infeasible)
                and self.joint(free_copies=True, **memory).graph().info()["need_bytes"] <= budget
            ):
                # it was proved of a graph that has more in memory than a plan must have
                raise NotFound(str(failures[0]), failures[0].plan)
            raise failures.pop()
        return min(found, key=lambda solution: (solution.verdict.peak_bytes, solution.verdict.cost))

    def _planned(self, joint: Joint, budget: Budget, memory: Dict[str, Any], keep_all_peak_bytes: int) -> Solution:
        graph = joint.graph().prepare(self._cost_model(joint.device))
        try:
            plan, cached, rank = make_plan(graph, self.settings, budget, keep_all_peak_bytes)
        except BudgetError as error:
            raise type(error)(located(str(error), joint), error.plan) from None
        if any(step.kind != "run" for step in plan.steps):
            raise Unsupported("a plan that offloads")
        schedule = [step.index for step in plan.steps]
        budget_bytes: Any = plan.budget_bytes if budget == "min" else budget
        # States and inputs are copied only where something needs the copy; what is then in memory, and that it is
        # right, the verifier says.
        states_of, copies_of = lower.replayed_nodes(joint, schedule), lower.read_behind(joint, schedule)
        found = self._lowered(
            schedule,
            joint,
            states_of,
            copies_of,
            memory,
            dict(plan=plan, cached=cached, rank=rank, budget_bytes=budget_bytes, asked=budget),
            graph.cost_model,
        )
        # An op that copies the whole storage of what it reads takes more of an input than of the input's copy, which
        # the plan had and the lowered one has not.
        needs = found.verdict.peak_bytes
        if budget_bytes is None or needs <= max(budget_bytes, plan.peak_bytes):
            return found
        if budget == "min":
            return replace(found, budget_bytes=needs)
        raise NotFound(f"a plan within {size_text(budget_bytes)} needs {size_text(needs)} once it is lowered", plan)

    def _lowered(
        self,
        schedule: List[int],
        joint: Joint,
        states_of: Any,
        copies_of: Any,
        memory: Dict[str, Any],
        rest: Dict[str, Any],
        cost_model: str,
    ) -> Solution:
        final = self.joint(states_of=states_of, copies_of=copies_of, **memory)
        schedule = lower.translate(schedule, joint, final)
        graph = final.graph().prepare(cost_model)
        verdict = graph.verify(schedule)
        if not verdict:
            raise Unsupported(f"a plan that the verifier refuses once it is lowered ({verdict.reason})")
        base = self.keep_all_info(**memory)
        info = {**graph.info(), **{name: base[name] for name in ("keep_all_peak_bytes", "keep_all_cost")}}
        return Solution(joint=final, schedule=schedule, verdict=verdict, info=info, graph=graph, **rest)

    def split(self, solution: Solution) -> Tuple[fx.GraphModule, fx.GraphModule]:
        """The two halves of a solution, to be compiled."""
        return lower.split(solution.joint, solution.schedule)

    def torchs_own(self, joint_inputs: Any) -> Tuple[fx.GraphModule, fx.GraphModule]:
        """For a graph that is not planned."""
        from torch._functorch.partitioners import default_partition

        return default_partition(
            self.module, joint_inputs, num_fwd_outputs=self.num_fwd_outputs, static_lifetime_input_indices=self.static
        )

    def judge(self, solution: Solution, **memory: Any) -> Solution:
        """The same schedule with other things in memory besides."""
        return self._lowered(
            solution.schedule,
            solution.joint,
            solution.joint.states_of,
            solution.joint.copies_of,
            memory,
            dict(plan=solution.plan, cached=solution.cached, rank=solution.rank, budget_bytes=solution.budget_bytes),
            solution.graph.cost_model,
        )
