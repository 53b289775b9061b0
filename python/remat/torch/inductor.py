"""Plans with Inductor's kernels: `options={"kernels": "inductor"}`.

Problem. A plan must go through torch.compile's own pipeline (decompositions, passes over the joint graph, fusion, code)
and come out as it was made: what runs again runs again, and in the order of the plan.

Method. Inductor's entry point `compile_fx` does everything, with two things of ours in it. Its `custom_partitioner_fn`
is called with the joint graph behind Inductor's passes over it; a compilation of our own would have to repeat those,
and their order changes from version to version. And `inner_compile`, which is called with each half, is wrapped: what
it returns tells when a forward run is over and when its backward pass begins (steps.py).

The partition that everything starts from is torch's own min cut, and those that it makes for what people checkpoint by
hand (structures.py). The planner sees them as kernels (kernels.py). A plan that runs nothing again is torch's own two
modules, node for node; any other one is lowered from the joint graph (lower.py), and each of its nodes knows its step.
Inductor would merge kernels that read the same tensors, however far apart the plan put them, and hold dead buffers for
later ones of their size. In a plan it does neither: plans of a GPT needed up to a third more memory than planned so,
and 0 to 3 % more without, for 0 to 2 % of time by their code. What code a plan would come to is read before it is
compiled (reading.py), and the plan is chosen by that (fitting.py).

Caches. AOTAutograd's cache would skip the partition, and with it the plan, so it is off. Inductor's cache of code goes
by the two modules, and stays.

Invariant: what is not understood (Unsupported) is compiled with torch's own partition, so that a model that
torch.compile takes is never refused."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import pathlib
from dataclasses import dataclass, field, replace
from typing import Any, Callable, ClassVar, Dict, Iterator, List, Optional, Sequence, Set, Tuple
from unittest import mock

import torch
from torch import fx
from torch._guards import TracingContext

from .. import core
from ..errors import BudgetError, Error
from . import distributed, generated, lower, measuring, planning, reading, structures
from .fitting import Look
from .joint import SEEDS, Joint, Unsupported, is_random, is_scalar, mutated_input, storage_key, tensors_of
from .kernels import LAUNCH_NS, KernelJoint, schema_name, stitched
from .options import Budget, Settings, bytes_of
from .planning import Solution, Work, roofline

PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::convolution")
CPU_NS_PER_BYTE = 0.1  # where the bandwidth was not measured
# where plans start from besides torch's own partition: whatever is fusible runs again (None), or, by structures.py, every
# n-th waist is kept, and what besides
STARTS = (None, (2, "products"), (1, "products"), (2, "attention"), (1, "attention"), (2, "nothing"))
# steps of a plan within which kernels that read the same tensors may become one: 12 took up to 1.4 % more time by the
# code, and no less memory
NEAR = 40
# that a merged kernel reads and writes, at most. Torch's own have up to 17; one of 97, normalisations of many layers,
# took 4.8 ms where its bytes take 0.8
BUFFERS = 20
NEARLY = 1.03  # a partition that needs so much more than the budget by the model may still fit by its code
# in a node's meta: the step of the plan that it belongs to, and the op that it is a run of ("": it is computed where it
# is read)
STEP = "remat_step"

Modules = Tuple[fx.GraphModule, fx.GraphModule]


def own_partition(
    module: fx.GraphModule, joint_inputs: Any, num_fwd_outputs: int, static: Optional[Sequence[int]]
) -> Modules:
    """Torch's own: what Inductor does without a custom partitioner, but for what would be wrong."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    with contextlib.suppress(Unsupported):  # what is odd is not planned
        _save_what_reads_overwritten(module, num_fwd_outputs)
    with _attention_draws_nothing():
        return min_cut_rematerialization_partition(
            module,
            joint_inputs,
            compiler="inductor",
            num_fwd_outputs=num_fwd_outputs,
            static_lifetime_input_indices=static,
        )


