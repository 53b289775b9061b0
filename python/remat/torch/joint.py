"""A joint graph of AOTAutograd (torch.fx) as a remat graph: which tensors share a storage, what is random, what runs
once, where the forward pass ends. Everything that torch knows and the planner must; what is not understood raises
`Unsupported` and never guesses.

Invariant: entry i of `Joint.ops` says what op i of the remat graph stands for, and `Joint.values` what each tensor's
value is, so that a plan can be turned back into torch.fx nodes (lower.py).

Six kinds of op have no node of their own. `remat.boundary` (pinned) reads what the forward pass returns and makes the
tangents; it also makes a view of each returned tensor that is live to the end, because the caller holds it whatever the
plan does. `remat.rng_state` (pinned) copies the generator's state before a random op; the op reads that copy, so that
it can run again with it. `remat.copy` (pinned) copies an input that torch will overwrite after the forward pass
(running statistics), for ops that read its old contents behind the boundary. `remat.before` (pinned) makes what is in
memory besides until the boundary (gradients that the caller drops before the backward pass), and inputs that an earlier
graph of the step made for this one alone. `remat.pass_on` (pinned) reads what this graph makes for the next one alone,
which counts it from there on. All other nodes are ops; `getitem` nodes are outputs of theirs.

What must keep its order (copies of the generator's state, random ops that are not run again, ops outside aten and
prims, collectives) is chained by tokens of 0 bytes: each makes one, and the next one reads it.

An input that the backward pass overwrites (an autograd.Function that writes a buffer) is written behind everything
else: torch has made each write one `copy_` whose source is an ordinary value, so the source is a result of the
backward pass, and `Joint.epilogue` the copies. `Joint.forward_epilogue` is the same for the forward pass."""

from __future__ import annotations

import json
import operator
from contextvars import ContextVar
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch import fx
from torch._library.fake_class_registry import FakeScriptObject

from .. import core
from ..errors import Error, UsageError

CUDA_ALIGN = 512  # the caching allocator rounds every allocation up to it


class Unsupported(Error):
    """The graph has something that a plan cannot be trusted with: torch's own partition is used instead."""


SCALARS = (torch.SymInt, torch.SymFloat, torch.SymBool)


# of symbols, where others than those that torch saw first are planned for
_sizes: ContextVar[Mapping[Any, int]] = ContextVar("remat_sizes", default={})


def hint(x: Any) -> int:
    """A size as a number: with dynamic shapes that of the sizes at hand. Never int(x), which would make torch assume
    it.
    """
    if not isinstance(x, SCALARS):
        return int(x)
    if _sizes.get():
        found = x.node.expr.xreplace(_sizes.get())
        if isinstance(found, int) or found.is_number:
            return int(found)
    if x.node.hint is None:
        raise Unsupported("sizes that depend on data")
    return int(x.node.hint)


def is_scalar(node: Any) -> bool:
    """A symbolic size, or a sum of such: no tensor, no memory, not planned."""
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), SCALARS)


OBJECTS = (torch.ScriptObject, FakeScriptObject)


def is_object(node: Any) -> bool:
    """An argument that is handed through: the mesh that a DTensor lies on."""
    return isinstance(node, fx.Node) and node.op == "placeholder" and isinstance(node.meta.get("val"), OBJECTS)


def is_tensorless(node: Any) -> bool:
    """What takes no memory and is not planned: a symbolic size, an object."""
    return is_scalar(node) or is_object(node)


class Entry(NamedTuple):
    """What an op of the remat graph stands for: kind "node", "rng_state" or "copy" (of `node`), "before", "pass_on"
    or "boundary".
    """

    kind: str
    node: Optional[fx.Node]


def tensors_of(value: Any) -> List[Tuple[int, torch.Tensor]]:
    """The tensors that a node's meta value holds, by position: one tensor is at position 0 of itself."""
    if isinstance(value, torch.Tensor):
        return [(0, value)]
    if isinstance(value, (list, tuple)):
        found = []
        for i, item in enumerate(value):
            if isinstance(item, torch.Tensor):
                found.append((i, item))
            elif item is not None and not isinstance(item, (int, float, bool, *SCALARS)):
                raise Unsupported(f"an output of type {type(item).__name__}")
        return found
    return []


# Inductor's: functions of a seed
OF_SEEDS = ("prims::inductor_random", "prims::inductor_randint", "prims::inductor_lookup_seed")
SEEDS = ("prims::inductor_seeds", "prims::inductor_seed")  # draw from the generator: once


