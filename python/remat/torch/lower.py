"""A plan as torch.fx: the steps before the boundary are the forward module, those behind it the backward module, an op
that runs again is a node again, and what a backward step reads of the forward pass is a saved tensor. Then each module
as straight Python code that frees what the plan frees.

Invariant: every node of the modules but the token, and copies into arguments behind the last step, is one step of
the plan, in its order; a name is deleted right behind the last node that reads it, so a storage lives exactly as
long as the verifier counted (the caller hands its arguments over in a list, which is emptied)."""

from __future__ import annotations

import contextlib
import operator
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import torch
from torch import fx

from . import reporting, rng
from .joint import Joint, Unsupported, device_of, is_object, is_tensorless, tensors_of


def replayed_nodes(joint: Joint, schedule: Sequence[int]) -> Set[fx.Node]:
    """The random nodes that a schedule runs more than once."""
    seen: Set[int] = set()
    found: Set[fx.Node] = set()
    for op in schedule:
        if op in seen:
            entry = joint.ops[op]
            if joint.document["nodes"][op]["class"] == "random" and entry.node is not None:
                found.add(entry.node)
        seen.add(op)
    return found


def read_behind(joint: Joint, schedule: Sequence[int]) -> Set[fx.Node]:
    """The overwritten inputs whose old contents a step behind the boundary reads."""
    copies = {joint.values[node, 0]: node for node in joint.originals}
    steps = schedule[schedule.index(joint.boundary) + 1 :]
    read = {joint.root(value) for op in steps for value in joint.document["nodes"][op]["in"]}
    read |= {joint.root(value) for n in joint.results_behind() for value in joint.sources(n)}
    return {node for root, node in copies.items() if root in read}


def translate(schedule: Sequence[int], source: Joint, target: Joint) -> List[int]:
    """The same schedule in the ops of another remat graph of the same joint graph (one with fewer states and
    copies).
    """
    index = {entry: op for op, entry in enumerate(target.ops)}
    return [index[source.ops[op]] for op in schedule if source.ops[op] in index]


def _location(node: fx.Node) -> Tuple[str, int]:
    device = device_of(node)
    assert device is not None
    return device.type, device.index or 0


# steps within which what runs again where it is read is one node: a compiler would keep in memory what is read far
# apart
SHARED = 4