def _save_what_reads_overwritten(module: fx.GraphModule, num_fwd_outputs: int) -> None:
    """What reads an input that the graph overwrites is not run again behind that. Torch's partitioner takes every
    input to be what it was.
    """
    from torch.utils.checkpoint import CheckpointPolicy

    held = _overwritten(module)
    for node in structures.forward_nodes(module.graph, num_fwd_outputs) if held else ():
        read = {storage_key(t) for source in node.all_input_nodes for _, t in tensors_of(source.meta.get("val"))}
        if read & held and not structures.is_view(node):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def _attention_draws_nothing() -> Any:
    """An attention without dropout that runs again needs no generator's state. Torch goes by the op's tag, and would
    wrap it in a block that people checkpoint.
    """
    from torch._functorch import partitioners

    def any_draws(module: fx.GraphModule) -> bool:
        return any(partitioners.must_recompute(node) and is_random(node) for node in module.graph.nodes)

    name = "has_recomputable_rng_ops"
    is_known = hasattr(partitioners, name) and hasattr(partitioners, "must_recompute")
    return mock.patch.object(partitioners, name, any_draws) if is_known else contextlib.nullcontext()


def _overwritten(module: fx.GraphModule) -> Set[Any]:
    """Which storages of inputs a graph overwrites, or torch does behind it."""
    (output,) = module.graph.find_nodes(op="output")
    results = torch.utils._pytree.arg_tree_leaves(output.meta.get("desc", []))
    described = [found for found in map(mutated_input, results) if found is not None]
    copies = module.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default)
    written: List[Any] = [node.args[0] for node in copies]
    written += [node for node in module.graph.find_nodes(op="placeholder") if node.meta.get("desc") in described]
    return {storage_key(tensor) for node in written for _, tensor in tensors_of(node.meta.get("val"))}


def _reads_overwritten(halves: Modules) -> bool:
    """Whether the backward half reads an input that the forward half overwrites."""
    held = _overwritten(halves[0])
    arguments = halves[1].graph.find_nodes(op="placeholder")
    return any(storage_key(tensor) in held for node in arguments for _, tensor in tensors_of(node.meta.get("val")))


def _crossing(halves: Modules) -> Tuple[str, ...]:
    """What a partition saves, by name."""
    return tuple(str(n) for n in halves[0].graph.find_nodes(op="output")[0].args[0])


def _twin(module: fx.GraphModule) -> fx.GraphModule:
    """The same module with a graph of its own: Inductor's passes rewrite what they are given."""
    made = fx.GraphModule(module, copy.deepcopy(module.graph), type(module).__name__)
    made.meta.update(module.meta)
    return made