def is_of_seeds(node: fx.Node) -> bool:
    """Whether a node is a function of seeds that were drawn before."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.name in OF_SEEDS


def is_random(node: fx.Node) -> bool:
    return (
        isinstance(node.target, torch._ops.OpOverload)
        and torch.Tag.nondeterministic_seeded in node.target.tags
        and not is_of_seeds(node)
        and not _drops_nothing(node)
    )


def _drops_nothing(node: fx.Node) -> bool:
    """An attention without dropout: tagged as random, and no more so than a matrix product."""
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[i] if i < len(node.args) else node.kwargs.get("dropout_p", argument.default_value)
            return isinstance(given, (int, float)) and given == 0
    return False


# ---- torch's descriptions of arguments and results ----


def _descriptor(name: str) -> type:
    """A class of torch's descriptors; one that nothing is an instance of where this torch has none of that name."""
    import importlib

    try:
        module = importlib.import_module("torch._functorch._aot_autograd.descriptors")
    except ImportError:
        raise Unsupported("results that this version of torch does not describe") from None
    return getattr(module, name, type(name, (), {}))


def innermost(description: Any) -> Any:
    """What a description is about: a tensor subclass is flattened into several arguments or results, each described
    as a part of the whole.
    """
    parts = tuple(
        _descriptor(f"Subclass{part}AOT{side}")
        for part in ("GetAttr", "Size", "Stride")
        for side in ("Input", "Output")
    )
    while isinstance(description, parts):
        description = description.base
    return description


def mutated_input(description: Any) -> Any:
    """The description of the argument whose new contents a result is; None for other results."""
    if isinstance(description, _descriptor("InputMutationAOTOutput")):
        return description.mutated_input
    if isinstance(description, _descriptor("SubclassGetAttrAOTOutput")):
        base = mutated_input(description.base)
        return None if base is None else _descriptor("SubclassGetAttrAOTInput")(base, description.attr)
    return None


def is_result(description: Any) -> bool:
    """Whether it describes what the caller gets, and nothing that torch adds to that."""
    return isinstance(innermost(description), _descriptor("PlainAOTOutput"))


KNOWN = {
    "argument": (
        "ParamAOTInput",
        "BufferAOTInput",
        "PlainAOTInput",
        "ViewBaseAOTInput",
        "SyntheticBaseAOTInput",
        "TangentAOTInput",
    ),
    "forward result": (
        "PlainAOTOutput",
        "InputMutationAOTOutput",
        "IntermediateBaseAOTOutput",
        "MetadataMutationAOTOutput",
    ),
    "backward result": ("GradAOTOutput",),
}


def check_description(role: str, description: Any) -> None:
    """Refuses what has no description, or one that is not known in that role: what it stands for could not be
    guessed.
    """
    if description is None:
        raise Unsupported(f"a {role} that this version of torch does not describe")
    if not isinstance(innermost(description), tuple(map(_descriptor, KNOWN[role]))):
        raise Unsupported(f"a {role} of kind {type(innermost(description)).__name__}")


def is_tangent(node: fx.Node) -> bool:
    return isinstance(innermost(node.meta.get("desc")), _descriptor("TangentAOTInput"))


# ---- what may run again ----

# into running statistics; their schemas do not say so
WRITES = ("aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::native_batch_norm")


# names of ops outside aten and prims that may run again, in every graph: see `allow_recompute`
recomputable: Set[str] = set()


def allow_recompute(op: Any) -> Any:
    """Says of an op outside aten and prims that it is a pure function of its arguments, so that it may run again:
    its name ("mylib::op", all overloads; "mylib::*", all ops), or the op itself (what torch.library.custom_op
    returns, so that it can stand above it as a decorator; torch.ops.mylib.op). Returns `op`.
    """
    name = (
        op
        if isinstance(op, str)
        else getattr(op, "_qualname", None)
        or getattr(op, "_qualified_op_name", None)
        or (op._schema.name if hasattr(op, "_schema") else None)
    )
    if not isinstance(name, str) or "::" not in name:
        raise UsageError(f"{op!r} is no op: one like 'mylib::op' is wanted")
    recomputable.add(name)
    return op


def is_foreign(node: fx.Node, allowed: Collection[str] = ()) -> bool:
    """An op outside aten and prims. It may hide state, random numbers or messages to other processes, so it runs
    once and in its order unless its owner said that it is pure.
    """
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace in ("aten", "prims"):
        return False
    names = {target._schema.name, f"{target.namespace}::*"}
    return names.isdisjoint(allowed) and names.isdisjoint(recomputable)


