"""What Inductor would make of the two halves of a plan, read before any kernel is compiled.

Problem. Which buffers are in memory, and what the fused kernels read and write, is known only once Inductor has
lowered, fused and ordered a half. A plan that turns out to need more than its budget must be replaced, and compiling
every try would take as long as compiling the model each time.

Method. Inductor's own entry point works on a copy of each half until its code is written, and is stopped there: kernels
take most of the time of a compilation, and none is compiled. The backward half reads what the forward half saves in the
layout that its code gives it, and may write into saved tensors that nothing else holds, as AOTAutograd would have told
it. Code that was written is not written again: where that plan is chosen, Inductor's graph behind it (a draft) takes
the place of the one that would be lowered from the same half.

Invariant: the halves that are read are left as they are, and nothing is kept in Inductor's caches. What Inductor
refuses here has no reading (None): it is compiled as planned, and what the real code needs is said afterwards. A draft
stands in for nothing but the very half, inputs and donated tensors that it was made of. Cost: that of lowering and
writing code, some seconds for a large model, once: readings are kept on the disk."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import pathlib
import re
from types import SimpleNamespace
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple
from unittest import mock

import torch
from torch import fx
from torch._guards import TracingContext

from . import generated, measuring
from .joint import hint, is_result, is_scalar, storage_key, tensors_of

Modules = Tuple[fx.GraphModule, fx.GraphModule]
Workspaces = Tuple[Dict[str, List[int]], Dict[str, List[int]]]


class Reading(NamedTuple):
    """Of both halves."""

    peak_bytes: int  # with workspaces, without what is resident
    traffic_bytes: int  # that fused kernels read and write
    kernels: int  # fused ones


class Draft:
    """The code of a half that is not compiled: Inductor's graph behind it, and what that wrote. Used once."""

    def __init__(self, digest: str, graph: Any, codes: Any):
        self.digest = digest
        self._kept: Optional[Tuple[Any, Any]] = (graph, codes)

    def __deepcopy__(self, _memo: Any) -> "Draft":
        return self  # torch copies modules, with what their meta holds

    def take(self) -> Optional[Tuple[Any, Any]]:
        kept, self._kept = self._kept, None
        return kept


class _Stopped(Exception):
    """The code is written."""


class _Written(NamedTuple):
    """The code of a half, the strides of its results, the bytes that its fused kernels read and write, how many there
    are, and what it was written with.
    """

    source: str
    strides: List[Optional[Sequence[int]]]
    traffic_bytes: int
    kernels: int
    graph: Any  # Inductor's
    codes: Any


def _written(half: fx.GraphModule, inputs: Sequence[Any], is_backward: bool) -> _Written:
    """What Inductor writes for a half."""
    from torch._inductor import config
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.graph import GraphLowering

    found: List[_Written] = []

    def stop(graph: Any) -> Any:
        codes = graph.codegen()
        source = getattr(codes[0], "value", codes[0])
        # while it is Inductor's graph at work
        found.append(_Written(source, _strides(graph), *_traffic(graph), graph, codes))
        raise _Stopped

    with mock.patch.object(GraphLowering, "compile_to_module", stop), config.patch(fx_graph_cache=False):
        try:
            compile_fx_inner(half, inputs, is_backward=is_backward)
        except Exception:
            if not found:
                raise
    return found[0]


# in the meta of a half's output: places of results that others see; they have the strides of eager code
VISIBLE = "user_visible_output_idxs"


def _visible(half: fx.GraphModule, is_backward: bool) -> List[int]:
    """Those places, as compile_fx finds them behind the partition."""
    from torch._inductor import config

    (output,) = half.graph.find_nodes(op="output")
    if is_backward:
        seen = [True] * len(output.args[0]) if config.bw_outputs_user_visible else []
    else:
        seen = list(map(is_result, output.meta["desc"])) if config.keep_output_stride else []
    return [i for i, (node, is_seen) in enumerate(zip(output.args[0], seen)) if is_seen and isinstance(node, fx.Node)]


def _twin(module: fx.GraphModule) -> fx.GraphModule:
    return fx.GraphModule(module, copy.deepcopy(module.graph), type(module).__name__)


def _inputs(half: fx.GraphModule, strides: Dict[str, Sequence[int]]) -> List[Any]:
    """Fake arguments of a half; those that the other half makes, in the layout that it makes them in."""
    found = []
    for node in half.graph.find_nodes(op="placeholder"):
        value = node.meta["val"]
        if (
            node.name in strides
            and isinstance(value, torch.Tensor)
            and tuple(strides[node.name]) != tuple(value.stride())
        ):
            with value.fake_mode if hasattr(value, "fake_mode") else contextlib.nullcontext():
                value = torch.empty_strided(value.shape, strides[node.name], dtype=value.dtype, device=value.device)
            node.meta = {**node.meta, "val": value}
        found.append(value)
    return found


