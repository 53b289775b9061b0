"""Stages of an nn.Sequential: what they are, how one runs, how one is measured (Rotor, section 5.1).

A stage is a run of modules with one value between it and the next: tensors, or tuples, lists and dicts of them. A
module that writes into its input, or only gives back a view of it, belongs to the stage before it: alone it would
change or hold what another stage owns.

Measured are, in the words of docs/format.md: `a`, what the output takes; `abar`, that and all that autograd saves;
`delta`, the gradient of the output; `of` and `ob`, what forward and backward take besides while they run; `tf` and
`tb`, the median of three times; `keep`, what running the stage again with the same random numbers and buffers needs.
Memory is the allocator's on CUDA, counted storages (op by op) elsewhere.

Invariant of measuring: generators and buffers are left as they were found, and no more is in memory than one stage's
forward and backward takes."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from ..core import Stage
from .checking import same_bits
from .joint import Unsupported
from .lower import Meter
from .rng import _set as set_rng_state
from .rng import rng_state

Tensors = List[torch.Tensor]
PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
# Their running statistics are skipped by a flag; what any other module writes into its buffers is put back from a copy.
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
REPEATS = 3


# ---- values between stages ----


class Form(NamedTuple):
    """What a value is besides its tensors: None in the place of each."""

    spec: Any
    leaves: Tuple[Any, ...]
    is_tensor: Tuple[bool, ...]


def pack(value: Any, what: str) -> Tuple[Tensors, Optional[Form]]:
    """The tensors of a value, and its form (None: a tensor by itself)."""
    if isinstance(value, torch.Tensor):
        return [value], None
    leaves, spec = tree_flatten(value)
    is_tensor = tuple(isinstance(leaf, torch.Tensor) for leaf in leaves)
    for leaf, tensor in zip(leaves, is_tensor):
        if not tensor and not isinstance(leaf, PLAIN):
            raise Unsupported(
                f"{what} holds a {type(leaf).__name__}: only tensors, plain numbers and strings, and tuples, lists and dicts of them can be kept and made again"
            )
    form = Form(spec, tuple(None if tensor else leaf for leaf, tensor in zip(leaves, is_tensor)), is_tensor)
    return [leaf for leaf, tensor in zip(leaves, is_tensor) if tensor], form


def unpack(tensors: Sequence[torch.Tensor], form: Optional[Form]) -> Any:
    if form is None:
        return tensors[0]
    rest = iter(tensors)
    return tree_unflatten(
        [next(rest) if tensor else leaf for leaf, tensor in zip(form.leaves, form.is_tensor)], form.spec
    )


# ---- what a stage is ----


@dataclass
class Group:
    """The modules of a stage, and what was learnt of them."""

    name: str
    modules: List[nn.Module]
    parameters: Tensors = field(default_factory=list)  # every leaf that gradients may flow into, besides the input
    norms: List[nn.Module] = field(default_factory=list)
    # written by a forward run, those of `norms` left out
    buffers: List[Tuple[nn.Module, str]] = field(default_factory=list)
    random: bool = False
    minds_grad_mode: bool = False  # computes other bits under no_grad (torch's fast path for transformers in eval mode)
    reproducible: bool = True
    out_needs_grad: Tuple[bool, ...] = ()
    sizes: Stage = field(default_factory=Stage)

    # where its modules hold what forward only reads: parameters, frozen ones too, and buffers
    places: List[Tuple[Dict[str, Any], str]] = field(default_factory=list)

    def contents(self) -> List[Tuple[Any, int]]:
        """Parameters and buffers that forward only reads as they are now: the tensors, and how often each was
        written.
        """
        return [(p, p._version) for p in [held.get(name) for held, name in self.places] if p is not None]

    def __call__(self, value: Any) -> Any:
        for module in self.modules:
            value = module(value)
        return value


def hooked(module: nn.Module) -> bool:
    return any(
        getattr(module, name, None)
        for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")
    )


def flatten(sequential: nn.Sequential, prefix: str = "") -> Iterator[Tuple[str, nn.Module]]:
    """The modules that run one after the other, by their names in the state_dict. A Sequential inside that has hooks
    of its own is one module.
    """
    for name, module in sequential._modules.items():
        if type(module) is nn.Sequential and len(module) and not hooked(module):
            yield from flatten(module, f"{prefix}{name}.")
        elif module is not None:
            yield prefix + name, module


def storage_key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


# ---- one run of a stage ----


@contextlib.contextmanager
def unhooked(parameters: Sequence[torch.Tensor]) -> Iterator[None]:
    """Without the hooks on parameters for a while: the gradient is handed to autograd again, which calls them."""
    found = [(p._backward_hooks, list(p._backward_hooks.items())) for p in parameters if p._backward_hooks]
    for hooks, _ in found:
        hooks.clear()
    try:
        yield
    finally:
        for hooks, items in found:
            hooks.update(items)


def differentiate(
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    deltas: Sequence[Optional[torch.Tensor]],
    parameters: Sequence[torch.Tensor],
) -> Tuple[Optional[torch.Tensor], ...]:
    """Gradients of `inputs` from those of the outputs; autograd lets go of what it saved as it goes."""
    rows = [i for i, delta in enumerate(deltas) if delta is not None and outputs[i].requires_grad]
    if not rows or not inputs:
        return (None,) * len(inputs)
    with unhooked(parameters):
        return torch.autograd.grad([outputs[i] for i in rows], inputs, [deltas[i] for i in rows], allow_unused=True)


def leaves_for_grad(tensors: Sequence[torch.Tensor], needs_grad: Sequence[bool]) -> Tensors:
    return [t.detach().requires_grad_() if needs else t.detach() for t, needs in zip(tensors, needs_grad)]


def run_saving(group: Group, inputs: Tensors, form: Optional[Form]) -> Tuple[Tensors, Optional[Form]]:
    """Fall: forward with autograd on, from leaves."""
    with torch.enable_grad():
        out, out_form = pack(group(unpack(inputs, form)), f"the output of stage {group.name}")
    _drop_casts()
    return out, out_form


def _forget(_: torch.Tensor) -> None:
    return None


def run_dropping(
    group: Group, inputs: Tensors, form: Optional[Form], needs_grad: Sequence[bool]
) -> Tuple[Tensors, Optional[Form]]:
    """Fck and Fnone: forward that keeps nothing but its output."""
    if group.minds_grad_mode:
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(_forget, _forget):
            out, out_form = pack(
                group(unpack(leaves_for_grad(inputs, needs_grad), form)), f"the output of stage {group.name}"
            )
    else:
        with torch.no_grad():
            out, out_form = pack(group(unpack(inputs, form)), f"the output of stage {group.name}")
    _drop_casts()
    return [t.detach() for t in out], out_form


def _drop_casts() -> None:
    """autocast's copies of weights must not outlive the run of a stage: it holds them to its end, and with a
    gradient or without as they were made.
    """
    torch.clear_autocast_cache()


# ---- what running again needs ----


def generators_of(device: torch.device) -> List[Tuple[str, int]]:
    return [("cpu", 0)] + ([] if device.type in ("cpu", "meta") else [(device.type, device.index or 0)])


def get_states(generators: Sequence[Tuple[str, int]]) -> Tensors:
    return [rng_state(*generator) for generator in generators]


def set_states(generators: Sequence[Tuple[str, int]], states: Tensors) -> None:
    for generator, state in zip(generators, states):
        set_rng_state(*generator, state)


def same_states(a: Tensors, b: Tensors) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b))


class Buffers:
    """The contents of some buffers; `restore` puts them back without autograd noticing (they are what they were)."""

    def __init__(self, places: Sequence[Tuple[nn.Module, str]]):
        self.places = [(module, name, module._buffers[name]) for module, name in places]
        self.copies = [None if b is None else b.detach().clone() for _, _, b in self.places]

    def restore(self) -> None:
        for (module, name, tensor), copy in zip(self.places, self.copies):
            module._buffers[name] = tensor
            if tensor is not None and copy is not None:
                with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(tensor):
                    tensor.copy_(copy)


@contextlib.contextmanager
def without_statistics(norms: Sequence[nn.Module]) -> Iterator[None]:
    """Batch norms in training compute the same without their running statistics, and leave them alone."""
    found = [norm for norm in norms if norm.training and norm.track_running_stats]
    for norm in found:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in found:
            norm.track_running_stats = True


def ambient(device: torch.device) -> Tuple[Any, ...]:
    """The state of autocast, as a key and for `as_in`."""
    types = ("cpu",) if device.type in ("cpu", "meta") else ("cpu", device.type)
    return tuple((t, torch.is_autocast_enabled(t), torch.get_autocast_dtype(t)) for t in types) + (
        torch.is_autocast_cache_enabled(),
    )


@contextlib.contextmanager
def as_in(state: Tuple[Any, ...], device: torch.device) -> Iterator[None]:
    """autocast as it was when `state` was taken."""
    if ambient(device) == state:
        yield
        return
    with contextlib.ExitStack() as stack:
        for device_type, enabled, dtype in state[:-1]:
            stack.enter_context(torch.autocast(device_type, dtype=dtype, enabled=enabled, cache_enabled=state[-1]))
        yield


# ---- memory ----


class AllocatorGauge:
    """What CUDA's allocator says; `round_up` is its block size."""

    def __init__(self, device: torch.device):
        self.device = device

    def __enter__(self) -> "AllocatorGauge":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def round_up(self, n_bytes: int) -> int:
        return (n_bytes + 511) // 512 * 512

    def take(self, tensors: Sequence[torch.Tensor]) -> None:
        pass

    def now(self) -> int:
        return torch.cuda.memory_allocated(self.device)

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> int:
        return torch.cuda.max_memory_allocated(self.device)


