"""Which graphs run in one training step, and in which order. A step begins with a forward run while nothing is pending,
and ends when nothing is pending any more: every forward run in between either got its backward pass, or its results
were dropped.

A forward run is pending as long as its token lives (lower.token), which autograd saves with the other tensors. Runs
whose results are dropped (evaluation without no_grad) leave no trace, and those whose results are kept while later
runs of the same graph are differentiated do not hold up the step for ever. Devices, which share no memory, and
threads, whose steps have nothing to do with each other, are told apart."""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef


def storages(values: Sequence[Any], device_type: str) -> Dict[int, int]:
    """Storages of tensors on the device, with their bytes."""
    found = {}
    for value in values:
        if isinstance(value, torch.Tensor) and value.device.type == device_type and value.layout is torch.strided:
            storage = value.untyped_storage()
            found[storage._cdata] = storage.nbytes()
    return found


class Parameters:
    """The parameters among the arguments of a graph. They are many and stay: who asks in every step asks `are`
    first.
    """

    def __init__(self, arguments: Sequence[Any]):
        self.n_arguments = len(arguments)
        self.known = [
            (i, weakref.ref(value)) for i, value in enumerate(arguments) if isinstance(value, torch.nn.Parameter)
        ]
        self.others = sorted(set(range(len(arguments))) - {i for i, _ in self.known})

    def are(self, arguments: Sequence[Any], training: Any) -> bool:
        """Whether the training knows them and these arguments hold just them. Any other argument is no parameter."""
        return (
            self.n_arguments == len(arguments)
            and training is self.training
            and all(known() is arguments[i] for i, known in self.known)
            and not any(isinstance(arguments[i], torch.nn.Parameter) for i in self.others)
        )

    def told(self, training: Any) -> "Parameters":
        """The same, once the training knows which of them it trains."""
        training.reads(
            value for value in (known() for _, known in self.known) if value is not None and value.requires_grad
        )
        self.training = training
        return self


class Run:
    """One forward run of a graph, and what it left behind."""

    def __init__(self, graph: Any, arguments: Sequence[Any], sizes: Tuple[int, ...]):
        self.graph, self.sizes = graph, sizes
        # This is done in every step, before the first kernel runs: parameters are looked at only if somebody asks; the
        # rest may be gone by then.
        if graph.parameters is None or not graph.parameters.are(arguments, graph.training):
            graph.parameters = Parameters(arguments).told(graph.training)
        self.leaves = graph.training.leaves()
        self.before = gradient_bytes(self.leaves)  # .grad buffers of the model that existed before it
        self._parameters = graph.parameters
        self._others = {i: storages([arguments[i]], graph.device.type) for i in self._parameters.others}
        self.n_arguments = len(arguments)
        self.outputs: Dict[int, int] = {}
        self.token: Optional[StorageWeakRef] = None
        self.dropped: List[int] = []  # results, by position, that nobody held when the backward pass began
        self.accumulates = False  # the gradients from before were still there then
        self.finished = False
        self.passed_over = False  # a later run of the same graph was differentiated first

    @functools.cached_property
    def places(self) -> Dict[int, List[int]]:
        """Of storages among the arguments."""
        found: Dict[int, List[int]] = {}
        for i, held in enumerate(self._held):
            for key in held:
                found.setdefault(key, []).append(i)
        return found

    @functools.cached_property
    def inputs(self) -> Dict[int, int]:
        """The storages of the arguments, with their bytes."""
        return {key: n for held in self._held for key, n in held.items()}

    @functools.cached_property
    def _held(self) -> List[Dict[int, int]]:
        held = {
            **self._others,
            **{i: storages([known()], self.graph.device.type) for i, known in self._parameters.known},
        }
        return [held[i] for i in range(self.n_arguments)]

    def left(self, results: Sequence[Any], token: torch.Tensor) -> None:
        """The forward pass is over."""
        self.outputs = storages(results, self.graph.device.type)
        self.results = [
            StorageWeakRef(r.untyped_storage()) if isinstance(r, torch.Tensor) and r.layout is torch.strided else None
            for r in results
        ]
        self.token = StorageWeakRef(token.untyped_storage())
        self.leaves = [leaf for leaf in self.leaves if leaf.grad is not None]

    def returned(self) -> None:
        """The backward pass begins."""
        self.dropped = [i for i, result in enumerate(self.results) if result is not None and result.expired()]
        self.accumulates = gradient_bytes(self.leaves) > 0
        self.leaves = []
        self.finished = True

    def pending(self) -> bool:
        return not self.finished and not self.passed_over and (self.token is None or not self.token.expired())


def gradient_bytes(leaves: Sequence[Any]) -> int:
    """Bytes of the .grad buffers that exist."""
    held = {}
    for leaf in leaves:
        grad = leaf.grad
        if grad is not None:
            parts = (grad._indices(), grad._values()) if grad.layout is torch.sparse_coo else (grad,)
            held[id(leaf)] = sum(part.untyped_storage().nbytes() for part in parts)
    return sum(held.values())


class Steps:
    """The steps of one thread on one device."""

    def __init__(self) -> None:
        self.runs: List[Run] = []  # of the step that goes on
        self.backwards: List[Run] = []  # of them, in the order in which they were differentiated

    def pending(self) -> List[Run]:
        return [run for run in self.runs if run.pending()]

    def over(self) -> Tuple[List[Run], bool]:
        """If nothing is pending: the forward runs of the step that is over and got a backward pass, and whether
        those came in reverse order. Else nothing.
        """
        if self.pending():
            return [], True
        runs, backwards = [run for run in self.runs if run.finished], self.backwards
        self.runs, self.backwards = [], []
        return runs, backwards == runs[::-1]

    def begin(self, run: Run) -> None:
        self.runs.append(run)

    def pass_over(self) -> bool:
        """When a forward run is about to begin: runs that still wait although a later run of the same graph is done
        wait for nothing that this step would do. Whether there were such.
        """
        done, found = set(), False
        for run in reversed(self.runs):
            if run.finished:
                done.add(run.graph.serial)
            elif run.pending() and run.graph.serial in done:
                run.passed_over = found = True
        return found

    def failed(self, run: Run) -> None:
        """The forward pass raised: there is nothing to differentiate."""
        self.runs = [other for other in self.runs if other is not run]

    def differentiated(self, key: int) -> bool:
        """The backward pass of a run begins: the one whose token this is, if any."""
        for run in reversed(self.runs):
            if run.token is not None and not run.finished and run.token.cdata == key:
                run.returned()
                self.backwards.append(run)
                return True
        return False


lock = threading.RLock()  # forward runs come from the caller's threads, backward runs from autograd's
_steps: Dict[Tuple[str, int], Steps] = {}


def of(device: torch.device) -> Steps:
    """The steps of this thread on a device."""
    return _steps.setdefault((str(device), threading.get_ident()), Steps())


def differentiated(token: torch.Tensor) -> None:
    """A backward pass begins, in whatever thread. None of the runs: it is the second one of a forward run."""
    key = token.untyped_storage()._cdata
    any(steps.differentiated(key) for steps in _steps.values())


def forget() -> None:
    """As if nothing had run: for tests."""
    _steps.clear()