class _Side:
    """One module under construction: `env` maps a value of the remat graph to the node that holds its newest
    instance.
    """

    def __init__(self, joint: Joint, is_backward: bool):
        self.joint, self.graph, self.is_backward = joint, fx.Graph(), is_backward
        self.env: Dict[int, fx.Node] = {}
        self.scalars: Dict[fx.Node, fx.Node] = {}  # symbolic sizes that are known here, and objects
        self.unknown = list(joint.scalars)
        self.step = 0
        self.inlined: Dict[fx.Node, fx.Node] = {}  # the newest copy of nodes that are computed where they are read
        # by node and what it read, with the step: who reads the same tensors nearby shares it
        self._copies: Dict[Tuple[fx.Node, ...], Tuple[int, fx.Node]] = {}

    def placeholder(self, value: Any, name: str, meta: Dict[str, Any]) -> None:
        """An argument: a value of the remat graph, or a symbolic size or an object (a node of the joint graph)."""
        node = self.graph.placeholder(name)
        node.meta = dict(meta)
        if isinstance(value, fx.Node):
            self.scalars[value] = node
        else:
            self.env[value] = node

    def compute_scalars(self) -> None:
        """Symbolic sizes are computed as soon as they can be: a tensor tells its size only while it is there."""
        waiting = []
        for node in self.unknown:
            if all(
                n in self.scalars if is_tensorless(n) else all(value in self.env for value in self.joint.sources(n))
                for n in node.all_input_nodes
            ):
                for n in node.all_input_nodes:
                    self.inline(self.joint.inlined(n) or (), n)
                self.scalars[node] = self.graph.node_copy(node, self.read)
            else:
                waiting.append(node)
        self.unknown = waiting

    def read(self, node: fx.Node) -> fx.Node:
        """The node that stands for a node of the joint graph now; constants are fetched where they are first read."""
        if is_tensorless(node):
            if node not in self.scalars:
                raise Unsupported("a size that is not known where it is read")
            return self.scalars[node]
        if self.joint.inlined(node) is not None:
            return self.inlined[node]
        value = self.joint.value(node)
        if value not in self.env and node.op == "get_attr":
            self.env[value] = self.graph.node_copy(node)
        return self.env[value]

    def inline(self, before: Sequence[fx.Node], node: Optional[fx.Node] = None) -> None:
        """Computes nodes on the spot: these, in order, and then `node` if it is one that is computed where it is
        read.
        """
        for member in before if node is None or self.joint.inlined(node) is None else (*before, node):
            read = (member, *(self.read(n) for n in member.all_input_nodes))
            if read not in self._copies or self.step - self._copies[read][0] > SHARED:
                self._copies[read] = self.step, self.graph.node_copy(member, self.read)
                self._copies[read][1].meta["remat_step"] = self.step, ""
            self.inlined[member] = self._copies[read][1]

    def result(self, node: Any) -> Any:
        """What a module returns for a node of the joint graph."""
        if isinstance(node, fx.Node):
            self.inline(self.joint.inlined(node) or (), node)
            return self.read(node)
        return node

    def run(self, op: int, again: bool) -> None:
        kind, node = self.joint.ops[op]
        self.inline(self.joint.members(op))
        document = self.joint.document["nodes"][op]
        if kind in ("before", "pass_on"):
            return
        assert node is not None
        if kind == "rng_state":
            made = self.graph.call_function(rng.rng_state, _location(node))
            made.meta["val"] = _fake_state(node)
            self.env[document["out"][0]] = made
            return
        if kind == "copy":
            made = self.graph.call_function(strided_copy, (self.env[document["in"][0]],))
            made.meta["val"] = fake_like([node], lambda: strided_copy(node.meta["val"]))
            self.env[document["out"][0]] = made
            return
        if again and document["class"] == "random":
            state = self.env[document["in"][-1]]
            args, kwargs = fx.map_arg((node.args, node.kwargs), self.read)
            made = self.graph.call_function(rng.replay, (*_location(node), state, node.target, *args), kwargs)
            made.meta = dict(node.meta)
        else:
            made = self.graph.node_copy(node, self.read)
        made.meta.update(
            remat_forward=document["phase"] == "forward", remat_step=(self.step, node.name), remat_again=again
        )
        outputs = tensors_of(node.meta.get("val"))
        if isinstance(node.meta.get("val"), torch.Tensor):
            self.env[self.joint.values[node, 0]] = made
        else:
            self._unpack(node, made, outputs)
        if self.unknown:
            self.compute_scalars()

    def _unpack(self, node: fx.Node, made: fx.Node, outputs: List[Tuple[int, torch.Tensor]]) -> None:
        used = {user.args[1]: user for user in node.users if user.target is operator.getitem}
        for position, _ in outputs:  # picked out at once: the tuple would hold what nobody reads
            if position in used:
                item = self.graph.call_function(operator.getitem, (made, position))
                item.meta = dict(used[position].meta)
                self.env[self.joint.values[node, position]] = item


def _fake_state(node: fx.Node) -> torch.Tensor:
    tensor = tensors_of(node.meta["val"])[0][1]
    state = (
        rng.rng_state(*_location(node))
        if tensor.device.type == "cpu" or getattr(torch, tensor.device.type).is_available()
        else torch.empty(16, dtype=torch.uint8)
    )
    return fake_like([node], lambda: torch.empty(state.shape, dtype=state.dtype))


def fake_like(nodes: Sequence[Any], make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """What `make` makes, as fake as the nodes' tensors are."""
    modes = [
        mode
        for node in nodes
        if isinstance(node, fx.Node)
        for _, t in tensors_of(node.meta.get("val"))
        for mode in [getattr(t, "fake_mode", None)]
        if mode is not None
    ]
    with modes[0] if modes else contextlib.nullcontext():
        return make()


def token() -> torch.Tensor:
    """A tensor without elements. It is saved before the others, and lives exactly as long as a backward pass may
    come.
    """
    return torch.empty(0)


def strided_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, gaps between elements included: ops that were traced with these strides read it."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(
        tensor.detach()
    )


