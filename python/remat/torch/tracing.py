"""A training step as a remat graph without running it: fake tensors, so that a model larger than memory can be traced;
and real times for its ops.

    graph = remat.torch.trace(model, tokens, labels=labels)
    graph.save("step.json.gz")          # every `remat` command takes it
    graph.plan("50%")
"""

from __future__ import annotations

import copy
import gc
import json
from contextlib import nullcontext
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch
from torch import fx, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from .. import core
from ..errors import UsageError
from .joint import Joint, Unsupported
from .measuring import measure


class TracedGraph(core.Graph):
    """A graph that still knows the torch.fx nodes that it came from (`joint`), for `profile`."""

    joint: Joint

    @classmethod
    def of(cls, joint: Joint, document: Optional[Dict[str, Any]] = None) -> "TracedGraph":
        data = json.dumps(document or joint.document)
        made = core.parse(data, joint.document["name"])
        made.__class__ = cls
        made.joint = joint
        made.document = document or joint.document
        return made


class _Step(nn.Module):
    """The model and its loss as one function of tensors."""

    def __init__(self, model: nn.Module, loss: Optional[Callable[..., torch.Tensor]], spec: Any):
        super().__init__()
        self.model, self.loss, self.spec = model, loss, spec

    def forward(self, *leaves: Any) -> Any:
        args, kwargs = pytree.tree_unflatten(list(leaves), self.spec)
        result = self.model(*args, **kwargs)
        if self.loss is not None:
            return self.loss(result)
        if hasattr(result, "loss") and isinstance(result.loss, torch.Tensor):
            return result.loss
        tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        return tensors[0] if tensors and tensors[0].dim() == 0 else tuple(tensors)


def _fake(mode: FakeTensorMode, tensor: Any) -> Any:
    """A fake twin of a tensor; one on the meta device passes for a tensor of the CPU."""
    if not isinstance(tensor, torch.Tensor) or isinstance(tensor, FakeTensor):
        return tensor
    if tensor.device.type == "meta":
        with mode:
            twin = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    else:
        twin = mode.from_tensor(tensor.detach())
    return twin.requires_grad_(tensor.requires_grad)


def _mode_of(*values: Any) -> FakeTensorMode:
    for leaf in pytree.tree_leaves(values):
        if isinstance(leaf, FakeTensor):
            return leaf.fake_mode
    return FakeTensorMode(allow_non_fake_inputs=True)


def capture(
    model: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any], loss: Optional[Callable[..., torch.Tensor]] = None
) -> Tuple[fx.GraphModule, int, List[int]]:
    """The joint graph of one step, the number of forward results, and which inputs are parameters and buffers."""
    from torch._functorch.aot_autograd import aot_function
    from torch.func import functional_call

    found: List[Tuple[fx.GraphModule, int, List[int]]] = []

    def partition(module: fx.GraphModule, joint_inputs: Any, *, num_fwd_outputs: int, **_more: Any) -> Any:
        found.append((module, num_fwd_outputs, list(range(len(static)))))
        raise _Captured

    leaves, spec = pytree.tree_flatten((args, kwargs))
    step = _Step(getattr(model, "_orig_mod", model), loss, spec)  # what a compiled model was made of
    static = {**dict(step.named_parameters()), **dict(step.named_buffers())}
    mode = _mode_of(list(static.values()), leaves)

    def run(*flat: Any) -> Any:
        return functional_call(step, dict(zip(static, flat)), tuple(flat[len(static) :]))

    collected, flags = (
        gc.isenabled(),
        {name: getattr(torch.compiler, name) for name in ("_is_compiling_flag",) if hasattr(torch.compiler, name)},
    )
    for name in flags:  # models ask torch.compiler whether they may look at data; under a trace they may not
        setattr(torch.compiler, name, True)
    gc.disable()  # a trace makes a great many objects and no garbage: collections take a third of its time
    try:
        aot_function(run, _never, _never, partition_fn=partition, num_params_buffers=len(static))(
            *(_fake(mode, t) for t in [*static.values(), *leaves])
        )
    except _Captured:
        pass
    finally:
        for name, value in flags.items():
            setattr(torch.compiler, name, value)
        if collected:
            gc.enable()
    if not found:
        raise UsageError(
            "nothing to plan: no result needs a gradient (parameters without requires_grad, or torch.no_grad)"
        )
    return found[0]


def _never(module: fx.GraphModule, _inputs: Any) -> Any:
    """Stands for the compilers: an inference graph gets here."""
    raise _Captured


class _Captured(Exception):
    """Ends the trace once the joint graph is there: nothing behind it is wanted."""


