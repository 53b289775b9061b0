"""Is a budget safe for this model? One training step under the budget and one with everything kept, compared bit by
bit, and the predicted peak held against what was really there.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

import torch

from ..errors import Error, UsageError, size_text
from . import lower
from .reporting import reports


@dataclass
class CheckResult:
    """`identical`: results, gradients, buffers and the state of the generators afterwards are the same to the last
    bit; `different` names what is not. `unlike_eager` names what differs from eager code by more than
    `torch.testing.assert_close` allows (AOTAutograd's own traces may round otherwise). `predicted_bytes` and
    `measured_bytes`: the peak of the plan, and of the storages counted while it ran (results held to the end).
    """

    identical: bool
    different: List[str]
    planned: bool
    predicted_bytes: Optional[int]
    measured_bytes: Optional[int]
    keep_all_bytes: Optional[int]
    budget: Any
    reports: List[Dict[str, Any]] = field(default_factory=list)
    unlike_eager: List[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.identical and self.planned and not self.unlike_eager

    def __str__(self) -> str:
        same = "bit-identical to keep-all" if self.identical else "DIFFERENT: " + ", ".join(self.different[:5])
        if self.unlike_eager:
            same += ", UNLIKE EAGER: " + ", ".join(self.unlike_eager[:5])
        if not self.planned:
            reason = next(
                (r["reason"] for r in self.reports if not r["planned"]),
                "Dynamo compiled nothing: see TORCH_LOGS=graph_breaks",
            )
            return f"budget {self.budget}: not planned ({reason}), {same}"
        return (
            f"budget {self.budget}: {same}; peak predicted {size_text(self.predicted_bytes or 0)}, measured {size_text(self.measured_bytes or 0)}, "
            f"keep-all {size_text(self.keep_all_bytes or 0)}"
        )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor: NaNs compare by their bits, and -0 is not 0."""
    dense = (tensor if tensor.layout is torch.strided else tensor.to_dense()).detach().contiguous()
    return dense.reshape(-1).view(torch.uint8) if dense.numel() else dense


def same_bits(a: Optional[torch.Tensor], b: Optional[torch.Tensor]) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and a.device == b.device and torch.equal(_bits(a), _bits(b))


def _close(a: Optional[torch.Tensor], b: Optional[torch.Tensor]) -> bool:
    if same_bits(a, b):
        return True
    if a is None or b is None:
        return False
    try:
        torch.testing.assert_close(a.detach(), b.detach(), equal_nan=True)
    except AssertionError:
        return False
    return True


def _tensors(value: Any) -> List[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _generators(devices: List[torch.device]) -> List[torch.Tensor]:
    from .rng import rng_state

    return [rng_state("cpu", 0)] + [rng_state(d.type, d.index or 0) for d in devices if d.type not in ("cpu", "meta")]


def run_step(
    model: torch.nn.Module,
    inputs: Tuple[Any, ...],
    keywords: Dict[str, Any],
    loss: Optional[Callable[..., torch.Tensor]],
    compile: Callable[[Any], Any],
    steps: int = 1,
) -> Dict[str, Any]:
    """Trains `steps` steps on a copy of the model and returns every tensor that came of it, by name."""
    twin, copied = copy.deepcopy(model), {}
    inputs, keywords = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda t: copy.deepcopy(t.detach(), copied).requires_grad_(t.requires_grad), (inputs, keywords)
    )
    for parameter, original in zip(twin.parameters(), model.parameters()):
        parameter.grad = None if original.grad is None else original.grad.clone()
    compiled = compile(twin)
    found: Dict[str, Any] = {}
    for step in range(steps):
        result = compiled(*inputs, **keywords)
        tensors = _tensors(result)
        target = (
            loss(result)
            if loss is not None
            else tensors[0]
            if tensors and tensors[0].dim() == 0
            else sum(t.float().sum() for t in tensors if t.is_floating_point() and t.requires_grad)
        )
        if not isinstance(target, torch.Tensor) or not target.requires_grad:
            raise UsageError(
                "nothing to check: no result needs a gradient (parameters without requires_grad, or torch.no_grad)"
            )
        target.backward()
        for i, tensor in enumerate(tensors):
            found[f"step {step} result {i}"] = tensor.detach().clone()
        del target, result, tensors
    for name, parameter in twin.named_parameters():
        found[f"gradient of {name}"] = parameter.grad
    for name, buffer in twin.named_buffers():
        found[f"buffer {name}"] = buffer
    for i, tensor in enumerate(_tensors((inputs, keywords))):
        found[f"input {i}"] = tensor.detach()
        if tensor.requires_grad:
            found[f"gradient of input {i}"] = tensor.grad
    devices = sorted({p.device for p in twin.parameters()}, key=str)
    for i, state in enumerate(_generators(devices)):
        found[f"generator {i}"] = state
    return found


def check(
    model: torch.nn.Module,
    *inputs: Any,
    budget: Union[int, str, None],
    loss: Optional[Callable[..., torch.Tensor]] = None,
    verbose: bool = True,
    keywords: Optional[Dict[str, Any]] = None,
    steps: int = 1,
    **options: Any,
) -> CheckResult:
    """Compares a step under `budget` with torch's own backend that keeps everything
    ("aot_eager_default_partitioner"), bit by bit, and with eager code, from the same random numbers; model and
    inputs are not touched. `loss(result)` gives what is differentiated: by default the result if it is a scalar,
    else the sum of all. `options` are those of the backend.
    """
    model = getattr(model, "_orig_mod", model)  # of a compiled model
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"check takes an nn.Module, not a {type(model).__name__}")
    saved = _generators(sorted({p.device for p in model.parameters()}, key=str))
    keywords = keywords or {}

    def restore() -> None:
        torch.default_generator.set_state(saved[0])
        for device, state in zip(
            [d for d in sorted({p.device for p in model.parameters()}, key=str) if d.type not in ("cpu", "meta")],
            saved[1:],
        ):
            getattr(torch, device.type).set_rng_state(state, device.index or 0)

    torch._dynamo.reset()
    eager = run_step(model, inputs, keywords, loss, lambda m: m, steps)
    restore()
    kept = run_step(
        model,
        inputs,
        keywords,
        loss,
        lambda m: torch.compile(m, backend="aot_eager_default_partitioner", dynamic=False),
        steps,
    )
    restore()
    torch._dynamo.reset()
    before = len(reports())
    device_type = next((p.device.type for p in model.parameters()), "cpu")
    meter = lower.Meter(device_type)
    lower.meter[:] = [meter]
    try:
        found = run_step(
            model,
            inputs,
            keywords,
            loss,
            lambda m: torch.compile(m, backend="remat", options={"budget": budget, **options}, dynamic=False),
            steps,
        )
    except torch._dynamo.exc.BackendCompilerFailed as error:
        inner = getattr(error, "inner_exception", None)
        raise inner if isinstance(inner, Error) else error
    finally:
        lower.meter.clear()
        torch._dynamo.reset()
        restore()
    made = reports()[before:]
    different = [name for name in {**kept, **found} if not same_bits(kept.get(name), found.get(name))]
    unlike = [name for name in {**eager, **found} if not _close(eager.get(name), found.get(name))]
    planned = bool(made) and all(report["planned"] for report in made)
    result = CheckResult(
        identical=not different,
        different=different,
        planned=planned,
        budget=budget,
        reports=made,
        unlike_eager=unlike,
        predicted_bytes=max(r["peak_bytes"] for r in made) if planned else None,
        measured_bytes=meter.peak_bytes if planned else None,
        keep_all_bytes=max(r["keep_all_peak_bytes"] for r in made) if planned else None,
    )
    if verbose:
        print(result)
    return result