def split(
    joint: Joint,
    schedule: Sequence[int],
    make_token: Tuple[Callable[..., torch.Tensor], Tuple[Any, ...], Dict[str, Any]] = (token, (), {}),
) -> Tuple[fx.GraphModule, fx.GraphModule]:
    """The forward and the backward module of a schedule, in AOTAutograd's calling convention: the forward pass
    returns its results, what is saved with a check that nobody overwrites it, what is saved without, objects and
    sizes; the backward pass takes sizes, what is saved in the same order, and gradients. The first of the saved
    tensors is a `token()`, or what `make_token` (a function, its arguments and keywords) makes instead.
    """
    if schedule.count(joint.boundary) != 1:
        raise Unsupported("a plan without its boundary")
    middle = schedule.index(joint.boundary)
    forward, backward = _Side(joint, False), _Side(joint, True)
    for node in joint.primals:
        forward.placeholder(
            node if is_tensorless(node) else joint.originals.get(node, joint.values[node, 0]), node.name, node.meta
        )
    forward.compute_scalars()
    ran: Set[int] = set()
    for step, op in enumerate(schedule[:middle]):
        forward.step = step
        forward.run(op, op in ran)
        ran.add(op)
    saved = _saved(joint, schedule[middle + 1 :], ran)
    constants = {joint.values[node, 0]: node for node in joint.constants}
    again = _read_again(joint, schedule[middle + 1 :], ran)
    crossing = {value: forward.env[value] for value in saved if value not in constants}
    for value, node in crossing.items():
        if value in again:  # its contents then must be those of the forward pass, whatever torch would have let pass
            node.meta.pop(UNCHECKED, None)
    crossing = dict(sorted(crossing.items(), key=lambda item: bool(item[1].meta.get(UNCHECKED))))
    returned = [forward.result(n) for n in joint.fwd_outputs]
    for node in joint.forward_epilogue:
        forward.result(node.args[1])
        forward.graph.node_copy(node, forward.read)
    mark = forward.graph.call_function(*make_token)
    mark.meta["val"] = fake_like(joint.primals + joint.tangents, lambda: make_token[0](*make_token[1], **make_token[2]))
    kept = [mark, *crossing.values()]
    tensorless = _tensorless(joint, schedule[middle + 1 :])
    objects, sizes = (
        [node for node in tensorless if is_object(node)],
        [node for node in tensorless if not is_object(node)],
    )
    output = forward.graph.output(tuple(returned + kept + [forward.read(node) for node in objects + sizes]))
    output.meta["desc"] = [
        *joint.fwd_descriptions,
        *saved_descriptions([bool(node.meta.get(UNCHECKED)) for node in kept] + [False] * len(tensorless)),
    ]
    for node in sizes:
        backward.placeholder(node, node.name, node.meta)
    backward.graph.placeholder(mark.name).meta = dict(mark.meta)
    for value, node in crossing.items():
        backward.placeholder(value, node.name, node.meta)
    for node in objects:
        backward.placeholder(node, node.name, node.meta)
    for node in joint.tangents:
        backward.placeholder(joint.values[node, 0], node.name, node.meta)
    for step, op in enumerate(schedule[middle + 1 :]):
        backward.step = step
        backward.run(op, op in ran)
        ran.add(op)
    for node in joint.epilogue:
        backward.result(node.args[1])
        backward.graph.node_copy(node, backward.read)
    output = backward.graph.output(tuple(backward.result(n) for n in joint.bwd_outputs))
    output.meta["desc"] = list(joint.bwd_descriptions)
    for node in backward.graph.nodes:
        if node.op in ("call_function", "get_attr"):
            node.meta["autograd_backward"] = True
    modules = (
        fx.GraphModule(joint.module, forward.graph, "RematForward"),
        fx.GraphModule(joint.module, backward.graph, "RematBackward"),
    )
    # resident: for the meter
    modules[0].meta["remat_constants"] = [getattr(joint.module, node.target) for node in joint.constants]
    # where it lies among the results, and among the arguments of the backward pass
    modules[0].meta["remat_token"] = joint.num_fwd_outputs
    modules[1].meta["remat_token"] = len(sizes)
    modules[1].meta["remat_tangents"] = len(joint.tangents)
    return modules


