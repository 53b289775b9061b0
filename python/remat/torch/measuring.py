"""What ops really take on a device: nanoseconds and workspaces, measured with their real shapes; what libraries hold
besides; and what memory there is.

What was measured is kept on the disk, by op, shapes, device and version of torch, so that a model is measured once,
and planned the same way every time."""

from __future__ import annotations

import gc
import hashlib
import json
import operator
import os
import pathlib
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from torch import fx
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakIdKeyDictionary

from ..errors import UsageError, size_text
from . import reporting
from .joint import Joint, hint, is_scalar, storage_key, tensors_of

_measured: Dict[str, Tuple[int, int]] = {}  # nanoseconds and bytes, by op and shapes


def _key(node: fx.Node, device: torch.device) -> str:
    def describe(value: fx.Node) -> Any:
        return (
            hint(value.meta["val"])
            if is_scalar(value)
            else tuple(
                (tuple(map(hint, t.shape)), tuple(map(hint, t.stride())), str(t.dtype))
                for _, t in tensors_of(value.meta.get("val"))
            )
        )

    return repr(
        (
            str(device),
            str(node.target),
            *pytree.tree_leaves(
                pytree.tree_map_only(fx.Node, lambda n: repr(describe(n)), (node.args, dict(node.kwargs)))
            ),
        )
    )


