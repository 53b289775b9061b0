"""A random model, trained two steps by eager code, and within budgets. Within a budget every result must be that of
eager code to the last bit, or that of torch.compile with everything kept, whose last bits may be others: losses,
results, gradients, buffers, written inputs, parameters behind the optimizer, the generator's state. Keep-all is
compiled only where it is needed to judge.

With Inductor's kernels keep-all is torch's own partition, and both run node by node (node_by_node.py). Which plan is
chosen goes by what its code needs and takes; that is drawn at random, so that plans from every start are run.
"""

from __future__ import annotations

import contextlib
import functools
import random
import warnings
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union
from unittest import mock

import node_by_node
import torch
from random_effects import CALLS
from random_models import Case

import remat
import remat.torch
from remat.torch import fitting, inductor, lower
from remat.torch.checking import same_bits

SHARES = (0.2, 0.6)
WORK = 20000  # of each search
STEPS = 2
KEEP_ALL = {  # by kernels; the last one says whether torch by itself takes a model
    "eager": [{"backend": "aot_eager_default_partitioner"}],
    "inductor": [{"backend": "remat", "kernels": "inductor", "cache": False}, {"backend": "inductor"}],
}
FAILURES = ("different", "raised", "peak")
MODIFIED = "has been modified by an inplace operation"


@dataclass
class Outcome:
    """`kind`: "equal"; "left to torch", "refused" (the budget), "not compiled", all three equal as well as far as
    they ran; "no model" (eager code raises), "keep-all raises", "torch's min cut raises" (it recomputes, too, from
    what the model overwrites behind the graph); and what must not be: "different", "raised", "peak" (more was in
    memory than the plan says).
    """

    seed: int
    budget: Union[str, int, None]
    kind: str
    detail: str = ""
    recomputed_ops: int = 0
    range_bytes: Tuple[int, int] = (0, 0)  # the peak of the plan and that of keep-all

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.budget}: {self.kind}{': ' + self.detail if self.detail else ''}"


def train(
    make: Callable[[], Case], compile: Callable[[Case], Any], meters: Optional[List[lower.Meter]] = None
) -> Dict[str, Any]:
    """Everything that two steps leave behind, by name. With `meters`, a meter for each step is put there."""
    case = make()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    run = compile(case)
    trained = [p for p in case.model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained or [torch.zeros(1, requires_grad=True)], lr=0.05, momentum=case.momentum)
    CALLS["counted"] = 0
    torch.manual_seed(case.seed)
    found: Dict[str, Any] = {}
    for step in range(STEPS):
        if meters is not None:
            meters.append(lower.Meter())
            lower.meter[:] = meters[-1:]
        arguments = case.arguments()
        results = run(*arguments)
        loss = case.loss(results)
        loss.backward()
        lower.meter.clear()
        kept = {
            "loss": loss,
            "generator": torch.get_rng_state(),
            **{f"result {i}": t for i, t in enumerate(results)},
            **{f"argument {i}": t for i, t in enumerate(arguments)},
            **case.tensors(),
        }
        found.update({f"step {step} {name}": None if t is None else t.detach().clone() for name, t in kept.items()})
        optimizer.step()
        if not case.accumulates:
            for tensor in (*trained, case.x, case.other):
                tensor.grad = None
        del arguments, results, loss, kept
    return found


def compiled(backend: str, **options: Any) -> Callable[[Case], Any]:
    more = {"options": options} if options else {}
    return lambda case: torch.compile(case.model, backend=backend, dynamic=case.dynamic, **more)


def raises(make: Callable[[], Case], message: str, **how: Any) -> bool:
    try:
        train(make, compiled(**how))
    except Exception as error:
        return message in str(error)
    return False


def short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def unlike(reference: Dict[str, Any], found: Dict[str, Any]) -> List[str]:
    """The names of what is not the same to the last bit."""
    return [name for name in {**reference, **found} if not same_bits(reference.get(name), found.get(name))]


def far(reference: Dict[str, Any], found: Dict[str, Any]) -> List[str]:
    """The names of what is not nearly the same: beyond a hundredth of the largest number, or four steps of its type,
    which for bfloat16 are more.
    """

    def is_near(a: Any, b: Any) -> bool:
        if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
            return False
        part = max(0.01, 4 * torch.finfo(a.dtype).eps if a.is_floating_point() else 0)
        a, b = a.double(), b.double()
        return torch.allclose(a, b, part, part * float(a.abs().max()) if a.numel() else 0, equal_nan=True)

    return [name for name in unlike(reference, found) if not is_near(reference.get(name), found.get(name))]