def _saved(joint: Joint, steps: Sequence[int], ran: Set[int]) -> List[int]:
    """The values that these steps, or the results of the backward pass, read before any of the steps makes them, by
    their place in the graph.
    """
    made: Set[int] = {joint.values[node, 0] for node in joint.tangents}
    needed: Set[int] = set()
    seen = set(ran)
    for op in steps:
        kind, node = joint.ops[op]
        document = joint.document["nodes"][op]
        assert node is not None
        if kind in ("node", "kernel"):
            needed.update(value for value in joint.inputs_of(node) if value not in made)
            if document["class"] == "random" and op in seen and document["in"][-1] not in made:
                needed.add(document["in"][-1])
        seen.add(op)
        made.update(document["out"])
    targets = [node.args[0] for node in joint.epilogue]
    needed.update(value for n in joint.results_behind() + targets for value in joint.sources(n) if value not in made)
    return sorted(needed)


# torch's mark of what an autograd.Function keeps on ctx without save_for_backward
UNCHECKED = "saved_tensor_with_no_vc_check"


def _read_again(joint: Joint, steps: Sequence[int], ran: Set[int]) -> Set[int]:
    """The values that ops of the forward pass read behind the boundary."""
    return {
        value
        for op in steps
        for node in [joint.ops[op].node]
        if joint.ops[op].kind in ("node", "kernel")
        and node is not None
        and (op in ran or joint.document["nodes"][op]["phase"] == "forward")
        for value in joint.inputs_of(node)
    }


def _tensorless(joint: Joint, steps: Sequence[int]) -> List[fx.Node]:
    """The symbolic sizes and objects that the backward pass reads or returns."""
    read = [
        n
        for op in steps
        for node in [joint.ops[op].node]
        if node is not None and joint.ops[op].kind in ("node", "kernel")
        for member in (*joint.members(op), node)
        for n in member.all_input_nodes
    ]
    return list(dict.fromkeys(n for n in read + joint.bwd_outputs if is_tensorless(n)))


def saved_descriptions(unchecked: Sequence[bool]) -> List[Any]:
    from torch._functorch._aot_autograd import descriptors

    plain = descriptors.SavedForBackwardsAOTOutput
    without = getattr(descriptors, "SavedForBackwardsNoVcCheckAOTOutput", plain)
    return [(without if mark else plain)(i) for i, mark in enumerate(unchecked)]


class Meter:
    """Counts the storages that are really there, right behind every op that the generated code runs: those that went
    in, those that were made, less those that are gone. `peak_bytes` is the most that there ever was. Tangents are
    held during their backward pass: who else holds them, and until when, is up to autograd and the caller, so plans
    count them to the end.
    """

    def __init__(self, device_type: str = "cpu"):
        self.device_type, self.peak_bytes, self.n_ops = device_type, 0, 0
        self._live: Dict[int, Tuple[Any, int]] = {}

    def take(self, value: Any) -> None:
        from torch.multiprocessing.reductions import StorageWeakRef

        for item in value if isinstance(value, (list, tuple)) else (value,):
            # others are not planned
            if isinstance(item, torch.Tensor) and item.device.type == self.device_type and item.layout is torch.strided:
                storage = item.untyped_storage()
                self._live[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())

    def __call__(self, made: Any) -> None:
        self._live = {key: entry for key, entry in self._live.items() if not entry[0].expired()}
        self.take(made)
        self.n_ops += 1
        self.peak_bytes = max(self.peak_bytes, sum(n_bytes for _, n_bytes in self._live.values()))


meter: List[Meter] = []  # the one that counts now, if any