@dataclass
class KernelWork(Work):
    """A joint graph to plan as kernels: `module` is both halves of torch's own partition in one, `own` the halves."""

    own: Any = None
    stitched: bool = False
    spare: Any = None  # the joint graph once more, until `others` were asked for
    content: Optional[str] = None  # a digest of the joint graph; None: nothing is remembered of it
    place: Optional[int] = None  # among STARTS; None: torch's own partition
    made: Dict[int, Any] = field(default_factory=dict)  # other starts, by place
    starts: List[Any] = field(default_factory=list)  # those that are not the same
    ONE_SCALE: ClassVar[bool] = False  # fused kernels have no measured times in any case
    ns_per_byte: float = 0.0  # that kernels take to read or write, measured; 0: by the roofline

    @classmethod
    def of(
        cls,
        module: fx.GraphModule,
        joint_inputs: Any,
        num_fwd_outputs: int,
        static: Optional[Sequence[int]],
        settings: Settings,
    ) -> "KernelWork":
        signature = [str(node.target) for node in module.graph.nodes]
        spare = content = None
        if settings.budget is not None:
            spare = _twin(module), joint_inputs  # torch's partitioner rewrites what it is given
            content = reading.content_of(module) if planning.cache_folder(settings) else None
        own = own_partition(module, joint_inputs, num_fwd_outputs, static)
        return cls(
            module, num_fwd_outputs, static, settings, own=own, spare=spare, content=content, signature=signature
        )

    def others(self, memory: Dict[str, Any]) -> List["KernelWork"]:
        """The same joint graph as torch partitions it under other rules: other places to start from. Those that
        cannot be planned, or would draw seeds, run what is not torch's again or read what was overwritten, are none.
        `memory`: of the first question about them.
        """
        if self.spare is not None:
            found = {_crossing(self.own): self}
            for place in range(len(STARTS)):
                made = self._start(place, memory)
                if made is not None:
                    found.setdefault(_crossing(made.own), made)
            self.spare = None
            self.starts = list(found.values())[1:]
        return self.starts

    def _start(self, place: int, memory: Dict[str, Any]) -> Optional["KernelWork"]:
        if place not in self.made:
            module, joint_inputs = self.spare
            self.made[place] = self._make_start(_twin(module), joint_inputs, place, memory)
        return self.made[place]

    def _make_start(
        self, module: fx.GraphModule, joint_inputs: Any, place: int, memory: Dict[str, Any]
    ) -> Optional["KernelWork"]:
        blocks = STARTS[place]
        try:
            if blocks is not None and not structures.tag(module, self.num_fwd_outputs, *blocks):
                return None
            structures.look_up_seeds(module)
            with torch._functorch.config.patch(aggressive_recomputation=blocks is None):
                own = own_partition(module, joint_inputs, self.num_fwd_outputs, self.static)
            first = {node.name for node in own[0].graph.nodes if node.op == "call_function"}
            again = [node for node in own[1].graph.nodes if node.op == "call_function" and not is_scalar(node)]
            if any(
                is_random(node) or schema_name(node) in SEEDS or node.name in first and not structures.is_torchs(node)
                for node in again
            ):
                return None
            made = KernelWork(
                module,
                self.num_fwd_outputs,
                self.static,
                self.settings,
                own=own,
                place=place,
                measured=self.measured,
                ns_per_byte=self.ns_per_byte,
            )
            made.keep_all_info(**memory)
            return made
        except Unsupported:
            return None

    def candidates(self, budget: Budget, nearly: bool = False, **memory: Any) -> List[Solution]:
        """Plans within the budget, the cheapest first: one from torch's own partition, one from each other partition
        that fits as it is, and one from the smallest of those that do not. `nearly`: and other partitions as they
        are that may fit once their code is read. "min": the plan of least memory from each partition, the smallest
        first.
        """
        if isinstance(budget, str) and budget != "min":
            budget = bytes_of(budget, self._keep_all(memory)["keep_all_peak_bytes"])
        found: List[Solution] = []
        failures: List[BudgetError] = []  # popped when raised, as in Work._solve
        try:
            found.append(super().solve(budget, **memory))
        except BudgetError as error:
            failures.append(error.with_traceback(None))
        if found and (budget is None or isinstance(budget, int) and not found[0].again):
            return found
        for other in self._worth(budget, memory):
            try:
                near = (
                    nearly
                    and isinstance(budget, int)
                    and budget < other._keep_all(memory)["keep_all_peak_bytes"] <= NEARLY * budget
                )
                found.append(self._from(other, None if near else budget, memory))
            except (BudgetError, Unsupported):
                pass
        if not found:
            raise failures.pop()
        least = budget == "min"
        return sorted(found, key=lambda s: (s.verdict.peak_bytes if least else 0, s.verdict.cost))

    def _from(self, start: "KernelWork", budget: Budget, memory: Dict[str, Any]) -> Solution:
        """A plan from one start; what it is compared with is torch's own partition."""
        solution, kept = Work.solve(start, budget, **memory), self._keep_all(memory)
        same = {name: kept[name] for name in ("keep_all_peak_bytes", "keep_all_cost")}
        return replace(solution, info={**solution.info, **same})

    def _worth(self, budget: Budget, memory: Dict[str, Any]) -> List["KernelWork"]:
        """The other starts that fit as they are, and the smallest of the rest; for the least memory all of them."""
        if budget == "min":
            return self.others(memory)
        peaks = []
        for i, other in enumerate(self.others(memory)):
            with contextlib.suppress(Unsupported):
                peaks.append((other._keep_all(memory)["keep_all_peak_bytes"], i))
        rest = sorted(peak for peak in peaks if not isinstance(budget, int) or peak[0] > NEARLY * budget)
        return [self.starts[i] for peak, i in peaks if (peak, i) not in rest[1:]]

    def solve(self, budget: Budget, **memory: Any) -> Solution:
        """A plan within the budget, from any start: the cheapest; "min": the smallest."""
        return self.candidates(budget, **memory)[0]

    def read(self, solution: Solution) -> Optional[Look]:
        """What the code of a plan would need and take: kernels of libraries as measured, fused ones by the bytes
        that their code reads and writes.
        """
        try:
            halves = self.split(solution)
        except Unsupported:  # another plan may do
            return None
        meta = halves[0].meta
        found, drafts = reading.read_once(
            planning.cache_folder(self.settings),
            (meta["remat_is_torchs"], meta["remat_layout"]),
            halves,
            meta["remat_residents"],
            self.num_fwd_outputs,
            _workspaces(solution),
            lambda: _as_planned(meta),
        )
        if found is None:
            return None
        rows = solution.joint.document["nodes"]
        library = sum(rows[op]["cost"] for op in solution.schedule if solution.joint.ops[op].kind == "node")
        fused = found.kernels * LAUNCH_NS + found.traffic_bytes * (self.ns_per_byte or CPU_NS_PER_BYTE)
        return Look(solution, 0, found.peak_bytes + solution.info["resident_bytes"], library + fused, drafts)

    def remember(self, look: Look, budget: Budget, **memory: Any) -> None:
        """What was chosen for a budget, on the disk, for the next process: which start, what was asked of it, and what
        the code needs.
        """
        owner = self._owner(look.solution)
        measuring.keep(self._chosen(budget, memory), json.dumps([owner.place, look.solution.asked, look.needs_bytes]))

    def recall(self, budget: Budget, **memory: Any) -> Optional[Look]:
        """What was remembered, planned and read: without the other starts, and mostly from the disk. None: nothing is
        known, or it comes to something else now. The same in all processes that train together.
        """
        path = self._chosen(budget, memory)
        if path is None:
            return None
        data, _ = distributed.shared(repr(("chosen", path.name)), lambda: measuring.kept(path))
        try:
            place, asked, needs = json.loads(data or b"")
            start = self if place is None else self._start(range(len(STARTS)).index(place), memory)
            look = self.read(self._from(start, asked, memory))
        except (ValueError, TypeError, LookupError, RecursionError, Error):  # something else lies there
            return None
        return look if look is not None and look.needs_bytes == needs else None

    def _chosen(self, budget: Budget, memory: Dict[str, Any]) -> Optional[pathlib.Path]:
        """Where it lies, by all that the choice depends on; None: nowhere."""
        if self.content is None:
            return None
        kept = self._keep_all(memory)
        costs = kept["keep_all_peak_bytes"], kept["keep_all_cost"], self.ns_per_byte
        settings = repr(replace(self.settings, budget=None, cache=True))
        question = (self.content, settings, budget, sorted(memory.items()), costs, self.num_fwd_outputs)
        return reading.file_of(planning.cache_folder(self.settings), "chosen", (*question, core.version()))

    def _keep_all(self, memory: Dict[str, Any]) -> Dict[str, Any]:
        if self.measured is None:
            self.measure()
        return self.keep_all_info(**memory)

    def _owner(self, solution: Solution) -> "KernelWork":
        starts = filter(None, self.made.values())
        return next((start for start in starts if solution.joint.module is start.module), self)

    def is_own(self, solution: Solution) -> bool:
        """Whether a plan starts from what torch does by itself."""
        return solution.joint.module is self.module

    def judge(self, solution: Solution, **memory: Any) -> Solution:
        owner = self._owner(solution)
        return super().judge(solution, **memory) if owner is self else owner.judge(solution, **memory)

    def torchs_own(self, _joint_inputs: Any) -> Modules:
        return self.own

    def joint(self, **more: Any) -> Joint:
        if not self.stitched:
            if _reads_overwritten(self.own):
                raise Unsupported(
                    "a tensor that the forward pass overwrites, and that torch's own partition reads in the backward pass: "
                    'its gradients may be wrong, those with kernels="eager" are not'
                )
            self.module, self.stitched = stitched(*self.own, self.num_fwd_outputs), True
        return super().joint(**more)

    def _telling(self, more: Dict[str, Any]) -> Dict[str, Any]:
        return {name: value for name, value in more.items() if name not in planning.COPYING}  # KernelJoint has neither

    def _needed_copies(self) -> Set[fx.Node]:
        return set()

    def channels_last(self) -> bool:
        """Inductor's choice for the whole graph: another layout has other algorithms and workspaces."""
        from torch._inductor.graph import GraphLowering

        try:
            return bool(GraphLowering.decide_layout_opt(self.own[0], is_inference=False))
        except Exception:  # internals of another version
            return False

    def measure(self) -> None:
        super().measure()
        device = self.joint().device
        if device.type == "cuda" and self.measured is not None and self.measured[0] is not None:
            # one for all processes that train together, as the times of ops are: costs are part of what they agree on
            question = repr(("bandwidth", torch.cuda.get_device_name(device)))
            data, _ = distributed.shared(question, lambda: self._bandwidth(device))
            self.ns_per_byte = float(self._bandwidth(device) if data is None else data)
            self.solved.clear()

    def _bandwidth(self, device: torch.device) -> bytes:
        return repr(measuring.ns_per_byte(device, planning.cache_folder(self.settings))).encode()

    def _joint(self, more: Dict[str, Any], costs: Any, workspaces: Any) -> Joint:
        return KernelJoint(
            self.module,
            self.num_fwd_outputs,
            self.static,
            roofline=roofline(self.settings, planning.device_of_module(self.module)),
            costs=costs,
            ns_per_byte=self.ns_per_byte,
            workspaces=workspaces,
            recompute=self.settings.recompute,
            **more,
        )

    def _cost_model(self, device: torch.device) -> str:
        return "given"

    def split(self, solution: Solution) -> Modules:
        halves = self._owner(solution)._halves(solution)
        residents = _residents(halves)
        for half, draft in itertools.zip_longest(halves, solution.drafts):
            half.meta["remat_draft"] = draft
            half.meta["remat_solution"] = solution
            half.meta["remat_residents"] = residents
            half.meta["remat_is_torchs"] = self.is_own(solution) and not solution.again
            half.meta["remat_layout"] = self.channels_last()
            half.meta["remat_products"] = sum(map(_is_product, half.graph.nodes))
        return halves

    def _halves(self, solution: Solution) -> Modules:
        tracked = self.settings.budget is not None
        if solution.schedule == list(range(len(solution.joint.ops))):
            forward, backward = map(_twin, self.own)
            if tracked:
                _add_token(forward, backward, self.num_fwd_outputs, solution.joint.device)
            return forward, backward
        return lower.split(solution.joint, solution.schedule, _token(solution.joint.device))