def _strides(graph: Any) -> List[Optional[Sequence[int]]]:
    """Strides of what a half returns."""
    found: List[Optional[Sequence[int]]] = []
    for made in graph.graph_outputs or ():
        try:
            found.append([int(step) for step in made.get_layout().stride])
        except Exception:  # a size, a constant, nothing
            found.append(None)
    return found


def _donated(forward: fx.GraphModule, backward: fx.GraphModule, n_results: int, n_tangents: int) -> List[int]:
    """Places of saved tensors that nothing but the backward half holds."""

    def storages(nodes: Sequence[Any]) -> Set[int]:
        values = [node.meta.get("val") for node in nodes if isinstance(node, fx.Node)]
        return {storage_key(value) for value in values if isinstance(value, torch.Tensor)}

    results = forward.graph.find_nodes(op="output")[0].args[0]
    held = (
        storages(forward.graph.find_nodes(op="placeholder"))
        | storages(results[:n_results])
        | storages(backward.graph.find_nodes(op="output")[0].args[0])
    )
    arguments = backward.graph.find_nodes(op="placeholder")
    saved = arguments[: len(arguments) - n_tangents]
    return [i for i, node in enumerate(saved) if not is_scalar(node) and not storages([node]) & held]


def _donating(places: List[int]) -> ContextManager[Any]:
    """Tells Inductor, as AOTAutograd does behind the partition."""
    context = TracingContext.try_get()
    return (
        mock.patch.object(context, "fw_metadata", SimpleNamespace(bw_donated_idxs=places))
        if context
        else contextlib.nullcontext()
    )


def _traffic(graph: Any) -> Tuple[int, int]:
    """Bytes that the fused kernels read and write, and how many kernels there are."""
    from torch._inductor.scheduler import ExternKernelSchedulerNode, NopKernelSchedulerNode

    fused = [
        node
        for node in graph.scheduler.nodes
        if not isinstance(node, (ExternKernelSchedulerNode, NopKernelSchedulerNode))
    ]
    return sum(hint(node.get_read_write_buffers_sizes()) for node in fused), len(fused)


def _drafted(
    half: fx.GraphModule, inputs: Sequence[Any], donated: Optional[Sequence[int]], visible: Optional[Sequence[int]]
) -> str:
    """All that the code of a half depends on within one compilation. `donated`: None: the forward half."""
    digest = hashlib.sha256(repr([donated if donated is None else list(donated), visible]).encode())
    for value in inputs:
        made = (
            (list(value.shape), list(value.stride()), value.storage_offset(), str(value.dtype), str(value.device))
            if isinstance(value, torch.Tensor)
            else value
        )
        digest.update(repr(made).encode())
    for line in _content(half):
        digest.update(line.encode())
    return digest.hexdigest()


# what Inductor's graph is told besides its half; with cpp_wrapper the code is C++, and is read as Python all the same
KINDS = ("aot_mode", "cpp_wrapper", "is_backward", "is_inference")


@contextlib.contextmanager
def compiling(draft: Optional[Draft], half: fx.GraphModule, inputs: Sequence[Any], is_backward: bool) -> Iterator[None]:
    """Inductor compiles what it wrote when the half was read, where nothing has changed since; else it writes code."""
    kept = None
    if draft is not None:
        context = TracingContext.try_get()
        donated = getattr(getattr(context, "fw_metadata", None), "bw_donated_idxs", None) or [] if is_backward else None
        with contextlib.suppress(Exception):  # internals of another version
            kept = draft.take()
            visible = half.graph.find_nodes(op="output")[0].meta.get(VISIBLE)
            kept = kept if _drafted(half, inputs, donated, visible) == draft.digest else None
    if kept is None:
        yield
        return
    from torch._inductor.graph import GraphLowering

    written, codes = kept
    run, codegen = GraphLowering.run, GraphLowering.codegen
    standing: List[Any] = []  # the graph that it stands in for; None: it is of another kind

    def taken(graph: Any, *arguments: Any) -> Any:
        first = not standing
        if first:
            standing.append(graph if all(getattr(graph, kind) == getattr(written, kind) for kind in KINDS) else None)
        if not first or graph is not standing[0]:  # or inside another one
            return run(graph, *arguments)
        vars(graph).update(vars(written))
        return None

    def said(graph: Any) -> Any:
        return codes if standing and graph is standing[0] else codegen(graph)

    with mock.patch.object(GraphLowering, "run", taken), mock.patch.object(GraphLowering, "codegen", said):
        yield


Drafts = Tuple[Draft, ...]  # of both halves