class CountingGauge(TorchDispatchMode):
    """Storages counted behind every op that runs while it is entered; those given to `take` count from then on."""

    def __init__(self, device: torch.device):
        super().__init__()
        self.meter = Meter(device.type)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.meter(tree_flatten(made)[0])
        return made

    def round_up(self, n_bytes: int) -> int:
        return n_bytes

    def take(self, tensors: Sequence[torch.Tensor]) -> None:
        self.meter.take(list(tensors))

    def now(self) -> int:
        peak = self.meter.peak_bytes
        self.reset_peak()
        now, self.meter.peak_bytes = self.meter.peak_bytes, peak
        return now

    def reset_peak(self) -> None:
        self.meter.peak_bytes = 0
        self.meter(())

    def peak(self) -> int:
        return self.meter.peak_bytes


def gauge_of(device: torch.device) -> Any:
    return AllocatorGauge(device) if device.type == "cuda" else CountingGauge(device)


def bytes_of_storages(tensors: Sequence[torch.Tensor], gauge: Any, left_out: Set[int] = frozenset()) -> int:
    storages = {storage_key(t): t.untyped_storage().nbytes() for t in tensors}
    return sum(gauge.round_up(n_bytes) for key, n_bytes in storages.items() if key not in left_out)


# ---- grouping ----