def _residents(halves: Modules) -> Set[str]:
    """The arguments of both halves that lie in inputs and parameters: torch may save views of them."""
    arguments = [
        [(node.name, node.meta.get("val")) for node in half.graph.find_nodes(op="placeholder")] for half in halves
    ]
    held = {storage_key(value) for _, value in arguments[0] if isinstance(value, torch.Tensor)}
    return {
        name
        for half in arguments
        for name, value in half
        if isinstance(value, torch.Tensor) and storage_key(value) in held
    }


def _is_product(node: fx.Node) -> bool:
    """What generated.py counts, too."""
    return schema_name(node) in PRODUCTS or schema_name(node).startswith("aten::_scaled_dot_product")


def _workspaces(solution: Solution) -> reading.Workspaces:
    """What libraries take for ops of each name while they run, in the order of the plan, in each half."""
    rows, found, behind = solution.joint.document["nodes"], ({}, {}), False
    for op in solution.schedule:
        entry = solution.joint.ops[op]
        behind = behind or entry.kind == "boundary"
        if entry.kind == "node" and entry.node is not None:
            name = schema_name(entry.node).rpartition("::")[2]
            found[behind].setdefault(name, []).append(rows[op].get("workspace", 0))
    return found


def _token(device: torch.device) -> Tuple[Callable[..., torch.Tensor], Tuple[Any, ...], Dict[str, Any]]:
    """A tensor without elements that Inductor can make (steps.py says what for)."""
    return torch.ops.aten.full.default, ([0], 0.0), {"dtype": torch.float32, "device": device, "pin_memory": False}