def _grown(value: Any, batch: int, dimension: int) -> Any:
    """Inputs with a batch one larger: every tensor whose dimension has the batch size."""

    def grow(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.dim() <= dimension or leaf.shape[dimension] != batch:
            return leaf
        shape = list(leaf.shape)
        shape[dimension] += 1
        with leaf.fake_mode if isinstance(leaf, FakeTensor) else nullcontext():
            return torch.zeros(shape, dtype=leaf.dtype, device=leaf.device)

    return pytree.tree_map(grow, value)


def _scaled(document: Dict[str, Any], larger: Dict[str, Any], batch: int) -> bool:
    """Adds what one more element of the batch adds to sizes, storages and flops; False if the two graphs are not the
    same but for sizes.
    """
    if len(document["values"]) != len(larger["values"]) or len(document["nodes"]) != len(larger["nodes"]):
        return False
    if any(
        (a["op"], a["in"], a["out"]) != (b["op"], b["in"], b["out"]) for a, b in zip(document["nodes"], larger["nodes"])
    ):
        return False
    if any(a.get("alias") != b.get("alias") for a, b in zip(document["values"], larger["values"])):
        return False
    document["batch"] = batch
    for rows, others, keys in (
        (document["values"], larger["values"], ("size", "storage")),
        (document["nodes"], larger["nodes"], ("flops", "workspace", "cost")),
    ):
        for row, other in zip(rows, others):
            for key in keys:
                if key in row and other[key] != row[key]:
                    row[f"{key}_per_batch"] = other[key] - row[key]
    return True


def trace(
    model: nn.Module,
    *args: Any,
    loss: Optional[Callable[..., torch.Tensor]] = None,
    name: Optional[str] = None,
    random: str = "replay",
    batch_dim: Optional[int] = 0,
    reserve: int = 0,
    **kwargs: Any,
) -> TracedGraph:
    """The remat graph of one training step of `model(*args, **kwargs)`, traced with fake tensors: parameters and inputs
    may be on the meta device.

    `loss(result)` is what is differentiated; without it the result's own `loss`, or its first tensor if that is a
    scalar. `random`: "replay" (random ops may run again) or "pin". With `batch_dim` a second trace, one element larger,
    says how sizes grow with the batch.

    >>> import torch, remat.torch
    >>> model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(8)))
    >>> graph = remat.torch.trace(model, torch.randn(512, 64), loss=lambda y: y.square().mean())
    >>> graph.info()["pinned"]  # remat.boundary
    1
    >>> graph.plan("60%").within_budget
    True
    """
    if random not in ("replay", "pin"):
        raise UsageError(f"random={random!r}: 'replay' or 'pin'")
    if not torch.is_grad_enabled():
        raise UsageError("gradients are switched off (torch.no_grad): nothing to plan")
    title = name or type(model).__name__

    def joint_of(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Joint:
        module, num_fwd_outputs, static = capture(model, args, kwargs, loss)
        return Joint(module, num_fwd_outputs, static, replay=random == "replay", outside_bytes=reserve, name=title)

    joint = joint_of(args, kwargs)
    sizes = [
        leaf.shape[batch_dim]
        for leaf in pytree.tree_leaves((args, kwargs))
        if isinstance(leaf, torch.Tensor) and batch_dim is not None and leaf.dim() > batch_dim
    ]
    if sizes:
        try:
            larger = joint_of(_grown(args, sizes[0], batch_dim or 0), _grown(kwargs, sizes[0], batch_dim or 0))
            _scaled(joint.document, larger.document, sizes[0])
        except (Unsupported, RuntimeError, ValueError):
            pass  # a model that insists on its batch size has no scaling
    return TracedGraph.of(joint)


# ---- times ----


def profile(graph: TracedGraph, device: Union[str, torch.device, None] = None, *, repeat: int = 5) -> TracedGraph:
    """The graph with each op timed on a device with its real shapes (warm-up, median of `repeat`, once for every op and
    shapes in a process), and, on CUDA, the workspace that it takes. Without a device, or with the name of one that is
    not here ("h100"): the roofline of that one.

    >>> import torch, remat.torch
    >>> graph = remat.torch.trace(torch.nn.Linear(64, 64), torch.randn(32, 64), loss=lambda y: y.square().mean())
    >>> remat.torch.profile(graph, "cpu", repeat=1).cost_model
    'given'
    >>> remat.torch.profile(graph, "a100").cost_model
    'roofline:a100'
    """
    if not isinstance(graph, TracedGraph):
        raise UsageError("profile takes what remat.torch.trace gave: a graph from a file has no ops of torch to time")
    if repeat < 1:
        raise UsageError(f"repeat={repeat}: an op must run once at least")
    if device is None or str(device) in core.devices() and str(device) != "cpu":
        made = graph.prepare(f"roofline:{device or 'h100'}")
        made.__class__ = TracedGraph
        made.joint, made.document = graph.joint, graph.document
        return made
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"no device {str(device)!r} here ({str(error).splitlines()[0][:120]}); rooflines: {', '.join(core.devices())}"
        ) from None
    document = copy.deepcopy(graph.document)
    measured = measure(graph.joint, torch.device(device), repeat)
    for entry, row in zip(graph.joint.ops, document["nodes"]):
        row["cost"], workspace = measured.get(entry.node, (0, 0)) if entry.kind == "node" else (0, 0)
        if workspace:
            row["workspace"] = workspace
    return TracedGraph.of(graph.joint, document)