class _Guard:
    """Puts generators and buffers back in the end."""

    def __init__(self, sequential: nn.Module, generators: Sequence[Tuple[str, int]]):
        self.generators, self.states = generators, get_states(generators)
        self.places = [(module, name) for module in sequential.modules() for name in module._buffers]
        self.buffers = Buffers(self.places)
        self.versions = _versions_of(self.places)

    def restore(self) -> None:
        set_states(self.generators, self.states)
        if _versions_of(self.places) != self.versions:
            self.buffers.restore()


def _versions_of(places: Sequence[Tuple[nn.Module, str]]) -> List[Any]:
    found = ((module._buffers[name], name) for module, name in places)
    return [(id(b), name, None if b is None or b.is_inference() else b._version) for b, name in found]


def group_modules(modules: Sequence[Tuple[str, nn.Module]], inputs: Tensors, form: Optional[Form]) -> List[Group]:
    """Stages, found by running the modules once under no_grad."""
    groups: List[Group] = []
    whole = inputs = [t.detach().clone() for t in inputs]
    outside = {storage_key(t) for t in whole} | {
        storage_key(p) for _, m in modules for p in (*m.parameters(), *m.buffers())
    }
    with torch.no_grad():
        for name, module in modules:
            versions = [t._version for t in inputs]
            out, form = pack(module(unpack(inputs, form)), f"the output of stage {name}")
            writes = [t._version for t in inputs] != versions
            owned = {storage_key(t) for t in inputs} - outside
            only_views = bool(owned) and all(storage_key(t) in owned | outside for t in out)
            if writes and not groups:
                raise Unsupported(
                    f"module {name} ({type(module).__name__}) writes into the input of the whole Sequential, which must stay for running it again: use inplace=False"
                )
            if groups and (writes or only_views):
                groups[-1].modules.append(module)
                groups[-1].name = f"{groups[-1].name.split('..')[0]}..{name}"
            else:
                groups.append(Group(name, [module]))
            inputs = [t.detach() for t in out]
    del whole  # until here, so that no other storage takes its place
    _drop_casts()
    return groups