def _add_token(forward: fx.GraphModule, backward: fx.GraphModule, num_fwd_outputs: int, device: torch.device) -> None:
    """Saves a token in front of what is saved."""
    (output,) = forward.graph.find_nodes(op="output")
    results = list(output.args[0])
    target, args, kwargs = _token(device)
    with forward.graph.inserting_before(output):
        mark = forward.graph.call_function(target, args, kwargs)
    mark.meta["val"] = lower.fake_like(results + list(forward.graph.nodes), lambda: target(*args, **kwargs))
    results.insert(num_fwd_outputs, mark)
    output.args = (tuple(results),)
    if "desc" in output.meta:
        described = list(output.meta["desc"])
        unchecked = [bool(isinstance(n, fx.Node) and n.meta.get(lower.UNCHECKED)) for n in results[num_fwd_outputs:]]
        output.meta["desc"] = described[:num_fwd_outputs] + lower.saved_descriptions(unchecked)
    arguments = backward.graph.find_nodes(op="placeholder")
    place = sum(is_scalar(n) for n in results[num_fwd_outputs:])
    with backward.graph.inserting_before(arguments[place]) if place < len(arguments) else contextlib.nullcontext():
        backward.graph.placeholder(mark.name).meta = dict(mark.meta)
    forward.meta.update(remat_token=num_fwd_outputs)
    backward.meta.update(remat_token=place, remat_tangents=len(arguments) - len(results) + num_fwd_outputs + 1)
    forward.recompile()
    backward.recompile()


