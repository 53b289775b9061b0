"""The backend of torch.compile: a partition function for AOTAutograd that plans the joint graph within a budget, and
compilers that run the two halves with eager kernels (same kernels in the same order on the same numbers: gradients are
bit-identical to keep-all), or with Inductor's (inductor.py).

What the planner cannot be trusted with (joint.Unsupported) gets torch's own partition and one warning with the reason;
with `strict` an error.

A plan is never changed under AOTAutograd, which keeps metadata of what is saved. A graph whose plan is replaced is
compiled once more from what Dynamo handed over, in the tracing context of the first time; forward runs that still
wait for their backward pass keep the function that they ran with."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

import torch
from torch import fx
from torch._guards import TracingContext, tracing

from . import inductor, lower, measuring, policy, reporting, steps
from .generated import Generated
from .inductor import KernelWork
from ..errors import Error, size_text
from .joint import SCALARS, Unsupported
from .options import Settings
from .planning import Solution, Work
from .steps import Run

TOLERANCE = 1.01  # how much more than the budget generated code may need without a warning
_serials = itertools.count(1)
_entered = threading.local()  # .run: the forward run that this thread is about to make


class _Plan(NamedTuple):
    """A plan of a graph: for sizes up to these, and for the n-th forward run of the graph in a step."""

    sizes: Tuple[int, ...]
    occurrence: int
    solution: Solution


def _symbols(values: Sequence[Any]) -> Dict[Any, Tuple[int, Optional[int]]]:
    """Where the size of each symbol is found among arguments: argument and dimension, or the argument itself."""
    found: Dict[Any, Tuple[int, Optional[int]]] = {}
    for i, value in enumerate(values):
        places = (
            [(value, None)]
            if isinstance(value, SCALARS)
            else [(size, d) for d, size in enumerate(value.shape)]
            if isinstance(value, torch.Tensor)
            else []
        )
        for size, dimension in places:
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                found.setdefault(size.node.expr, (i, dimension))
    return found


@contextlib.contextmanager
def _specialized(symbols: Set[str]) -> Iterator[Set[str]]:
    """With these Python floats, by their symbols, taken for constants: Dynamo makes constants of those that AOTAutograd
    asks for, and knows them while it compiles. Where they are not known AOTAutograd asks Dynamo to begin anew.
    """
    state = getattr(torch._dynamo.symbolic_convert, "TensorifyState", None)
    known: Set[str] = getattr(state, "force_specializations", set())
    before = set(known)
    known.update(symbols)
    try:
        yield known
    finally:
        known.clear()
        known.update(before)


class PlannedGraph:
    """What Dynamo calls for one of its graphs: AOTAutograd's function, one for each plan."""

    def __init__(self, module: fx.GraphModule, example_inputs: Sequence[Any], settings: Settings):
        self.module, self.settings, self.serial = module, settings, next(_serials)
        self.context = TracingContext.try_get()
        self.lifted = [*module.parameters(), *module.buffers()]  # that Dynamo left inside
        self.fakes = [node.meta.get("example_value") for node in module.graph.find_nodes(op="placeholder")]
        self._places = _symbols(self.fakes)
        arguments = [*self.lifted, *example_inputs]
        self.parameters_read = any(isinstance(p, torch.nn.Parameter) for p in arguments)
        self.training = policy.training_of(
            [p for p in arguments if isinstance(p, torch.nn.Parameter) and p.requires_grad], settings
        )
        self.device = _device_of(arguments)
        self.is_part = _is_part()
        self.work: Optional[Work] = None  # None: no joint graph, or one that torch partitions
        self.plans: List[_Plan] = []
        self.parameters: Optional[steps.Parameters] = None  # among the arguments of the last run
        self._functions: Dict[Any, Callable[..., Any]] = {}
        # what ran last: a solution's code is long, and it is mostly the same one
        self._last: Tuple[Optional[Solution], Callable[..., Any]] = (None, module)
        self._wanted: Optional[Solution] = None
        self.budget_bytes: Optional[int] = None
        first = self._compile(example_inputs)
        with _specialized(set()) as known:
            self._constants = set(known)
        if self.work is None:
            self._functions[None] = first
        else:
            self._functions[self.plans[0].solution.code] = first

    # ---- compiling ----

    def _compile(self, inputs: Sequence[Any]) -> Callable[..., Any]:
        if self.settings.kernels == "inductor":
            return inductor.compile_module(
                self.module, inputs, self._partition, self._tracked, self._seen, self.settings
            )
        from torch._dynamo.backends.common import aot_autograd

        return aot_autograd(
            fw_compiler=self._function,
            bw_compiler=self._function,
            inference_compiler=self._function,
            partition_fn=self._partition,
        )(self.module, inputs)

    def _partition(
        self,
        module: fx.GraphModule,
        joint_inputs: Any,
        *,
        num_fwd_outputs: int,
        static_lifetime_input_indices: Optional[Sequence[int]] = None,
        **_more: Any,
    ) -> Tuple[fx.GraphModule, fx.GraphModule]:
        if self._wanted is not None:
            assert self.work is not None
            if [str(node.target) for node in module.graph.nodes] != self.work.signature:
                raise Unsupported("another shape when it is traced again")
            return self.work.split(self._wanted)
        fused = self.settings.kernels == "inductor"
        work = (KernelWork if fused else Work).of(
            module, joint_inputs, num_fwd_outputs, static_lifetime_input_indices, self.settings
        )
        try:
            return work.split(self._first(work))
        except Unsupported as error:
            self._not_planned(f"the graph has {error}")
            return work.torchs_own(joint_inputs)

    def _first(self, work: Work) -> Solution:
        joint = work.joint()
        self.device = joint.device
        # others are no sizes: a counter, say
        self._places = {symbol: place for symbol, place in self._places.items() if symbol in joint.symbols}
        sizes = self.sizes(self.fakes)
        with steps.lock:
            choose = policy.first_fitted if isinstance(work, KernelWork) else policy.first_solution
            solution = choose(self, work)
        if joint.dynamic:
            reporting.warn(
                "remat: dynamic shapes: planned for the sizes at hand; smaller ones run the same plan, larger ones are planned again"
            )
        self.work, self.budget_bytes = work, solution.budget_bytes
        self.plans = [_Plan(sizes, 0, solution)]
        reporting.add(
            solution.report(existing_gradient_bytes=self.training.outside_bytes + self.training.before_bytes), solution
        )
        return solution

    def _not_planned(self, reason: str) -> None:
        self.work = None
        if self.settings.strict:
            raise Unsupported(f"not planned: {reason}")
        reporting.warn(f"remat: torch's own partition is used, without a budget: {reason}")
        reporting.add({**reporting.EMPTY, "graph": "joint", "planned": False, "reason": reason})

    def _function(self, module: fx.GraphModule, _inputs: Any) -> Any:
        """A module as a function of a boxed list."""
        inductor.take_donated()  # eager kernels write into no saved tensor
        return self._tracked(lower.compile_boxed(module), module.meta)

    def _tracked(self, run: Callable[[List[Any]], Any], meta: Dict[str, Any]) -> Any:
        """The function of a planned half: that of a forward pass says which run it was, that of a backward pass that
        the run is over.
        """
        place = meta.get("remat_token")
        if place is None:
            return run
        forward = "remat_tangents" not in meta

        def tracked(args: List[Any]) -> Any:
            if not forward:
                with steps.lock:
                    steps.differentiated(args[place])
                return run(args)
            entered: Optional[Run] = getattr(_entered, "run", None)
            result = run(args)
            if entered is not None and entered.graph is self:
                entered.left(result[:place], result[place])
            return result

        boxed: Any = tracked
        boxed._boxed_call = True
        return boxed

    def _seen(self, meta: Dict[str, Any], code: Generated) -> None:
        """Compares a half of a plan with the code that Inductor made of it; a report says what that code needs."""
        if code.peak_bytes is None:
            return
        solution = meta["remat_solution"]
        needs = solution.info["resident_bytes"] + code.peak_bytes
        report = reporting.of(solution)
        report["generated_peak_bytes"] = max(report["generated_peak_bytes"] or 0, needs)
        if (
            solution.budget_bytes is not None
            and self.settings.budget != "min"
            and needs > TOLERANCE * solution.budget_bytes
            and not self.is_part
        ):
            reporting.warn(
                f"remat: Inductor's code needs {size_text(needs)} for a budget of {size_text(solution.budget_bytes)}"
            )
        if code.products < meta["remat_products"]:
            reporting.warn(
                f"remat: Inductor runs {code.products} matrix products and convolutions where the plan has {meta['remat_products']}"
            )

    # ---- plans ----

    def sizes(self, arguments: Sequence[Any]) -> Tuple[int, ...]:
        """The sizes of the graph's symbols among its arguments, fake or real."""
        found = []
        for i, dimension in self._places.values():
            size = arguments[i] if dimension is None else arguments[i].shape[dimension]
            found.append(size.node.hint if isinstance(size, SCALARS) else int(size))
        return tuple(found)

    def symbols(self, sizes: Sequence[int]) -> Optional[Dict[Any, int]]:
        """The same by symbol; None: those that torch saw first, and no symbols at all."""
        return dict(zip(self._places, sizes)) or None

    def install(self, sizes: Tuple[int, ...], occurrence: int, solution: Solution) -> None:
        """The plan from now on for sizes up to these."""
        self.plans = [
            plan for plan in self.plans if plan.occurrence != occurrence or not policy.fits(plan.sizes, sizes)
        ]
        self.plans.append(_Plan(sizes, occurrence, solution))
        self.budget_bytes = self.budget_bytes or solution.budget_bytes

    def _choose(self, run: Run, occurrence: int) -> Solution:
        fitting = [plan for plan in self.plans if plan.occurrence == occurrence and policy.fits(run.sizes, plan.sizes)]
        return min(fitting, key=lambda plan: plan.sizes).solution if fitting else policy.unforeseen(run, occurrence)

    def __call__(self, *args: Any) -> Any:
        if self.work is None or self.settings.budget is None:
            return next(iter(self._functions.values()))(*args)
        with steps.lock:
            solution, run = self._enter(args)
        try:
            last = self._last
            if last[0] is not solution:
                last = self._last = solution, self._functions.get(solution.code) or self._recompile(solution)
            function = last[1]
            _entered.run = run
            return function(*args)
        except BaseException:
            with steps.lock:
                steps.of(self.device).failed(run)
            raise
        finally:
            _entered.run = None

    def _enter(self, args: Sequence[Any]) -> Tuple[Solution, Run]:
        tracker = steps.of(self.device)
        if tracker.pass_over():
            reporting.warn(
                "remat: results of an earlier forward pass are held without a backward pass: what they keep in memory is not counted"
            )
        over, in_reverse = tracker.over()
        if over:
            policy.learn(over, in_reverse)
        run = Run(self, [*self.lifted, *args], self.sizes(args))
        pending = tracker.pending()
        if not pending:
            policy.begin(run)
        solution = self._choose(run, sum(other.graph is self for other in pending))
        tracker.begin(run)
        return solution, run

    def _recompile(self, solution: Solution) -> Callable[..., Any]:
        """Under torch's lock, as any compilation; who holds ours must not wait for it."""
        with getattr(torch._dynamo.convert_frame, "compile_lock", steps.lock):
            return self._functions.get(solution.code) or self._compile_again(solution)

    def _compile_again(self, solution: Solution) -> Callable[..., Any]:
        self._wanted = solution
        try:
            context = copy.copy(self.context)
            if getattr(context, "ddp_optimizer_ctx", None) is not None:
                context.ddp_optimizer_ctx = None  # it counts buckets of the first compilation
            with tracing(context), _specialized(self._constants), torch._dynamo.utils.preserve_rng_state():
                function = self._compile(self.fakes)
            gc.collect()  # what the compiler leaves behind holds arguments of this call
        except Unsupported as error:
            reporting.warn(f"remat: the graph has {error}: its plan stays as it is")
            function = next(iter(self._functions.values()))
        finally:
            self._wanted = None
        self._functions[solution.code] = function
        return function