def is_pinned(node: fx.Node, allowed: Collection[str] = ()) -> bool:
    """What must run exactly once: it writes into something, may have state, or has no result that says what it does."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return (
        target._schema.name in WRITES + SEEDS
        or target._schema.is_mutable
        or is_foreign(node, allowed)
        or not tensors_of(node.meta.get("val"))
    )


def generator_bytes(device: torch.device) -> int:
    """Bytes of a copy of the generator's state; CUDA's are on the host."""
    return torch.default_generator.get_state().numel() if device.type == "cpu" else 0


def device_of(node: fx.Node) -> Optional[torch.device]:
    found = tensors_of(node.meta.get("val"))
    return found[0][1].device if found else None


def storage_key(tensor: torch.Tensor) -> int:
    if tensor.layout is not torch.strided:
        raise Unsupported(f"tensors with layout {tensor.layout}")
    return tensor.untyped_storage()._cdata


# These copy the whole storage that their first argument lies in, and return a view of the copy; fake tensors have a
# storage for the view only.
COPY_STORAGES = tuple(
    getattr(torch.ops.aten, name).default
    for name in ("copy", "slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter")
)

# Results for which the CPU's kernel takes more elements than the fake tensor has: by op and position.
MORE_ELEMENTS = {
    (torch.ops.aten._embedding_bag.default, 1): 1,
    (torch.ops.aten._embedding_bag_forward_only.default, 1): 1,
}

# reads beside a tensor what its storage has there; a copy has no such neighbours
RESTRIDES = (torch.ops.aten.as_strided.default,)


def span(tensor: torch.Tensor) -> int:
    """Elements from the first to the last of a tensor in its storage: what a copy with the same strides takes."""
    sizes, strides = [hint(size) for size in tensor.shape], [hint(stride) for stride in tensor.stride()]
    return 0 if 0 in sizes else 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether two elements may lie in one place (expanded tensors, sliding windows): sufficient, as torch checks it
    before it writes.
    """
    reach = 0
    for stride, size in sorted((hint(stride), hint(size)) for size, stride in zip(tensor.shape, tensor.stride())):
        if size > 1:
            if stride <= reach:
                return True
            reach += (size - 1) * stride
    return False


def flops_of(node: fx.Node) -> int:
    """Arithmetic of a node by torch's own formulas; one operation for each element made where there is none."""
    from torch.utils.flop_counter import flop_registry

    outputs = tensors_of(node.meta.get("val"))
    formula = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if formula is not None:
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
        try:
            return hint(formula(*args, **kwargs, out_val=node.meta.get("val")))
        except Exception:  # a formula that does not take this overload: the estimate below stands in
            pass
    return sum(hint(t.numel()) for _, t in outputs)