# ---- compiling ----


def source_of(code: Any) -> str:
    """The Python code that Inductor generated for a half, if it has any."""
    return getattr(code, "source_code", None) or ""


def _partitioner(partition: Callable[..., Modules]) -> Any:
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    class Partitioner(CustomPartitionerFn):
        """Inductor's cache goes by the two modules, and by the code that says what may be merged in them."""

        def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **more: Any) -> Modules:
            more.pop("compiler", None)
            if not joint_inputs:  # the body of a subgraph: its caller is not planned
                return own_partition(
                    gm, joint_inputs, more["num_fwd_outputs"], more.get("static_lifetime_input_indices")
                )
            return partition(gm, joint_inputs, **more)

        def uuid(self) -> Any:
            return "remat", reading.reader()

        def __reduce__(self) -> Any:
            return str, (repr(self.uuid()),)

    return Partitioner()


@contextlib.contextmanager
def _settings(both_halves: bool = False) -> Iterator[None]:
    """`both_halves`: the backward pass is compiled with the forward pass, not when it first runs: plans are
    corrected by what both need.
    """
    lazy = "force_non_lazy_backward_lowering"
    with torch._functorch.config.patch(
        {
            "enable_autograd_cache": False,
            **({lazy: True} if both_halves and hasattr(torch._functorch.config, lazy) else {}),
        }
    ):
        yield