def compile_boxed(module: fx.GraphModule) -> Callable[[List[Any]], Any]:
    """A module as one Python function of one list, which it empties. While a meter is set, the same code with the
    meter called behind every op; under torch.profiler, with a mark around every op that runs again. A backward pass
    under autocast runs the ops of the forward pass without it, as they ran the first time: what autocast changed
    there is in the graph.
    """
    variants: Dict[Tuple[bool, bool, bool], Callable[[List[Any]], Any]] = {(False, False, False): _generate(module)}
    backward = "remat_tangents" in module.meta

    def run(args: List[Any]) -> Any:
        kind = bool(meter), backward and torch._C._is_any_autocast_enabled(), torch.autograd._profiler_enabled()
        code = variants.get(kind)
        if code is None:
            code = variants[kind] = _generate(module, *kind)
        held: List[Any] = []
        if meter:
            meter[0].take(args)
            meter[0].take(module.meta.get("remat_constants", ()))
            held += args[len(args) - module.meta.get("remat_tangents", 0) :]
        result = code(args)
        held.clear()
        return result

    boxed: Any = run
    boxed._boxed_call = True
    return boxed


def _generate(
    module: fx.GraphModule, metered: bool = False, autocast: bool = False, profiled: bool = False
) -> Callable[[List[Any]], Any]:
    """A line for each node, a `del` behind each last use."""
    last: Dict[fx.Node, fx.Node] = {}
    for node in module.graph.nodes:
        for used in node.all_input_nodes:
            last[used] = node
    names: Dict[fx.Node, str] = {}
    scope: Dict[str, Any] = {}
    bound: Dict[int, str] = {}

    def constant(value: Any) -> str:
        """A name for any object that is not a node or a plain literal."""
        if id(value) not in bound:
            bound[id(value)] = f"c{len(bound)}"
            scope[bound[id(value)]] = value
        return bound[id(value)]

    def text(value: Any) -> str:
        if isinstance(value, fx.Node):
            return names[value]
        if isinstance(value, (list, fx.immutable_collections.immutable_list)):
            return "[" + ", ".join(map(text, value)) + "]"
        if isinstance(value, tuple):
            return "(" + "".join(text(item) + ", " for item in value) + ")"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {text(item)}" for key, item in value.items()) + "}"
        if (
            isinstance(value, (bool, int, str))
            or value is None
            or isinstance(value, float)
            and value == value
            and abs(value) != float("inf")
        ):
            return repr(value)
        return constant(value)

    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for i, node in enumerate(inputs):
        names[node] = f"p{i}"
    lines = ["def run(args):"]
    if inputs:
        lines += [f"    {', '.join(names[node] for node in inputs)}, = args", "    args.clear()"]
    unread = [names[node] for node in inputs if node not in last]
    if unread:
        lines.append(f"    del {', '.join(unread)}")
    for node in module.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            lines.append(f"    return {text(node.args[0])}")
            continue
        names[node] = f"v{len(names)}"
        if node.op == "get_attr":
            lines.append(f"    {names[node]} = {constant(getattr(module, node.target))}")
        elif node.target is operator.getitem:
            lines.append(f"    {names[node]} = {text(node.args[0])}[{node.args[1]}]")
        else:
            target = node.target._op if isinstance(node.target, torch._ops.OpOverload) else node.target
            arguments = [text(argument) for argument in node.args] + [
                f"{key}={text(value)}" for key, value in node.kwargs.items()
            ]
            around = [f"{constant(torch._C._DisableAutocast)}()"] if autocast and node.meta.get("remat_forward") else []
            if profiled and node.meta.get("remat_again"):
                around.append(
                    f"{constant(torch.profiler.record_function)}({'remat: ' + reporting.module_path(node)!r})"
                )
            guard = f"with {', '.join(around)}: " if around else ""
            lines.append(f"    {guard}{names[node]} = {constant(target)}({', '.join(arguments)})")
            if metered:
                lines.append(f"    {constant(meter)}[0]({names[node]})")
        dead = [names[used] for used in node.all_input_nodes if last[used] is node]
        if node not in last:
            dead.append(names[node])
        if dead:
            lines.append(f"    del {', '.join(dead)}")
    exec(compile("\n".join(lines), "<remat plan>", "exec"), scope)
    return scope["run"]