def _is_part() -> bool:
    """Whether the graph that Dynamo compiles now is known to be a part of a step only: it ends at a graph break, is
    a bucket of DDP, or belongs to a module that is called by another one (regional compilation).
    """
    tx = getattr(torch._dynamo.symbolic_convert.InstructionTranslator, "current_tx", lambda: None)()
    reason = getattr(getattr(tx, "output", None), "compile_subgraph_reason", None)
    if getattr(reason, "graph_break", False):
        return True
    frame, callers = sys._getframe(), set()
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(os.path.join("_dynamo", "backends", "distributed.py")):
            return True
        if code.co_name == "_call_impl" and isinstance(frame.f_locals.get("self"), torch.nn.Module):
            callers.add(id(getattr(frame.f_locals["self"], "_orig_mod", frame.f_locals["self"])))
        frame = frame.f_back  # type: ignore[assignment]
    return len(callers) > 1


def _device_of(values: Sequence[Any]) -> torch.device:
    found = {
        value.device for value in values if isinstance(value, torch.Tensor) and value.device.type not in ("cpu", "meta")
    }
    return sorted(found, key=str)[0] if found else torch.device("cpu")


def backend(
    module: fx.GraphModule, example_inputs: List[Any], *, options: Optional[Dict[str, Any]] = None, **more: Any
) -> Any:
    """torch.compile(model, backend="remat", options={"budget": "8GiB"}); docs/pytorch.md has the options."""
    try:
        settings, arguments = (
            Settings.of({**(options or {}), **more}),
            [*module.parameters(), *module.buffers(), *example_inputs],
        )
        if settings.budget == "auto":
            settings.budget = measuring.free_budget(_device_of(arguments), arguments)
        return PlannedGraph(module, example_inputs, settings)
    except Error as error:  # one line says it all; where it was raised is of no use to who called the model
        raise error if torch._dynamo.config.verbose else error.with_traceback(None) from None
