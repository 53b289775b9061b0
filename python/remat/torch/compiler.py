"""The backend of torch.compile: a partition function for AOTAutograd that plans the joint graph within a budget, and compilers that run the two
halves with eager kernels. Same kernels in the same order on the same numbers: gradients are bit-identical to keep-all.

What the planner cannot be trusted with (joint.Unsupported) gets torch's own partition and one warning with the reason.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import pathlib
import warnings
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch
from torch import fx

from .. import core
from .._context import Context
from .._native import lib
from ..errors import Error, Infeasible, NotFound, UsageError, size_text
from . import lower
from .joint import Joint, Unsupported

TRIED = ("2.11", "2.13")  # versions of torch whose joint graphs and calling convention were tested
OPTIONS = ("budget", "kernels", "strategy", "random", "recompute", "reserve", "device", "cache", "time", "work", "seed", "costs")
DEVICES = {"H200": "h200", "H100": "h100", "A100": "a100", "V100": "v100"}


@dataclass
class Settings:
    """The options of the backend, checked."""
    budget: Union[int, str, None] = None
    kernels: str = "eager"
    strategy: str = "auto"
    random: str = "replay"
    recompute: Tuple[str, ...] = ()  # ops outside aten and prims that are pure: "mylib::op", "mylib::*"
    reserve: int = 0
    device: Optional[str] = None
    cache: Union[bool, str] = True
    costs: Optional[str] = None
    search: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Dict[str, Any]) -> "Settings":
        unknown = [name for name in options if name not in OPTIONS]
        if unknown:
            raise UsageError(f"no option {unknown[0]!r} of the backend remat: {', '.join(OPTIONS)}")
        search = {name: options[name] for name in ("time", "work", "seed") if options.get(name) is not None}
        found = cls(search=search, **{name: value for name, value in options.items() if name not in ("time", "work", "seed")})
        if found.kernels != "eager":
            raise UsageError(f"kernels={found.kernels!r}: only 'eager' is there")
        if found.costs not in (None, "roofline", "measure"):
            raise UsageError(f"costs={found.costs!r}: 'roofline' or 'measure'")
        if found.random not in ("replay", "pin"):
            raise UsageError(f"random={found.random!r}: 'replay' or 'pin'")
        if found.strategy not in core.strategies():
            raise UsageError(f"no strategy {found.strategy!r}: {', '.join(core.strategies())}")
        names = (found.recompute,) if isinstance(found.recompute, str) else tuple(found.recompute)
        for name in names:
            if not isinstance(name, str) or "::" not in name:
                raise UsageError(f"recompute={name!r}: names of ops, like 'mylib::op' or 'mylib::*'")
        found.recompute = names
        found.reserve = bytes_of(found.reserve)
        if found.budget is not None and found.budget != "min":
            bytes_of(found.budget, 1)  # refused here, before anything is traced
        return found


def bytes_of(text: Union[int, str], whole: Optional[int] = None) -> int:
    """Bytes of "8GiB", "900MB", 4096, and of "50%" if it is said what the whole is."""
    if not isinstance(text, str):
        return core.byte_count(text)
    if text.strip().endswith("%") and whole is None:
        raise UsageError(f"{text!r}: bytes are wanted here")
    out = ctypes.c_int64()
    with Context() as context:
        context.check(lib.remat_budget_parse(context.handle, text.encode(), whole or 0, ctypes.byref(out)))
    return out.value


# ---- reports ----

_reports: List[Dict[str, Any]] = []
_warned: set = set()


def last_report() -> Optional[Dict[str, Any]]:
    """What was last planned: a dict with the fields of `reports()`; None before the first plan."""
    return dict(_reports[-1]) if _reports else None


def reports() -> List[Dict[str, Any]]:
    """A dict for every graph planned in this process: graph, planned (False: torch's own partition, and `reason`), budget_bytes, peak_bytes,
    keep_all_peak_bytes, need_bytes, resident_bytes, saved_bytes, overhead, bound_gap, steps, recomputed_ops, replayed_ops, pinned_ops, cached, digest."""
    return [dict(report) for report in _reports]


def _warn(line: str) -> None:
    if line not in _warned:
        _warned.add(line)
        warnings.warn(line, stacklevel=2)


# ---- planning ----

def _roofline(settings: Settings, device: torch.device) -> str:
    if settings.device:
        return f"roofline:{settings.device}"
    if device.type == "cuda" and torch.cuda.is_available():
        name = torch.cuda.get_device_name(device)
        return "roofline:" + next((known for part, known in DEVICES.items() if part in name), "h100")
    return "roofline:cpu"


def _cache_folder(settings: Settings) -> Optional[pathlib.Path]:
    if not settings.cache:
        return None
    if isinstance(settings.cache, str):
        return pathlib.Path(settings.cache)
    base = os.environ.get("REMAT_CACHE_DIR")
    return pathlib.Path(base) if base else pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "remat"


def _cached(path: Optional[pathlib.Path], graph: core.Graph) -> Optional[core.Plan]:
    """A plan that lies on the disk, if the verifier takes it for this graph."""
    if path is None or not path.exists():
        return None
    try:
        plan = core.load(path)
        return plan if isinstance(plan, core.Plan) and graph.verify(plan) else None
    except Error:
        return None


def make_plan(graph: core.Graph, settings: Settings, budget: Union[int, str, None], keep_all_peak_bytes: int) -> Tuple[core.Plan, bool]:
    """A plan within the budget, and whether it came from the disk. Nothing fits: an error that says what would."""
    folder, path = _cache_folder(settings), None
    if folder is not None and budget is not None:
        costs = [graph.op(op)["cost"] for op in range(graph.n_ops)] if settings.costs == "measure" else graph.cost_model
        key = repr((graph.digest, costs, budget, settings.strategy, sorted(settings.search.items()), core.version()))
        path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json.gz"
    plan = _cached(path, graph)
    if plan is not None:
        return plan, True
    plan = graph.plan(budget, None if budget is None else settings.strategy, strict=False, **settings.search)
    if plan.stopped == "signal":
        raise KeyboardInterrupt
    if plan.status:
        least = graph.plan("min", settings.strategy, strict=False, **settings.search)
        if isinstance(budget, int) and least.peak_bytes <= budget and graph.verify(least):  # a search that went for the least got there, the other did not
            return least, False
        kind = Infeasible if plan.status == 10 else NotFound
        peak = min(plan.peak_bytes, least.peak_bytes)
        raise kind(f"{graph._why(plan)}; the least that was found to do is {peak} bytes ({size_text(peak)}, "
                   f"{100 * peak / keep_all_peak_bytes:.1f} % of keep-all)", plan)
    if path is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            plan.save(path)
        except OSError:
            pass  # a cache that cannot be written is no cache
    return plan, False


@dataclass
class Solution:
    """A plan for one joint graph, lowered and verified."""
    joint: Joint
    schedule: List[int]
    plan: core.Plan
    verdict: core.Verdict
    info: Dict[str, Any]
    cost_model: str
    cached: bool
    budget_bytes: Optional[int]

    @property
    def extra_bytes(self) -> int:
        """What the graph needs at its peak besides what was there before it."""
        return self.verdict.peak_bytes - self.info["resident_bytes"]  # type: ignore[operator]

    def report(self, **more: Any) -> Dict[str, Any]:
        plan, info, verdict = self.plan, self.info, self.verdict
        return {"graph": plan.graph, "planned": True, "reason": "", "device": str(self.joint.device), "budget_bytes": self.budget_bytes,
                "peak_bytes": verdict.peak_bytes, "keep_all_peak_bytes": info["keep_all_peak_bytes"], "need_bytes": info["need_bytes"],
                "resident_bytes": info["resident_bytes"], "saved_bytes": plan.saved_bytes,
                "overhead": verdict.cost / info["keep_all_cost"] - 1 if info["keep_all_cost"] else 0.0, "bound_gap": plan.gap,
                "steps": len(self.schedule), "ops": info["ops"], "recomputed_ops": len(self.schedule) - len(set(self.schedule)),
                "replayed_ops": len(self.joint.states_of or ()), "pinned_ops": info["pinned"], "strategy": plan.strategy, "cost_model": self.cost_model,
                "cached": self.cached, "digest": plan.digest, **more}


@dataclass
class Work:
    """A joint graph to plan, as AOTAutograd hands it over."""
    module: fx.GraphModule
    num_fwd_outputs: int
    static: Optional[Sequence[int]]
    settings: Settings

    measured: Optional[Tuple[Dict[str, int], Dict[str, int]]] = None  # nanoseconds and workspaces of nodes, by name

    def joint(self, **more: Any) -> Joint:
        costs, workspaces = self.measured or (None, None)
        return Joint(self.module, self.num_fwd_outputs, self.static, replay=self.settings.random == "replay", costs=costs, workspaces=workspaces,
                     recompute=self.settings.recompute, **more)

    def measure(self) -> None:
        """Times every op with its real shapes on its device (and its workspace, on CUDA), in place of the roofline."""
        from .tracing import measure
        joint = self.joint()
        if joint.dynamic:  # there are no shapes to measure with
            return
        try:
            with torch._subclasses.fake_tensor.unset_fake_temporarily():
                found = measure(joint, joint.device)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            _warn(f"remat: ops could not be measured, the roofline is used: {str(error).splitlines()[0]}")
            return
        self.measured = {node.name: time for node, (time, _) in found.items()}, {node.name: n for node, (_, n) in found.items()}

    def keep_all_info(self, **memory: int) -> Dict[str, Any]:
        return self.joint(states_of=set(), copies_of=set(), **memory).graph().info()

    def solve(self, budget: Union[int, str, None], **memory: int) -> Solution:
        """A plan within the budget; `memory` is what Joint must know of other graphs."""
        if self.settings.costs == "measure" and self.measured is None:
            self.measure()
        joint = self.joint(**memory)
        graph = joint.graph().prepare("given" if self.measured else _roofline(self.settings, joint.device))
        keep_all_peak_bytes = self.keep_all_info(**memory)["keep_all_peak_bytes"]
        if isinstance(budget, str) and budget != "min":
            budget = bytes_of(budget, keep_all_peak_bytes)
        plan, cached = make_plan(graph, self.settings, budget, keep_all_peak_bytes)
        budget_bytes = plan.budget_bytes if budget == "min" else budget
        if any(step.kind != "run" for step in plan.steps):
            raise Unsupported("a plan that offloads")
        schedule = [step.index for step in plan.steps]
        # States and inputs are copied only where something needs the copy; what is then in memory, and that it is right, the verifier says.
        final = self.joint(states_of=lower.replayed_nodes(joint, schedule), copies_of=lower.read_behind(joint, schedule), **memory)
        schedule = lower.translate(schedule, joint, final)
        lowered = final.graph().prepare(graph.cost_model)
        verdict = lowered.verify(schedule)
        if not verdict:
            raise Unsupported(f"a plan that the verifier refuses once it is lowered ({verdict.reason})")
        if budget_bytes is not None and verdict.peak_bytes > max(budget_bytes, plan.peak_bytes):
            raise Unsupported("a plan that needs more memory once it is lowered")
        return Solution(final, schedule, plan, verdict, lowered.info(), graph.cost_model, cached, budget_bytes)


def _own_partition(module: fx.GraphModule, joint_inputs: Any, num_fwd_outputs: int, static: Optional[Sequence[int]], reason: str) -> Any:
    from torch._functorch.partitioners import default_partition
    _warn(f"remat: torch's own partition is used, without a budget: {reason}")
    _reports.append({"graph": "joint", "planned": False, "reason": reason})
    return default_partition(module, joint_inputs, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static)


def partition_fn(session: Any) -> Any:
    """A partition function for AOTAutograd; the session knows the other graphs of the step."""
    settings = session.settings

    def partition(module: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int, static_lifetime_input_indices: Optional[Sequence[int]] = None,
                  **_more: Any) -> Tuple[fx.GraphModule, fx.GraphModule]:
        if torch.__version__.split("+")[0].rsplit(".", 1)[0] not in TRIED:
            return _own_partition(module, joint_inputs, num_fwd_outputs, static_lifetime_input_indices,
                                  f"torch {torch.__version__} was not tried (tried: {', '.join(TRIED)})")
        try:
            return session.add(Work(module, num_fwd_outputs, static_lifetime_input_indices, settings))
        except Unsupported as error:
            return _own_partition(module, joint_inputs, num_fwd_outputs, static_lifetime_input_indices, f"the graph has {error}")

    return partition


def backend(module: fx.GraphModule, example_inputs: List[Any], *, options: Optional[Dict[str, Any]] = None, **more: Any) -> Any:
    """torch.compile(model, backend="remat", options={"budget": "8GiB"}); docs/pytorch.md has the options."""
    from torch._dynamo.backends.common import aot_autograd

    from .session import session_of
    session = session_of(options if options is not None else {}, Settings.of({**(options or {}), **more}))
    session.see_gradients(example_inputs)
    return aot_autograd(fw_compiler=session.compile, bw_compiler=session.compile, inference_compiler=session.compile,
                        partition_fn=partition_fn(session))(module, example_inputs)