# ---- measuring ----


def _leaves_behind(outputs: Sequence[torch.Tensor]) -> Tensors:
    """The leaf tensors that gradients of the outputs flow into."""
    todo = [t.grad_fn for t in outputs if t.grad_fn is not None]
    seen, found = set(todo), []
    while todo:
        node = todo.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
    return found


def _now_ns(device: torch.device) -> int:
    if device.type != "cpu" and hasattr(torch, device.type) and hasattr(getattr(torch, device.type), "synchronize"):
        getattr(torch, device.type).synchronize(device)
    return time.perf_counter_ns()


def _median(times: List[int]) -> int:
    return max(1, sorted(times)[len(times) // 2])


def held_by(sequential: nn.Module) -> Tensors:
    """Parameters, buffers, and tensors that modules hold besides (spectral norm its weight)."""
    others = [x for module in sequential.modules() for x in module.__dict__.values() if isinstance(x, torch.Tensor)]
    return [*sequential.parameters(), *sequential.buffers(), *others]


@dataclass
class Measured:
    groups: List[Group]
    first: int  # stages before it need no gradient and run as they are
    input: Stage  # of the first stage that does
    parameter_bytes: int  # parameters, buffers, and what else modules hold
    gradient_bytes: List[int]  # of the parameters that a stage, going backward, is the first to use; by stage
    output_bytes: int
    outer_input_bytes: int  # the Sequential's own input, where that is not the input of stage `first`
    prefix_bytes: int  # the most that the stages before `first` take, their input and output included
    seconds: float


class _Measure:
    def __init__(self, sequential: nn.Module, device: torch.device):
        self.device, self.gauge, self.generators = device, gauge_of(device), generators_of(device)
        self.off = tuple((t, False, dtype) for t, _, dtype in ambient(device)[:-1]) + (True,)
        self.sequential = sequential
        self.state_bytes = sum(s.nbytes for s in get_states(self.generators)) if device.type == "cpu" else 0

    def stage(
        self, group: Group, inputs: Tensors, form: Optional[Form], needs_grad: Sequence[bool], outside: Set[int]
    ) -> Tuple[Tensors, Optional[Form], int]:
        """Fills in what there is to know of a stage; its output under no_grad comes back, and the size of its
        input's gradient.
        """
        places = [(module, name) for top in group.modules for module in top.modules() for name in module._buffers]
        versions, before, states = _versions_of(places), Buffers(places), get_states(self.generators)

        def rewind() -> None:
            set_states(self.generators, states)
            before.restore()

        group.norms = [m for top in group.modules for m in top.modules() if type(m) in NORMS]
        group.places = [(m._parameters, name) for top in group.modules for m in top.modules() for name in m._parameters]
        group.parameters = list(
            {id(p): p for top in group.modules for p in top.parameters() if p.requires_grad}.values()
        )
        if self.device.type == "cuda":  # libraries take their workspaces, kernels are loaded and chosen
            for _ in range(2):
                xs = leaves_for_grad(inputs, needs_grad)
                out, _ = run_saving(group, xs, form)
                self.backward(group, xs, out)
                del out, xs
                rewind()
        xs = leaves_for_grad(inputs, needs_grad)
        with self.gauge as gauge:
            gauge.take(inputs)
            start = gauge.now()
            gauge.reset_peak()
            out, out_form = run_saving(group, xs, form)
            saved, saving_peak = gauge.now() - start, gauge.peak() - start
            known = {id(t) for t in (*xs, *group.parameters)}
            group.parameters += [leaf for leaf in _leaves_behind(out) if id(leaf) not in known]
            group.random = not same_states(states, get_states(self.generators))
            written = [place for place, a, b in zip(places, versions, _versions_of(places)) if a != b]
            group.out_needs_grad = tuple(t.requires_grad for t in out)
            reference = [t.detach().clone() for t in out]
            gauge.take(reference)
            deltas = [torch.ones_like(t) if t.requires_grad else None for t in out]
            loaded = gauge.now()
            gauge.reset_peak()
            grads = self.differentiate(group, xs, out, deltas)
            backward_peak = gauge.peak() - loaded
            into = grads[: len(xs)]
            delta_in = sum(
                gauge.round_up(max(g.untyped_storage().nbytes(), x.nbytes)) for g, x in zip(into, xs) if g is not None
            )
            delta_made = bytes_of_storages([g for g in into if g is not None], gauge)
            del grads, into, deltas, out
        rewind()
        self.compare(group, inputs, form, needs_grad, reference, rewind)
        running = {(id(m), name) for m in group.norms if m.training and m.track_running_stats for name in m._buffers}
        group.buffers = [(m, name) for m, name in written if (id(m), name) not in running]
        group.places += [(m._buffers, name) for m, name in places if (m, name) not in written]
        del reference
        with self.gauge as gauge:
            start = gauge.now()
            gauge.reset_peak()
            out, out_form = run_dropping(group, inputs, form, needs_grad)
            made, dropping_peak = gauge.now() - start, gauge.peak() - start
        rewind()
        forward_times, backward_times = [], []
        for _ in range(REPEATS):
            xs = leaves_for_grad(inputs, needs_grad)
            t0 = _now_ns(self.device)
            saving, _ = run_saving(group, xs, form)
            t1 = _now_ns(self.device)
            deltas = [torch.ones_like(t) if t.requires_grad else None for t in saving]
            t2 = _now_ns(self.device)
            self.differentiate(group, xs, saving, deltas)
            t3 = _now_ns(self.device)
            forward_times.append(t1 - t0)
            backward_times.append(t3 - t2)
            del saving, deltas, xs
            rewind()
        held = {storage_key(t) for t in inputs} - outside  # of the input, and in the output too: counted in both
        shared = bytes_of_storages([t for t in out if storage_key(t) in held], self.gauge)
        copies = sum(
            self.gauge.round_up(m._buffers[name].nbytes) for m, name in group.buffers if m._buffers[name] is not None
        )
        keep = copies + (self.state_bytes if group.random else 0)
        group.sizes = Stage(
            name=group.name,
            a=made + shared,
            abar=max(saved, made) + shared,
            delta=sum(self.gauge.round_up(t.nbytes) for t, needs in zip(out, group.out_needs_grad) if needs),
            tf=_median(forward_times),
            tb=_median(backward_times),
            of=max(saving_peak - saved, dropping_peak - made, 0) + copies + 2 * self.state_bytes,
            ob=max(backward_peak - delta_made, 0),
            keep=keep,
        )
        return out, out_form, delta_in

    def differentiate(
        self, group: Group, xs: Tensors, out: Tensors, deltas: Sequence[Optional[torch.Tensor]]
    ) -> Tuple[Optional[torch.Tensor], ...]:
        with as_in(self.off, self.device):  # where users call backward
            return differentiate(
                out, [t for t in (*xs, *group.parameters) if t.requires_grad], deltas, group.parameters
            )

    def backward(self, group: Group, xs: Tensors, out: Tensors) -> None:
        self.differentiate(group, xs, out, [torch.ones_like(t) if t.requires_grad else None for t in out])

    def compare(
        self,
        group: Group,
        inputs: Tensors,
        form: Optional[Form],
        needs_grad: Sequence[bool],
        reference: Tensors,
        rewind: Any,
    ) -> None:
        """Does a forward that saves nothing compute the same bits? With autograd on it must; without, some modules
        take another path. And batch norm without its running statistics?
        """

        def same() -> bool:
            out, _ = run_dropping(group, inputs, form, needs_grad)
            rewind()
            return len(out) == len(reference) and all(same_bits(x, y) for x, y in zip(out, reference))

        for group.minds_grad_mode in (False, True):
            group.reproducible = same()
            if group.reproducible:
                break
        else:
            group.minds_grad_mode = False
        if group.norms and group.reproducible:
            with without_statistics(group.norms):
                if not same():
                    group.norms = []  # their statistics are copied and put back, as any other buffer


def _gradients_of(groups: Sequence[Group], gauge: Any) -> List[int]:
    seen: Set[int] = set()
    found = []
    for group in reversed(groups):
        found.append(sum(gauge.round_up(p.nbytes) for p in group.parameters if id(p) not in seen))
        seen.update(id(p) for p in group.parameters)
    return found[::-1]


def measure(sequential: nn.Sequential, inputs: Tensors, form: Optional[Form], device: torch.device) -> Measured:
    """All stages, one after the other, from an input like those to come."""
    began = time.perf_counter()
    guard = _Guard(sequential, generators_of(device))
    measuring = _Measure(sequential, device)
    gauge = measuring.gauge
    try:
        groups = group_modules(list(flatten(sequential)), inputs, form)
        always = [*inputs, *sequential.parameters(), *sequential.buffers()]
        outside = {storage_key(t) for t in always}
        gauge.take(always)
        guard.restore()
        values, needs_grad = [t.detach() for t in inputs], tuple(t.requires_grad for t in inputs)
        first, prefix, entry, entered = 0, 0, Stage(), values
        input_bytes = bytes_of_storages(inputs, gauge)
        for i, group in enumerate(groups):
            in_bytes = bytes_of_storages(values, gauge)
            values, form, delta_in = measuring.stage(group, values, form, needs_grad, outside)
            if i == first:
                entry = Stage(name="input", a=in_bytes, delta=delta_in)
            needs_grad = group.out_needs_grad
            if not any(needs_grad):  # whatever lies before it gets no gradient
                first, entered = i + 1, values
                outside = {storage_key(t) for t in (*always, *values)}
                prefix = max(prefix, input_bytes + in_bytes + group.sizes.a + group.sizes.of)
        del entered  # until here, so that no other storage takes its place
        return Measured(
            groups,
            first,
            entry,
            bytes_of_storages(held_by(sequential), gauge),
            _gradients_of(groups, gauge),
            bytes_of_storages(values, gauge, outside),
            input_bytes if first else 0,
            prefix,
            time.perf_counter() - began,
        )
    finally:
        guard.restore()