def compile_module(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    partition: Callable[..., Modules],
    tracked: Callable[[Any, Dict[str, Any]], Any],
    seen: Callable[[Dict[str, Any], generated.Generated], None],
    settings: Settings,
) -> Callable[..., Any]:
    """What torch.compile's own backend would make of a module, but for the partition. `tracked(run, meta)` wraps the
    code of a half, `seen(meta, read)` is told what is in that code.
    """
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    def inner(half: fx.GraphModule, example_inputs: Sequence[Any], **more: Any) -> Any:
        # Inductor's cache would make it part of its key
        meta = {key: half.meta.pop(key) for key in list(half.meta) if key.startswith("remat_")}
        named = zip(half.graph.find_nodes(op="placeholder"), example_inputs)
        strides = {node.name: value.stride() for node, value in named if isinstance(value, torch.Tensor)}
        arguments = generated.arguments_of(half, meta.get("remat_residents", ()), strides)
        drafted = reading.compiling(meta.pop("remat_draft", None), half, example_inputs, "remat_tangents" in meta)
        with _settings(), _as_planned(meta) if "remat_token" in meta else contextlib.nullcontext(), drafted:
            code = compile_fx_inner(half, example_inputs, **more)
        if settings.budget is not None and more.get("is_backward") and hasattr(code, "current_callable"):
            code.current_callable = _retaining(code.current_callable, take_donated())
        if "remat_token" in meta:
            device = next(
                (
                    t.device.type
                    for node in half.graph.nodes
                    for _, t in tensors_of(node.meta.get("val"))
                    if t.device.type != "cpu"
                ),
                "cpu",
            )
            if source_of(code):
                taken = _workspaces(meta["remat_solution"])["remat_tangents" in meta]
                seen(meta, generated.read(source_of(code), arguments, device, taken))
            if not hasattr(code, "current_callable"):  # a half without a call is a function, not code
                return tracked(code, meta)
            code.current_callable = tracked(code.current_callable, meta)
        return code

    with _settings(both_halves=settings.budget is not None):
        return compile_fx(
            _twin(module),
            inputs,
            inner_compile=inner,
            config_patches={**settings.inductor, "custom_partitioner_fn": _partitioner(partition)},
        )


def take_donated() -> List[int]:
    """Places of the saved tensors that a backward half may write into. Torch would refuse to differentiate the graph
    again (retain_graph) for them; it does not any more.
    """
    context = TracingContext.try_get()
    places = getattr(context.fw_metadata if context else None, "bw_donated_idxs", None) or []
    found = list(places)
    places.clear()  # the list that torch looks at
    return found


def _retaining(run: Callable[[List[Any]], Any], donated: Sequence[int]) -> Callable[[List[Any]], Any]:
    """Runs a backward half on copies of what it may write into, where the graph is retained. Torch compiles the half
    when it first runs, and knows by then; with a budget it is compiled before.
    """
    if not donated:
        return run

    def retaining(args: List[Any]) -> Any:
        if torch._C._autograd._get_current_graph_task_keep_graph():
            for place in donated:
                args[place] = _copy_of(args[place])
        return run(args)

    boxed: Any = retaining
    boxed._boxed_call = True
    return boxed


def _copy_of(tensor: torch.Tensor) -> torch.Tensor:
    """With the same strides, and elements that share a place, if there are any."""
    copy = tensor.untyped_storage().clone()
    return tensor.new_empty(0).set_(copy, tensor.storage_offset(), tensor.shape, tensor.stride())