class Joint:
    """The remat graph of a joint graph: `document` is the file, `graph()` the library's object."""

    # whether the forward pass may overwrite arguments in the graph, as torch lets Inductor do; else torch does it
    # behind the forward pass
    writes_forward = False

    def __init__(
        self,
        module: fx.GraphModule,
        num_fwd_outputs: int,
        static_inputs: Optional[Sequence[int]] = None,
        *,
        replay: bool = True,
        recompute: Collection[str] = (),
        states_of: Optional[Set[fx.Node]] = None,
        copies_of: Optional[Set[fx.Node]] = None,
        pin_readers: bool = False,
        free_copies: bool = False,
        outside_bytes: int = 0,
        before_bytes: int = 0,
        later_bytes: int = 0,
        later_gradients: int = 0,
        dropped: Collection[int] = (),
        passed_on: Collection[int] = (),
        given: Collection[int] = (),
        sizes: Optional[Mapping[Any, int]] = None,
        name: str = "joint",
        costs: Optional[Dict[str, int]] = None,
        workspaces: Optional[Dict[str, int]] = None,
    ):
        """What may run again: `replay`, random ops; `states_of`, only these of them (others get no state and are
        pinned); `recompute`, names of ops outside aten and prims. `copies_of`: the only inputs that are copied because
        they will be overwritten; `pin_readers`: what reads another one that will be, runs once. `free_copies`: copies
        and states take no memory, so that what this graph needs, every choice of them needs.

        What is in memory besides: `outside_bytes`, all the time; `before_bytes`, until the boundary; `later_bytes`,
        for graphs that run between this one's forward and backward pass, on top of what this one holds then;
        `later_gradients`, what stays of those. `dropped`: forward results, by position, that nobody holds in the
        backward pass; `passed_on`: those that the next graph of the step counts; `given`: inputs, by position, that
        are that of the graph before. `sizes`: of symbols, in place of those that torch saw first. `costs`,
        `workspaces`: by node name, in ns and bytes."""
        self.module, self.num_fwd_outputs = module, num_fwd_outputs
        self.replay, self.states_of, self.copies_of, self.recompute, self.pin_readers, self.free_copies = (
            replay,
            states_of,
            copies_of,
            recompute,
            pin_readers,
            free_copies,
        )
        self.ops: List[Entry] = []
        self.values: Dict[Tuple[fx.Node, int], int] = {}
        self.originals: Dict[fx.Node, int] = {}  # of inputs that were copied
        self._roots: Dict[int, int] = {}
        self._documents: List[Dict[str, Any]] = []
        self._nodes: List[Dict[str, Any]] = []
        self.costs, self.workspaces = costs, workspaces or {}
        self.before_bytes, self.later_bytes, self.later_gradients = before_bytes, later_bytes, later_gradients
        self.dropped, self.passed_on, self.given = set(dropped), set(passed_on), set(given)
        self._outputs: List[int] = []
        mark = _sizes.set(sizes or {})
        try:
            self._read()
            self.device = self._device()
            self._residents(set(static_inputs or ()), outside_bytes)
            self._order()
            self._emit()
            self.gradient_bytes = [
                self.bytes_of(n.meta["val"]) if isinstance(n, fx.Node) and not is_tensorless(n) else 0
                for n in self.bwd_outputs
            ]
        finally:
            _sizes.reset(mark)
        self.document = {
            "format": "remat-graph",
            "version": 1,
            "name": name,
            "values": self._documents,
            "nodes": self._nodes,
            "outputs": self._outputs,
        }

    @property
    def dynamic(self) -> bool:
        return bool(self.symbols)

    def can_be_given(self, position: int) -> bool:
        """Whether an input is a tensor that shares memory with no other one, and is not written."""
        node = self.primals[position]
        return (
            not is_tensorless(node)
            and node not in self.overwritten
            and all(node is not entry.args[0] for entry in self.epilogue)
            and sum(
                storage_key(other.meta["val"]) == storage_key(node.meta["val"])
                for other in self.primals
                if not is_tensorless(other)
            )
            == 1
        )

    def graph(self) -> core.Graph:
        return core.parse(json.dumps(self.document), self.document["name"])

    # ---- what the torch.fx graph says ----

    def _read(self) -> None:
        """Sorts the nodes: inputs, tangents, constants, ops, what is returned."""
        self.primals: List[fx.Node] = []  # symbolic sizes and objects among them
        self.scalars: List[fx.Node] = []  # symbolic sizes that are computed
        self.symbols: Set[Any] = set()  # that sizes of tensors depend on
        self.tangents: List[fx.Node] = []
        self.constants: List[fx.Node] = []
        nodes: List[fx.Node] = []
        for node in self.module.graph.nodes:
            value = node.meta.get("val")
            if node.op == "placeholder":
                if not is_tensorless(node) and not isinstance(value, torch.Tensor):
                    raise Unsupported(f"an input of type {type(value).__name__}")
                check_description("argument", node.meta.get("desc"))
                (self.tangents if is_tangent(node) else self.primals).append(node)
                if self.tangents and not is_tangent(node):
                    raise Unsupported("an argument behind the gradients")
            elif node.op == "get_attr":
                constant = getattr(self.module, node.target, None)
                if not isinstance(constant, torch.Tensor):
                    raise Unsupported("a subgraph")
                self.constants.append(node)
            elif node.op == "call_function" and is_scalar(node):
                self.scalars.append(node)
            elif node.op == "call_function":
                if node.target is operator.getitem:
                    source = node.args[0]
                    if (
                        source.op != "call_function"
                        or source.target is operator.getitem
                        or not isinstance(value, torch.Tensor)
                    ):
                        raise Unsupported("nested results")
                    continue
                if not isinstance(node.target, torch._ops.OpOverload):
                    raise Unsupported(f"the operator {node.target}")
                nodes.append(node)
            elif node.op != "output":
                raise Unsupported(f"a node of kind {node.op}")
            for _, tensor in tensors_of(value):
                if type(tensor) not in (torch._subclasses.FakeTensor, torch.Tensor, torch.nn.Parameter):
                    raise Unsupported(f"tensors of type {type(tensor).__name__}")
                for size in tensor.shape:
                    if isinstance(size, torch.SymInt):
                        self.symbols |= size.node.expr.free_symbols
                if tensor.layout is not torch.strided:
                    raise Unsupported(f"tensors with layout {tensor.layout}")
        (output,) = self.module.graph.find_nodes(op="output")
        returned = list(torch.utils._pytree.arg_tree_leaves(*output.args))
        descriptions = torch.utils._pytree.arg_tree_leaves(output.meta.get("desc", [None] * len(returned)))
        if len(descriptions) != len(returned) or self.num_fwd_outputs > len(returned):
            raise Unsupported(
                f"{len(returned)} results, {len(descriptions)} descriptions of them and {self.num_fwd_outputs} forward results"
            )
        self.fwd_outputs, self.bwd_outputs = returned[: self.num_fwd_outputs], returned[self.num_fwd_outputs :]
        self.fwd_descriptions, self.bwd_descriptions = (
            descriptions[: self.num_fwd_outputs],
            descriptions[self.num_fwd_outputs :],
        )
        for role, results, described in (
            ("forward result", self.fwd_outputs, self.fwd_descriptions),
            ("backward result", self.bwd_outputs, self.bwd_descriptions),
        ):
            for result, description in zip(results, described):
                if isinstance(result, fx.Node):
                    check_description(role, description)
        self._writes(nodes)
        overwritten = [found for found in map(mutated_input, self.fwd_descriptions) if found is not None]
        self.overwritten = [n for n in self.primals if n.meta.get("desc") in overwritten]
        if len(self.overwritten) != len(overwritten):
            raise Unsupported("an overwritten input that is not there")
        self.overwritten += [node.args[0] for node in self.forward_epilogue]
        needed: Set[fx.Node] = set()
        returned += [node.args[1] for node in [*self.forward_epilogue, *self.epilogue]]
        stack = [n for n in returned if isinstance(n, fx.Node)] + [
            n for n in nodes if is_pinned(n, self.recompute) or is_random(n)
        ]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack.extend(node.all_input_nodes)
        self.nodes = [node for node in nodes if node in needed]

    def _writes(self, nodes: List[fx.Node]) -> None:
        """Takes writes into arguments out of `nodes`. Functionalisation leaves one kind: `copy_` of a value into an
        argument, in the backward pass.
        """
        self.epilogue: List[fx.Node] = []
        for node in nodes:
            if node.target._schema.name in WRITES:
                # the running statistics
                if any(isinstance(n, fx.Node) and n.users.keys() - {node} for n in node.args[3:5]):
                    raise Unsupported(f"{node.target}, which overwrites what other ops read")
            elif node.target._schema.is_mutable:
                if (
                    node.target is not torch.ops.aten.copy_.default
                    or node.args[0].op != "placeholder"
                    or node.users
                    or len(node.args) > 2
                    and node.args[2]
                ):
                    raise Unsupported(f"{node.target}, which overwrites a tensor")
                self.epilogue.append(node)
        nodes[:] = [node for node in nodes if node not in set(self.epilogue)]
        after = self._behind_tangents()
        self.forward_epilogue = [node for node in self.epilogue if node not in after]
        self.epilogue = [node for node in self.epilogue if node in after]
        if self.forward_epilogue and not self.writes_forward:
            raise Unsupported("a tensor that is overwritten in the forward pass of the graph")
        written = {storage_key(node.args[0].meta["val"]) for node in self.epilogue}
        if len(written) != len(self.epilogue) or sum(
            storage_key(n.meta["val"]) in written for n in self.primals if not is_tensorless(n)
        ) != len(written):
            raise Unsupported("a tensor overwritten in the backward pass that shares memory with another")
        if any(
            storage_key(tensor) in written
            for n in self.fwd_outputs + self.bwd_outputs
            if isinstance(n, fx.Node)
            for _, tensor in tensors_of(n.meta.get("val"))
        ):
            raise Unsupported("a result that shares memory with a tensor overwritten in the backward pass")

    def _behind_tangents(self) -> Set[fx.Node]:
        """The nodes that depend on gradients."""
        after = set(self.tangents)
        for node in self.module.graph.nodes:
            if any(n in after for n in node.all_input_nodes):
                after.add(node)
        return after

    def _device(self) -> torch.device:
        """The device whose memory is planned: the accelerator if there is one."""
        found = {tensor.device for node in self.module.graph.nodes for _, tensor in tensors_of(node.meta.get("val"))}
        accelerators = {device for device in found if device.type not in ("cpu", "meta")}
        if len(accelerators) > 1:
            raise Unsupported("tensors on several accelerators: " + ", ".join(sorted(map(str, accelerators))))
        return accelerators.pop() if accelerators else torch.device("cpu")

    # ---- values ----

    def bytes_of(self, tensor: torch.Tensor) -> int:
        """What a tensor's storage takes of the planned device's memory."""
        return self._rounded(hint(tensor.untyped_storage().nbytes()), tensor)

    def _rounded(self, n_bytes: int, tensor: torch.Tensor) -> int:
        if tensor.device.type not in (self.device.type, "meta"):
            return 0
        return -(-n_bytes // CUDA_ALIGN) * CUDA_ALIGN if self.device.type == "cuda" else n_bytes

    def _value(self, name: str, tensor: torch.Tensor, kind: Optional[str] = None) -> int:
        index, here = len(self._documents), tensor.device.type in (self.device.type, "meta")
        entry: Dict[str, Any] = {
            "name": name,
            "size": hint(tensor.numel()) * tensor.element_size() if here else 0,
            "dtype": str(tensor.dtype).replace("torch.", ""),
            "shape": [hint(size) for size in tensor.shape],
        }
        if kind:
            entry["kind"] = kind
        root = self._roots.get(storage_key(tensor))
        if root is None:
            self._roots[storage_key(tensor)] = index
            entry["storage"] = self.bytes_of(tensor)
        else:
            entry["alias"] = root
        self._documents.append(entry)
        return index

    def _residents(self, static: Set[int], outside_bytes: int) -> None:
        for i, node in enumerate(self.primals):
            if is_tensorless(node) or i in self.given:
                continue
            tensor = node.meta["val"]
            kind = (
                "input" if i not in static else "param" if tensor.requires_grad or self._has_gradient(i) else "buffer"
            )
            self.values[node, 0] = self._value(node.name, tensor, kind)
        for node in self.constants:
            tensor = node.meta.get("val")
            self.values[node, 0] = self._value(
                node.name, tensor if isinstance(tensor, torch.Tensor) else getattr(self.module, node.target), "const"
            )
        if outside_bytes:
            self._documents.append({"name": "remat.outside", "size": outside_bytes, "kind": "const"})
        self._n_resident = len(self._documents)
        for i in sorted(self.given):
            self.values[self.primals[i], 0] = self._value(self.primals[i].name, self.primals[i].meta["val"])

    def _has_gradient(self, primal: int) -> bool:
        return primal < len(self.bwd_outputs) and self.bwd_outputs[primal] is not None

    def is_view(self, node: fx.Node) -> bool:
        inputs = {storage_key(t) for n in node.all_input_nodes for _, t in tensors_of(n.meta.get("val"))}
        made = tensors_of(node.meta.get("val"))
        return bool(made) and all(storage_key(t) in inputs for _, t in made)

    # ---- order ----

    def _order(self) -> None:
        """Forward ops, then the boundary, then the rest. Nodes that the forward results do not need stay in the
        forward pass if torch ran them there, but for views: those wait for their first use, or they would hold their
        storage for nothing.
        """
        after = self._behind_tangents()
        stack = [
            n for n in [*self.fwd_outputs, *(node.args[1] for node in self.forward_epilogue)] if isinstance(n, fx.Node)
        ]
        stack += [
            n
            for n in self.nodes
            if n not in after and n.meta.get("partitioner_tag") != "is_backward" and not self.is_view(n)
        ]
        forward = set()
        while stack:
            node = stack.pop()
            if node not in forward:
                if node in after:
                    raise Unsupported("a forward result that depends on gradients")
                forward.add(node)
                stack.extend(node.all_input_nodes)
        self.forward_nodes = [n for n in self.nodes if n in forward]
        rest = [n for n in self.nodes if n not in forward]
        done: Set[fx.Node] = set()
        self.backward_nodes: List[fx.Node] = []
        members = set(rest)

        def run(last: fx.Node) -> None:
            stack = [last]
            while stack:
                node = stack[-1]
                waiting = [
                    m
                    for n in node.all_input_nodes
                    for m in ([n.args[0]] if n.target is operator.getitem else [n])
                    if m in members and m not in done
                ]
                if waiting:
                    stack.extend(waiting)
                else:
                    stack.pop()
                    if node not in done:
                        done.add(node)
                        self.backward_nodes.append(node)

        for node in rest:
            if node in after or not self.is_view(node):
                run(node)
        for node in rest:
            run(node)

    # ---- ops ----

    def _emit(self) -> None:
        self._token: Optional[int] = None
        self._before = [self.values[self.primals[i], 0] for i in sorted(self.given)]
        if self.before_bytes:
            self._before.append(len(self._documents))
            self._documents.append({"name": "remat.before", "size": self.before_bytes})
        if self._before:
            self._besides("before", [], self._before)
        self._uncopied: Set[int] = set()
        for node in self.overwritten:
            if self.copies_of is None or node in self.copies_of:
                self._copy(node)
            elif self.pin_readers:
                self._uncopied.add(self.root(self.values[node, 0]))
        for node in self.forward_nodes:
            self._op(node, "forward")
        passed_on = [
            self.value(n) for i, n in enumerate(self.fwd_outputs) if i in self.passed_on and isinstance(n, fx.Node)
        ]
        if passed_on:
            self._besides("pass_on", passed_on, [])
        self._boundary()
        for node in self.backward_nodes:
            self._op(node, "backward")
        self._outputs += [self.value(n) for n in self.results_behind()]

    def results_behind(self) -> List[fx.Node]:
        """What is there when the last op of the backward pass has run: its results, and what is then copied into
        arguments.
        """
        return [
            n
            for n in [*self.bwd_outputs, *(node.args[1] for node in self.epilogue)]
            if isinstance(n, fx.Node) and not is_tensorless(n)
        ]

    def root(self, value: int) -> int:
        return self._documents[value].get("alias", value)

    def value(self, node: fx.Node) -> int:
        """The value of a node that stands for one tensor."""
        if node.target is operator.getitem:
            return self.values[node.args[0], node.args[1]]
        return self.values[node, 0]

    def inputs_of(self, node: fx.Node) -> List[int]:
        return [value for n in node.all_input_nodes if not is_tensorless(n) for value in self.sources(n)]

    def sources(self, node: fx.Node) -> List[int]:
        """The values that must be there for a node to be read: its own, or those that it is computed from on the
        spot (kernels.py).
        """
        return [self.value(node)]

    def inlined(self, node: fx.Node) -> Optional[List[fx.Node]]:
        """For a node that is computed wherever it is read: the like that it reads, in order. None for all others."""
        return None

    def members(self, op: int) -> List[fx.Node]:
        """The nodes that are computed on the spot where an op runs, in order."""
        return []

    def _append(self, entry: Entry, document: Dict[str, Any]) -> None:
        self.ops.append(entry)
        self._nodes.append(document)

    def _besides(self, kind: str, inputs: List[int], outputs: List[int], **more: Any) -> None:
        self._append(
            Entry(kind, None),
            {
                "name": f"remat.{kind}",
                "op": f"remat.{kind}",
                "in": inputs,
                "out": outputs,
                "phase": "forward",
                "pinned": True,
                "cost": 0,
                "flops": 0,
                **more,
            },
        )

    def _op(self, node: fx.Node, phase: str) -> None:
        inputs, outputs = self.inputs_of(node), []
        made = tensors_of(node.meta.get("val"))
        random, pinned = is_random(node), is_pinned(node, self.recompute)
        document: Dict[str, Any] = {
            "name": node.name,
            "op": str(node.target),
            "in": inputs,
            "out": outputs,
            "phase": phase,
        }
        replayed = random and not pinned and self.replay and (self.states_of is None or node in self.states_of)
        if replayed:
            state = len(self._documents)
            size = (
                generator_bytes(device_of(node) or self.device)
                if self.device.type == "cpu" and not self.free_copies
                else 0
            )
            self._documents.append({"name": f"{node.name}.state", "size": size, "dtype": "uint8", "shape": [size]})
            self._append(
                Entry("rng_state", node),
                {
                    "name": f"{node.name}.state",
                    "op": "remat.rng_state",
                    "in": [] if self._token is None else [self._token],
                    "out": [state],
                    "phase": phase,
                    "pinned": True,
                    "cost": 0,
                    "flops": 0,
                },
            )
            inputs.append(state)
        in_order = random or pinned
        if in_order and not replayed and self._token is not None:
            inputs.append(self._token)
        known = {
            self._roots.get(storage_key(t)) for n in node.all_input_nodes for _, t in tensors_of(n.meta.get("val"))
        }
        for position, tensor in made:
            before = self._roots.get(storage_key(tensor))
            index = self._value(node.name if len(made) == 1 else f"{node.name}[{position}]", tensor)
            if node.target in COPY_STORAGES and "storage" in self._documents[index] and inputs:
                copied = self._documents[self.root(inputs[0])]
                self._documents[index]["storage"] = max(
                    self._documents[index]["storage"], copied.get("storage", copied["size"])
                )
            if (
                (node.target, position) in MORE_ELEMENTS
                and tensor.device.type == "cpu"
                and "storage" in self._documents[index]
            ):
                self._documents[index]["storage"] += MORE_ELEMENTS[node.target, position] * tensor.element_size()
            if before is not None and before not in known:
                raise Unsupported(f"{node.target}, whose result shares memory with a tensor that it does not read")
            known.add(self._roots[storage_key(tensor)])
            self.values[node, position] = index
            outputs.append(index)
        if in_order:
            self._token = len(self._documents)
            self._documents.append({"name": f"{node.name}.token", "size": 0})
            outputs.append(self._token)
        view = self.is_view(node)
        tags = node.target.tags if isinstance(node.target, torch._ops.OpOverload) else ()
        document["class"] = (
            "view"
            if view
            else "random"
            if random
            else "compute"
            if self._computes(node)
            else "fusible"
            if torch.Tag.pointwise in tags
            else "other"
        )
        document["flops"] = 0 if view else flops_of(node)
        if random:
            document["replay"] = replayed
        if pinned or random and not replayed or any(self.root(value) in self._uncopied for value in inputs):
            document["pinned"] = True
        if self.costs is not None:
            document["cost"] = 0 if view else self.costs.get(node.name, 0)
        if self.workspaces.get(node.name):
            document["workspace"] = self.workspaces[node.name]
        self._append(Entry("node", node), document)

    def _copy(self, node: fx.Node) -> None:
        """From here on everything reads the copy."""
        original, tensor = self.values[node, 0], node.meta["val"]
        if self._documents[original].get("alias") is not None:
            raise Unsupported("an overwritten input that shares memory with another")
        if overlaps(tensor) or any(n.target in RESTRIDES for n in node.users):
            raise Unsupported("an overwritten input whose elements share memory, or are read by strides")
        copy = len(self._documents)
        n_bytes = 0 if self.free_copies else span(tensor) * tensor.element_size()
        self._documents.append(
            {
                **self._documents[original],
                "name": f"{node.name}.copy",
                "kind": "temporary",
                "storage": self._rounded(n_bytes, tensor),
            }
        )
        self._append(
            Entry("copy", node),
            {
                "name": f"{node.name}.copy",
                "op": "remat.copy",
                "in": [original],
                "out": [copy],
                "phase": "forward",
                "pinned": True,
                "cost": 0,
                "flops": 0,
            },
        )
        self.values[node, 0] = copy
        self.originals[node] = original
        self._roots[storage_key(tensor)] = copy

    def _computes(self, node: fx.Node) -> bool:
        from torch.utils.flop_counter import flop_registry

        return getattr(node.target, "overloadpacket", None) in flop_registry

    def _boundary(self) -> None:
        """Reads what the forward pass returns, makes the tangents. New contents of mutated inputs are copied by
        torch and dropped; the rest is held.
        """
        inputs, outputs = list(self._before), []
        for position, (node, description) in enumerate(zip(self.fwd_outputs, self.fwd_descriptions)):
            if not isinstance(node, fx.Node) or is_tensorless(node) or position in self.passed_on:
                continue
            inputs.append(self.value(node))
            root = self.root(inputs[-1])
            if root >= self._n_resident and mutated_input(description) is None and position not in self.dropped:
                held = len(self._documents)
                self._documents.append(
                    {"name": f"{node.name}.held", "size": self._documents[inputs[-1]]["size"], "alias": root}
                )
                outputs.append(held)
        inputs += [self.value(node.args[1]) for node in self.forward_epilogue]
        for node in self.tangents:
            self.values[node, 0] = self._value(node.name, node.meta["val"])
            outputs.append(self.values[node, 0])
        if self.later_gradients:
            outputs.append(len(self._documents))
            self._documents.append({"name": "remat.later_gradients", "size": self.later_gradients})
        self.tangent_bytes = sum(
            self._documents[value].get("storage", 0) for value in outputs if "storage" in self._documents[value]
        )
        workspace = max(0, self.later_bytes - self.tangent_bytes - self.later_gradients)
        self.boundary = len(self.ops)
        self._besides("boundary", inputs, outputs, workspace=workspace)
        self._outputs += outputs