def read(
    halves: Modules,
    residents: Set[str],
    n_results: int,
    workspaces: Workspaces,
    around: Callable[[], ContextManager[Any]],
) -> Tuple[Optional[Reading], Drafts]:
    """What the code of both halves would need and move; None: Inductor does not get that far, or sizes are not
    numbers. `workspaces` of ops in each half (generated.py); `around()` makes the settings that both will be compiled
    with.
    """
    forward, backward = (_twin(half) for half in halves)
    n_tangents = halves[1].meta["remat_tangents"]
    device = next(
        (
            t.device.type
            for node in forward.graph.nodes
            for t in [node.meta.get("val")]
            if isinstance(t, torch.Tensor) and t.device.type != "cpu"
        ),
        "cpu",
    )
    donated = _donated(forward, backward, n_results, n_tangents)
    codes, written, digests = [], [], []
    strides: Dict[str, Sequence[int]] = {}
    try:
        for is_backward, half in enumerate((forward, backward)):
            arguments = generated.arguments_of(half, residents, strides)
            inputs = _inputs(half, strides)
            visible = half.graph.find_nodes(op="output")[0].meta[VISIBLE] = _visible(half, bool(is_backward))
            digests.append(_drafted(halves[is_backward], inputs, donated if is_backward else None, visible))
            with around(), _donating(donated) if is_backward else contextlib.nullcontext():
                written.append(_written(half, inputs, bool(is_backward)))
            codes.append(generated.read(written[-1].source, arguments, device, workspaces[is_backward]))
            results = halves[is_backward].graph.find_nodes(op="output")[0].args[0]
            strides = {
                node.name: steps
                for node, steps in zip(results, written[-1].strides)
                if isinstance(node, fx.Node) and steps is not None
            }
    except Exception:  # internals of another version, or what Inductor cannot compile: that is said when it is compiled
        return None, ()
    peaks = [code.peak_bytes for code in codes if code.peak_bytes is not None]
    if len(peaks) < len(codes):
        return None, ()
    found = Reading(
        max(peaks),
        sum(half.traffic_bytes for half in written),
        sum(half.kernels for half in written),
    )
    return found, tuple(Draft(digest, half.graph, half.codes) for digest, half in zip(digests, written))


# ---- what was read before, on the disk ----


# Inductor's, that work on a half behind the partition, and what they do is told by nothing
PASSES = (
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
    "_pre_fusion_custom_pass",
    "_post_fusion_custom_pass",
)


def _content(half: fx.GraphModule) -> Iterator[str]:
    """All of a half that its code depends on."""
    for node in half.graph.nodes:
        made = [
            (i, [(str(n), hint(n)) for n in (*t.shape, *t.stride())], str(t.dtype), str(t.device))
            for i, t in tensors_of(node.meta.get("val"))
        ]
        planned = sorted((name, value) for name, value in node.meta.items() if name.startswith("remat_"))
        yield repr((node.op, node.name, str(node.target), str(node.args), str(node.kwargs), made, planned))


def content_of(module: fx.GraphModule) -> Optional[str]:
    """A digest of that; None: of something that another version of torch has."""
    digest = hashlib.sha256()
    try:
        for line in _content(module):
            digest.update(line.encode())
    except Exception:
        return None
    return digest.hexdigest()


@functools.lru_cache(maxsize=None)
def reader() -> str:
    """What reads and plans: another version may read something else in the same halves."""
    digest = hashlib.sha256()
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def file_of(
    folder: Optional[pathlib.Path], kind: str, question: Any, halves: Sequence[fx.GraphModule] = ()
) -> Optional[pathlib.Path]:
    """Where the answer lies, by the question, what halves are, and what code is written with; None: nowhere."""
    from torch._inductor import config

    if folder is None or any(getattr(config, name, None) is not None for name in PASSES):
        return None
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    torchs = torch.__version__, torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()
    settings = repr(sorted(config.save_config_portable(ignore_private_configs=False).items()))
    settings = re.sub(r" at 0x[0-9a-f]+", "", settings)
    digest = hashlib.sha256(repr((question, reader(), torchs, device, settings)).encode())
    for half in halves:
        for line in _content(half):
            digest.update(line.encode())
    return folder / f"{kind}-{digest.hexdigest()[:32]}.json"


def _load(path: Optional[pathlib.Path]) -> Optional[Reading]:
    if path is None:
        return None
    try:
        return Reading(*map(int, json.loads(path.read_text())))
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None  # there is none, or something else lies there


def read_once(
    folder: Optional[pathlib.Path],
    question: Any,
    halves: Modules,
    residents: Set[str],
    n_results: int,
    workspaces: Workspaces,
    around: Callable[[], ContextManager[Any]],
) -> Tuple[Optional[Reading], Drafts]:
    """The same, kept in a folder by what the halves are, by torch and its settings, by remat's own code, and by the
    `question`: what `around` depends on. What was found there has no drafts.
    """
    try:
        path = file_of(folder, "code", (question, sorted(residents), n_results, workspaces), halves)
    except Exception:  # internals of another version
        path = None
    known = _load(path)
    if known is not None:
        return known, ()
    found, drafts = read(halves, residents, n_results, workspaces, around)
    if found is not None:
        measuring.keep(path, json.dumps(found))
    return found, drafts