def _real(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor like a fake one, with numbers that no op minds."""
    shape, stride, offset = (
        [hint(n) for n in value.shape],
        [hint(n) for n in value.stride()],
        hint(value.storage_offset()),
    )
    elements = 0 if 0 in shape else 1 + offset + sum((n - 1) * step for n, step in zip(shape, stride))
    flat = (
        torch.rand(elements, device=device).to(value.dtype)
        if value.dtype.is_floating_point
        else torch.zeros(elements, dtype=value.dtype, device=device)
    )
    return flat.as_strided(shape, stride, offset)


def _arguments(node: fx.Node, device: torch.device) -> Tuple[Any, Dict[str, Any]]:
    """Real ones: on the device, but for host scalars among a device's tensors, which stay where they are. Integers
    that an op with several results made (indices of a pooling, the generator's state of an attention) are made by
    that op: kernels trust them, and fake tensors may be wrong about where they lie.
    """
    mixed = any(
        t.device.type not in ("cpu", "meta")
        for n in (node, *node.all_input_nodes)
        for _, t in tensors_of(n.meta.get("val"))
    )

    def real(n: fx.Node) -> Any:
        value = n.meta.get("val")
        if is_scalar(n):
            return hint(value)
        if n.target is operator.getitem and not value.dtype.is_floating_point and value.dtype is not torch.bool:
            args, kwargs = _arguments(n.args[0], device)
            return n.args[0].target(*args, **kwargs)[n.args[1]]
        made = {i: _real(t, t.device if mixed and t.device.type == "cpu" else device) for i, t in tensors_of(value)}
        return made[0] if isinstance(value, torch.Tensor) else [made.get(i) for i in range(len(value))]

    args, kwargs = fx.map_arg((node.args, node.kwargs), real)
    return args, {key: device if key == "device" else value for key, value in kwargs.items()}


def _restrided(value: Any) -> Any:
    return (
        value.contiguous(memory_format=torch.channels_last)
        if isinstance(value, torch.Tensor) and value.dim() == 4
        else value
    )


def _measure(node: fx.Node, device: torch.device, repeat: int, channels_last: bool = False) -> Tuple[int, int]:
    """Median nanoseconds of an op, and the bytes that it allocates beyond its results while it runs (CUDA; 0
    elsewhere).
    """
    with torch.no_grad():
        args, kwargs = _arguments(node, device)
        if channels_last and "convolution" in str(node.target):
            args = pytree.tree_map(_restrided, args)
    with torch.no_grad():
        made = node.target(*args, **kwargs)  # warm-up
        del made
        if device.type == "cuda":
            return _measure_cuda(lambda: node.target(*args, **kwargs), device, repeat)
        times = []
        for _ in range(repeat):
            start = time.perf_counter_ns()
            made = node.target(*args, **kwargs)
            times.append(time.perf_counter_ns() - start)
            del made
    return sorted(times)[len(times) // 2], 0


BEHIND = 1_000_000  # cycles that the device is kept busy with, so that what is timed is launched before it runs
RUNS = 3  # of an op, one behind another: what lies between two of them on the host is not timed


def _measure_cuda(run: Callable[[], Any], device: torch.device, repeat: int) -> Tuple[int, int]:
    """The time of the kernels alone: the host may be busy with other things."""
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    made = run()
    torch.cuda.synchronize(device)
    workspace = torch.cuda.max_memory_allocated(device) - max(before, torch.cuda.memory_allocated(device))
    del made
    times = []
    for _ in range(repeat):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(BEHIND)
        first.record()
        for _ in range(RUNS):
            run()
        last.record()
        torch.cuda.synchronize(device)
        times.append(round(1e6 * first.elapsed_time(last) / RUNS))
    return sorted(times)[len(times) // 2], workspace


def _nodes(joint: Joint) -> List[fx.Node]:
    return [
        entry.node
        for entry in joint.ops
        if entry.kind == "node" and entry.node is not None and not joint.is_view(entry.node)
    ]


def measure(joint: Joint, device: torch.device, repeat: int = 5) -> Dict[fx.Node, Tuple[int, int]]:
    """Nanoseconds and workspace of every node that makes something, measured on a device, once for an op and its
    shapes in a process.
    """
    found = {}
    for node in _nodes(joint):
        key = _key(node, device)
        if key not in _measured:
            _measured[key] = _measure(node, device, repeat)
        found[node] = _measured[key]
    return found


# ---- what was measured before, on the disk ----


def _file(folder: Optional[pathlib.Path], device: torch.device) -> Optional[pathlib.Path]:
    if folder is None:
        return None
    cuda = (torch.cuda.get_device_name(device), torch.backends.cudnn.version()) if device.type == "cuda" else ()
    kind = repr(
        (
            "kernels alone",
            torch.__version__,
            *cuda,
            torch.backends.cudnn.benchmark,
            torch.are_deterministic_algorithms_enabled(),
        )
    )
    return folder / f"ops-{device.type}-{hashlib.sha256(kind.encode()).hexdigest()[:16]}.json"


def _load(path: Optional[pathlib.Path]) -> Dict[str, Tuple[int, int]]:
    if path is None:
        return {}
    try:
        return {str(key): (int(value[0]), int(value[1])) for key, value in json.loads(path.read_text()).items()}
    except (OSError, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        return {}


def _save(path: Optional[pathlib.Path], known: Dict[str, Tuple[int, int]]) -> None:
    keep(path, json.dumps(known))


def keep(path: Optional[pathlib.Path], text: str) -> None:
    """Writes a file of a cache, whole or not at all: other processes may read it, or write it, too."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.replace(path)
    except OSError:
        pass  # a cache that cannot be written is no cache


def kept(path: pathlib.Path) -> bytes:
    """What lies there; nothing, if that cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def measured(
    joint: Joint, folder: Optional[pathlib.Path], repeat: int = 3, channels_last: bool = False
) -> Tuple[Dict[fx.Node, Tuple[int, int]], int]:
    """The same for one step, with a file of what was measured before; and how many ops could not be tried by
    themselves (their numbers matter, memory is short). `channels_last`: convolutions are run in that layout,
    whatever the graph says.
    """
    path = _file(folder, joint.device)
    known, found, failed, fresh = _load(path), {}, 0, False
    with torch._subclasses.fake_tensor.unset_fake_temporarily(), reporting.progress("measuring ops"):
        for node in _nodes(joint):
            key = _key(node, joint.device) + (" channels_last" if channels_last else "")
            if key not in known:
                try:
                    known[key], fresh = _measure(node, joint.device, repeat, channels_last), True
                except Exception:  # anything: a device assertion would end the process in any case
                    failed += 1
                    continue
            found[node] = known[key]
        if fresh and joint.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()
    if fresh:
        _save(path, known)
    return found, failed


def ns_per_byte(device: torch.device, folder: Optional[pathlib.Path]) -> float:
    """What a kernel that computes next to nothing takes for each byte that it reads or writes."""
    path = _file(folder, device)
    known = _load(path)
    if "stream" not in known:
        n_bytes = 64 << 20
        with torch._subclasses.fake_tensor.unset_fake_temporarily(), torch.no_grad():
            x = torch.zeros(n_bytes // 4, device=device)
            y = torch.empty_like(x)
            times = []
            for _ in range(5):
                torch.cuda.synchronize(device)
                start = time.perf_counter_ns()
                for _ in range(20):
                    torch.add(x, 1, out=y)
                torch.cuda.synchronize(device)
                times.append(time.perf_counter_ns() - start)
        known["stream"] = sorted(times)[2] // 20, 2 * n_bytes
        _save(path, known)
    return known["stream"][0] / known["stream"][1]


# ---- libraries ----

_library_bytes: Dict[str, int] = {}


def library_bytes(device: torch.device) -> int:
    """What libraries hold for good once they ran (workspaces of cuBLAS, one for each thread that calls it: forward
    and backward pass).
    """
    if device.type != "cuda":
        return 0
    if str(device) not in _library_bytes:
        with (
            torch._subclasses.fake_tensor.unset_fake_temporarily(),
            torch.enable_grad(),
            torch.autograd.set_multithreading_enabled(True),
        ):
            torch.cuda.synchronize(device)
            torch._C._cuda_clearCublasWorkspaces()
            before = torch.cuda.memory_allocated(device)
            for dtype in (torch.float32, torch.bfloat16):
                x = torch.zeros(64, 64, dtype=dtype, device=device, requires_grad=True)
                torch.addmm(x[0], x, x).sum().backward()
                (x @ x).sum().backward()
                del x
            torch.cuda.synchronize(device)
            _library_bytes[str(device)] = max(0, torch.cuda.memory_allocated(device) - before)
            torch._C._cuda_clearCublasWorkspaces()  # a model without matrix products would never have them
    return _library_bytes[str(device)]


# ---- what there is ----

SPARE = 0.05  # of what is free: for fragments, and what libraries allocate
OPTIMIZER_TENSORS = 2  # that an optimizer keeps for each parameter (Adam and its kin)
_free: Any = WeakIdKeyDictionary()  # the budget "auto" of parameters that were met
_latest: Dict[str, int] = {}  # by device, for graphs without parameters


def free_budget(device: torch.device, arguments: Sequence[Any]) -> int:
    """The budget "auto", fixed where parameters are first met: what this process has of the device's memory and what
    is free, less what is in memory besides the arguments of the graph, less what an optimizer will take for
    parameters that it has not seen (they have no .grad yet), less a spare part.
    """
    if device.type != "cuda":
        raise UsageError('budget="auto": only on CUDA is it known what is free')
    parameters = [a for a in arguments if isinstance(a, torch.nn.Parameter) and a.requires_grad]
    known = next((_free[p] for p in parameters if p in _free), None if parameters else _latest.get(str(device)))
    if known is None:
        free, _ = torch.cuda.mem_get_info(device)
        held = {
            storage_key(a): a.untyped_storage().nbytes()
            for a in arguments
            if isinstance(a, torch.Tensor) and a.device.type == "cuda"
        }
        besides = max(0, torch.cuda.memory_allocated(device) - sum(held.values()))
        to_come = OPTIMIZER_TENSORS * sum(p.numel() * p.element_size() for p in parameters if p.grad is None)
        known = int((1 - SPARE) * (free + torch.cuda.memory_reserved(device) - besides)) - to_come
        if known <= 0:
            raise UsageError(
                f'budget="auto": nothing is left of {size_text(free)} that are free once an optimizer has {size_text(to_come)}'
            )
        _latest[str(device)] = known
    for parameter in parameters:
        _free[parameter] = known
    return known