@contextlib.contextmanager
def _as_planned(meta: Dict[str, Any]) -> Iterator[None]:
    """Settings for a half of a plan; torch's own halves are left as they are. Inductor holds a buffer that is dead
    for another one of its size to come, however late: it is freed, and the allocator finds the next one. It chooses
    a layout for the convolutions of each half by itself: those that run again must not get another one than the
    first time.
    """
    from torch._inductor import config

    layout = {"force_layout_optimization": True} if meta["remat_layout"] else {"layout_optimization": False}
    with contextlib.ExitStack() as stack:
        if not meta["remat_is_torchs"]:
            stack.enter_context(_choices())
            stack.enter_context(_in_place_of_the_plan())
            stack.enter_context(config.patch({**layout, "allow_buffer_reuse": False}))
        yield


def _in_place_of_the_plan() -> Any:
    """Inductor writes a value to memory where its first reader needs it there, which may be long after the step that
    makes it; what that is computed from is held until then. A step's own value is written at its step; kernels are
    fused across it as before.
    """
    from torch._inductor.graph import GraphLowering
    from torch._inductor.ir import TensorBox

    lowered = GraphLowering.run_node

    def run_node(graph: Any, node: fx.Node) -> Any:
        result = lowered(graph, node)
        if node.meta.get(STEP, (0, ""))[1] and isinstance(result, TensorBox):
            result.realize()
        return result

    return mock.patch.object(GraphLowering, "run_node", run_node)


def _steps(node: Any) -> List[Tuple[int, str]]:
    """The steps of the plan that a node of Inductor's scheduler stands for, and what they run. Of what one kernel
    comes from the last is its own step: the others are computed again inside it.
    """
    origins = [
        [origin.meta[STEP] for origin in part.node.get_origins() if STEP in origin.meta]
        for part in node.get_nodes()
        if part.node is not None
    ]
    return [max(steps) for steps in origins if steps]


def _apart(first: List[Tuple[int, str]], second: List[Tuple[int, str]]) -> bool:
    """Whether a plan has two kernels far apart, or means one thing to run twice."""
    if not first or not second:
        return False
    gap = max(min(first)[0] - max(second)[0], min(second)[0] - max(first)[0])
    runs: Dict[str, Set[int]] = {}
    for step, name in first:
        if name:
            runs.setdefault(name, set()).add(step)
    return gap > NEAR or any(name in runs and step not in runs[name] for step, name in second)


def _is_crowded(scheduler: Any, first: Any, second: Any) -> bool:
    """Whether two nodes would be a kernel that holds more than registers do. What is made and read in it alone is
    none of its buffers.
    """
    if first.is_foreach() or second.is_foreach():
        return False
    used = first.used_buffer_names() | second.used_buffer_names()
    if len(used) <= BUFFERS:
        return False
    parts = [*first.get_nodes(), *second.get_nodes()]
    names = type(used)(part.get_name() for part in parts)
    inside = {
        name
        for part in parts
        for name in part.get_buffer_names()
        if scheduler.can_buffer_be_removed_through_fusion(name, names)
    }
    return len(used - inside) > BUFFERS


def _choices() -> Any:
    """Inductor's heuristics, but kernels that a plan has far apart are not merged because one reads what the other
    reads or makes: it would pull forward what the other waits for. Nor are two runs of one thing, ever, nor so many
    that what they read and write is more than a kernel can hold.
    """
    from torch._inductor.virtualized import V

    base = type(V.choices._get_handler()) if hasattr(V.choices, "_get_handler") else type(V.choices)

    class Choices(base):  # type: ignore[misc, valid-type]
        @staticmethod
        def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
            apart = _apart(_steps(node1), _steps(node2)) or _is_crowded(scheduler, node1, node2)
            return not apart and base.can_fuse(scheduler, node1, node2, shared_data_score)

    return V.set_choices_handler(Choices())