@contextlib.contextmanager
def inductors(seed: int) -> Iterator[None]:
    """Halves run node by node, and the code of plans needs from a tenth less to a third more than planned. Plans come
    in any order, not the cheapest first.
    """
    drawn, candidates = random.Random(seed), inductor.KernelWork.candidates

    def shuffled(*args: Any, **more: Any) -> List[Any]:
        found = candidates(*args, **more)
        return drawn.sample(found, len(found))

    def read(_work: Any, solution: Any) -> fitting.Look:
        return fitting.Look(solution, 0, int(drawn.uniform(0.9, 1.33) * solution.verdict.peak_bytes), drawn.random())

    with (
        node_by_node.in_place_of_code(),
        mock.patch.object(inductor.KernelWork, "read", read),
        mock.patch.object(inductor.KernelWork, "candidates", shuffled),
    ):
        yield


def within(
    make: Callable[[], Case],
    budget: Union[str, int],
    eager: Dict[str, Any],
    keep_all: Callable[[], Optional[Dict[str, Any]]],
    kernels: str,
) -> Outcome:
    """One training within a budget, against eager code, and if its bits are others, against keep-all; where that
    raises, they may be.
    """
    before, meters, seed = len(remat.torch.reports()), [], make().seed
    try:
        found = train(make, compiled("remat", kernels=kernels, budget=budget, cache=False, work=WORK), meters)
    except Exception as error:  # whatever it is, it is reported
        inner = getattr(error, "inner_exception", error)
        if isinstance(inner, remat.BudgetError):
            kind = "refused"
        elif keep_all() is None:
            kind = "keep-all raises"
        elif MODIFIED in str(inner) and raises(make, MODIFIED, backend="aot_eager_decomp_partition"):
            kind = "torch's min cut raises"
        else:
            kind = "raised"
        return Outcome(seed, budget, kind, short(inner))
    finally:
        lower.meter.clear()
    reports, measured = remat.torch.reports()[before:], max(meter.peak_bytes for meter in meters)
    n_graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    kept = keep_all() if unlike(eager, found) else eager
    different = far(eager, found) if kept is None else unlike(kept, found)
    if different:
        note = (
            " (keep-all raises)"
            if kept is None
            else " (keep-all is not eager code either)"
            if unlike(eager, kept)
            else ""
        )
        return Outcome(seed, budget, "different", ", ".join(different[:4]) + f"; {len(different)} in all" + note)
    return _planned(seed, budget, reports, measured, n_graphs)


def _planned(
    seed: int, budget: Union[str, int], reports: List[Dict[str, Any]], measured: int, n_graphs: int
) -> Outcome:
    """The results are right: how did they come about, and did the peak hold?"""
    if not reports:
        return Outcome(seed, budget, "not compiled")
    reasons = [report["reason"] for report in reports if not report["planned"]]
    if reasons:
        return Outcome(seed, budget, "left to torch", reasons[0])
    predicted = max(report["peak_bytes"] for report in reports)
    if measured > predicted and n_graphs == 1:  # what eager code between graphs makes is not planned
        return Outcome(seed, budget, "peak", f"{measured} bytes measured, {predicted} predicted")
    last = reports[-1]
    peaks = (
        last.get("step_peak_bytes", last["peak_bytes"]),
        last.get("step_keep_all_bytes", last["keep_all_peak_bytes"]),
    )
    return Outcome(
        seed, budget, "equal", recomputed_ops=max(report["recomputed_ops"] for report in reports), range_bytes=peaks
    )


def compare(
    seed: int, shares: Sequence[float] = SHARES, most_layers: int = 30, kernels: str = "eager"
) -> List[Outcome]:
    """The outcome with the budget "min", and with budgets that lie so far (0 to 1) between the least that was found
    and keep-all; one alone where there is nothing to compare with.
    """

    def make() -> Case:
        return Case(seed, most_layers, deep=kernels == "inductor")

    with warnings.catch_warnings(), inductors(seed) if kernels == "inductor" else contextlib.nullcontext():
        warnings.simplefilter("ignore")
        try:
            eager = train(make, lambda case: case.model)
        except Exception as error:
            return [Outcome(seed, None, "no model", short(error))]

        @functools.lru_cache(maxsize=None)
        def keep_all() -> Optional[Dict[str, Any]]:
            for how in KEEP_ALL[kernels]:
                with contextlib.suppress(Exception):
                    return train(make, compiled(**how))
            return None  # torch raises, so may remat

        outcomes = [within(make, "min", eager, keep_all, kernels)]
        least, most = outcomes[0].range_bytes
        for share in shares if least < most else ():
            outcomes.append(within(make, least + int(share * (most - least)), eager, keep_all, kernels))
        return outcomes
