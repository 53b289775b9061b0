"""Graphs, chains and plans as Python objects over libremat. Sizes are bytes, costs integers, as in include/remat.h.

>>> import remat
>>> graph = remat.load("zoo:resnet18")
>>> plan = graph.plan("80%")
>>> plan.peak_bytes <= plan.budget_bytes and plan.within_budget
True
>>> graph.verify(plan).valid
True
"""

from __future__ import annotations

import abc
import ctypes
import html
import operator
import os
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from ._native import ABSENT, BUDGET_NONE, NONE, lib
from . import _native
from ._context import CLASSES, Context, Progress, indices, own, text_of, written_bytes
from .errors import Infeasible, InputError, NoMemory, NotFound, UsageError, size_text

Budget = Union[int, str, None]
PHASES = ("none", "forward", "backward")
KINDS = ("temporary", "param", "buffer", "input", "const")
OUTCOMES = ("unknown", "feasible", "optimal", "infeasible")
STOPPED = ("done", "work", "time", "signal")
STEPS = ("run", "offload", "fetch", "Fall", "Fck", "Fnone", "B")
FLAGS = {"dce": 1, "fold_identity": 2, "no_alias": 4, "replay_random": 8, "fuse": 16, "inplace": 32}


class Step(NamedTuple):
    """One step: `kind` is run, offload or fetch with an op or a value of a graph, or an operation of Rotor with a
    stage of a chain.
    """

    kind: str
    index: int


class Statement(NamedTuple):
    """allocate, compute, deallocate, or reuse (an output is made in place of an input), as remat_lower gives them."""

    kind: str
    step: Step
    step_index: int
    value: Optional[int]
    register: Optional[int]
    bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class Verdict:
    """What the independent verifier says; `first_bad_step` and `reason` where a schedule is not valid."""

    valid: bool
    peak_bytes: Optional[int]
    cost: Optional[int]
    host_bytes: Optional[int]
    peak_step: Optional[int]
    peak_op: Optional[int]
    first_bad_step: Optional[int]
    reason: str

    def __bool__(self) -> bool:
        return self.valid


@dataclass(frozen=True)
class Bound:
    """No plan of this scope within the budget costs less than `cost`; `infeasible`: none fits at all."""

    infeasible: bool
    budget_bytes: int
    cost: Optional[int]
    keep_all_cost: int
    need_bytes: int
    need_op: Optional[int]
    need_values: List[int]
    scope: str
    method: str
    any_order_cost: Optional[int]


class _File:
    """What graphs, chains and plans share: bytes and files."""

    _write: Any
    handle: int

    def __reduce__(self) -> Any:
        return parse, (self.to_bytes(True),)  # a handle is an address: it means nothing elsewhere

    def __copy__(self) -> Any:
        return self  # immutable

    def __deepcopy__(self, _memo: Any) -> Any:
        return self

    def to_bytes(self, compress: bool = False) -> bytes:
        """The file's bytes: JSON, or gzip of it."""
        return written_bytes(self._write, self.handle, compress)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the file, gzip if the name ends in .gz; it is there whole or not at all."""
        path = os.fspath(path)
        data = self.to_bytes(path.endswith(".gz"))
        part = f"{path}.{os.getpid()}.part"
        try:
            with open(part, "wb") as file:
                file.write(data)
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.unlink(part)


class Plan(_File):
    """A schedule with its numbers: every field of remat_summary is an attribute (peak_bytes, cost, outcome, ...);
    None where not known.
    """

    _write = lib.remat_plan_write

    def __init__(self, handle: ctypes.c_void_p):
        self.handle = own(self, handle, lib.remat_plan_free)
        self._summary = lib.remat_plan_summary(self.handle).contents.fields()
        for field, names in (("outcome", OUTCOMES), ("stopped", STOPPED), ("kind", ("graph", "chain"))):
            self._summary[field] = names[self._summary[field]]

    def __getattr__(self, name: str) -> Any:
        if name != "_summary" and name in self._summary:
            return self._summary[name]
        raise AttributeError(f"a plan has no {name!r}")

    def __repr__(self) -> str:
        limit = "no budget" if self.budget_bytes is None else f"budget {size_text(self.budget_bytes)}"
        peak = "not known" if self.peak_bytes is None else size_text(self.peak_bytes)
        more = "" if self.overhead is None else f", overhead {100 * self.overhead:.2f} %"
        return f"<remat.Plan {self.strategy} of {self.graph!r}: {limit}, peak {peak}{more}>"

    def _repr_html_(self) -> str:
        """A table for notebooks. Names come from files: they are escaped."""

        def plain(x: str) -> str:
            return html.escape("".join(c if c.isprintable() else "?" for c in x))

        def shown(value: Any, text: Callable[[Any], str]) -> str:
            return "not known" if value is None else text(value)

        def percent(x: float) -> str:
            return f"{100 * x:.2f} %"

        unit = "" if self.cost_unit == "given" else plain(self.cost_unit)
        share = (
            self.peak_bytes / self.keep_all_peak_bytes
            if self.peak_bytes is not None and self.keep_all_peak_bytes
            else None
        )
        bound = shown(self.gap, lambda gap: f"gap {percent(gap)} ({plain(self.bound_scope)})")
        rows = [
            (
                "budget",
                "",
                "none" if self.budget_bytes is None else size_text(self.budget_bytes),
                "fits" if self.within_budget else "does not fit",
            ),
            (
                "peak",
                shown(self.keep_all_peak_bytes, size_text),
                shown(self.peak_bytes, size_text),
                shown(share, percent) + " of keep-all",
            ),
            (
                "cost",
                shown(self.keep_all_cost, str),
                shown(self.cost, str),
                f"{unit} {shown(self.overhead, lambda x: '+' + percent(x))}".strip(),
            ),
            (
                "steps",
                str(self.ops) if self.kind == "graph" and self.ops else "",
                str(len(self.steps)),
                f"{self.recomputed_ops} run more than once",
            ),
            ("outcome", "", plain(self.outcome), bound),
        ]
        lines = "".join("<tr><th>%s</th><td>%s</td><td>%s</td><td>%s</td></tr>" % row for row in rows)
        return (
            f"<table><caption>{plain(self.graph)}</caption><tr><th></th><th>keep-all</th><th>{plain(self.strategy)}</th><th></th></tr>"
            f"{lines}</table>"
        )

    @property
    def summary(self) -> Dict[str, Any]:
        return dict(self._summary)

    @property
    def overhead(self) -> Optional[float]:
        """cost / keep-all cost - 1, or None where a file does not say them."""
        if self.cost is None or self.keep_all_cost is None:
            return None
        return self.cost / self.keep_all_cost - 1 if self.keep_all_cost else 0.0

    @property
    def gap(self) -> Optional[float]:
        """(cost - bound) / bound in the scope of the bound (`bound_scope`), or None without a bound."""
        return (self.cost - self.bound_cost) / self.bound_cost if self.bound_cost and self.cost is not None else None

    @property
    def any_order_gap(self) -> Optional[float]:
        """(cost - bound) / bound for the bound that holds in any order, or None without one."""
        return (
            (self.cost - self.any_order_cost) / self.any_order_cost
            if self.any_order_cost and self.cost is not None
            else None
        )

    @property
    def status(self) -> int:
        """0, 10 (proved infeasible) or 11 (not found)."""
        return lib.remat_plan_status(self.handle)

    @property
    def steps(self) -> List[Step]:
        n_steps = ctypes.c_size_t()
        array = lib.remat_plan_steps(self.handle, ctypes.byref(n_steps))
        flat = (
            (ctypes.c_uint32 * (2 * n_steps.value)).from_address(ctypes.addressof(array.contents))
            if n_steps.value
            else []
        )
        return [Step(STEPS[flat[i]], flat[i + 1]) for i in range(0, 2 * n_steps.value, 2)]


def _steps_array(steps: Union[Plan, Iterable[Union[int, Tuple[str, int]]]]) -> Any:
    if isinstance(steps, Plan):
        steps = steps.steps
    pairs = [(STEPS.index("run"), step) if isinstance(step, int) else (STEPS.index(step[0]), step[1]) for step in steps]
    return (_native.Step * len(pairs))(*(_native.Step(*pair) for pair in pairs)), len(pairs)


def byte_count(value: Any) -> int:
    """A number of bytes that the library can count with: a whole one, and not a truth value."""
    try:
        count = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = None
    if count is None:
        raise UsageError(f"{value!r} is not a number of bytes: a whole number, or text such as '12GiB', '900MB', '50%'")
    if not 0 <= count < 1 << 62:
        raise UsageError(f"{count} bytes: {'negative' if count < 0 else 'too many'}")
    return count


class _Plannable(_File, abc.ABC):
    """What graphs and chains share: planning and verifying."""

    _make: Any
    _verify_plan: Any
    _verify_steps: Any

    def _budget(self, context: Context, budget: Budget) -> int:
        if budget is None:
            return BUDGET_NONE
        if not isinstance(budget, str):
            return byte_count(budget)
        out = ctypes.c_int64()
        context.check(lib.remat_budget_parse(context.handle, budget.encode(), self._keep_all_peak(), ctypes.byref(out)))
        return out.value

    @abc.abstractmethod
    def _keep_all_peak(self) -> int:
        """What percentages of the budget are of."""

    @abc.abstractmethod
    def _why(self, plan: Plan) -> str:
        """Why the plan does not fit, for the message of an error."""

    def plan(
        self,
        budget: Budget = None,
        strategy: Optional[str] = None,
        *,
        progress: Optional[Callable[[Progress], Any]] = None,
        classes: Optional[Dict[str, str]] = None,
        strict: bool = True,
        **options: Any,
    ) -> Plan:
        """A verified plan within the budget: bytes, or text such as "12GiB", "50%" (of the keep-all peak) and "min".
        Without one: no limit.

        `options` are those of `remat.options()`, and `time` in seconds. `progress` is called now and then with a
        `Progress`. Ctrl-C ends the search: the best plan so far comes back, with `stopped` "signal". Where nothing
        fits, `Infeasible` or `NotFound` is raised, which carries the nearest plan; with `strict=False` that plan is
        returned.

        >>> import remat
        >>> graph = remat.load("zoo:resnet18")
        >>> keep_all, rotor = graph.plan(), graph.plan("70%", "rotor")
        >>> rotor.peak_bytes < keep_all.peak_bytes and rotor.cost > keep_all.cost
        True
        """
        out = ctypes.c_void_p()
        with Context(options, progress, classes) as context:
            limit = self._budget(context, budget)
            name = strategy or ("keep-all" if limit == BUDGET_NONE else "auto")
            context.plan(self._make, self.handle, name.encode(), limit, ctypes.byref(out))
            made = Plan(out)
        if strict and made.status:
            raise (Infeasible if made.status == 10 else NotFound)(self._why(made), made)
        return made

    def curve(self, budgets: Iterable[Budget], strategy: Optional[str] = None, **options: Any) -> List[Plan]:
        """A plan for each budget; those that miss it too (see `within_budget`).

        >>> import remat
        >>> [plan.within_budget for plan in remat.load("zoo:resnet18").curve(["90%", "70%"], "chen-greedy")]
        [True, True]
        """
        return [self.plan(budget, strategy, strict=False, **options) for budget in budgets]

    def verify(self, plan: Union[Plan, Iterable[Union[int, Tuple[str, int]]]], bandwidth: int = 0) -> Verdict:
        """Judges a plan, or bare steps, with the independent verifier: bare integers run ops. `bandwidth` is for
        offload and fetch among bare steps, in bytes per 1e9 cost units, 0 for none; a plan has its own.

        >>> import remat
        >>> remat.load("zoo:f").verify([1]).reason != ""
        True
        """
        out = _native.Verdict()
        with Context() as context:
            if isinstance(plan, Plan):
                context.check(self._verify_plan(context.handle, self.handle, plan.handle, ctypes.byref(out)))
            else:
                steps, n_steps = _steps_array(plan)
                more = (bandwidth,) if isinstance(self, Graph) else ()
                context.check(self._verify_steps(context.handle, self.handle, steps, n_steps, *more, ctypes.byref(out)))
        return Verdict(**out.fields())


def _known(x: int) -> Optional[int]:
    return None if x == ABSENT else x


class Graph(_Plannable):
    """A training step: ops, values and costs; immutable. Made by `load`, `parse`, `Builder` or `remat.torch.trace`."""

    _write, _make = lib.remat_graph_write, lib.remat_plan_make
    _verify_plan, _verify_steps = lib.remat_plan_verify, lib.remat_verify

    def __init__(self, handle: ctypes.c_void_p):
        self.handle = own(self, handle, lib.remat_graph_free)
        self._info: Optional[Dict[str, Any]] = None

    def __repr__(self) -> str:
        return f"<remat.Graph {self.name!r}: {self.n_ops} ops, {self.n_values} values>"

    name = property(lambda self: text_of(lib.remat_graph_name(self.handle)))
    digest = property(lambda self: text_of(lib.remat_graph_digest(self.handle)))
    cost_model = property(lambda self: text_of(lib.remat_graph_cost_model(self.handle)))
    cost_unit = property(lambda self: text_of(lib.remat_graph_cost_unit(self.handle)))
    n_ops = property(lambda self: lib.remat_graph_n_ops(self.handle))
    n_values = property(lambda self: lib.remat_graph_n_values(self.handle))

    def info(self) -> Dict[str, Any]:
        """Counts and memory, as `remat info`.

        >>> import remat
        >>> remat.load("zoo:fig4").info()["ops"] > 0
        True
        """
        if self._info is None:
            out = _native.Info()
            with Context() as context:
                context.check(lib.remat_graph_info(context.handle, self.handle, ctypes.byref(out)))
            self._info = out.fields()
        return dict(self._info)

    def _keep_all_peak(self) -> int:
        return self.info()["keep_all_peak_bytes"]

    def _why(self, plan: Plan) -> str:
        if plan.status == 11:
            return f"no plan within {plan.budget_bytes} bytes was found: the least peak met was {plan.peak_bytes} ({size_text(plan.peak_bytes)})"
        if plan.budget_bytes >= plan.need_bytes and (plan.least_peak_bound or 0) > plan.budget_bytes:
            return f"nothing fits {plan.budget_bytes} bytes: at least {plan.least_peak_bound} ({size_text(plan.least_peak_bound)}) are needed"
        op = self.op_name(plan.need_op) if plan.need_op is not None else "the end of the step"
        return (
            f"nothing fits {plan.budget_bytes} bytes: at least {plan.need_bytes} ({size_text(plan.need_bytes)}) are needed at {op} "
            f"({self._in_the_way()})"
        )

    def _in_the_way(self, most: int = 3) -> str:
        names = [self.value_name(v) or f"value {v}" for v in self.need_values()]
        return ", ".join(names[:most]) + (", ..." if len(names) > most else "")

    def need_values(self) -> List[int]:
        """The values that are in memory together at info()["need_op"] whatever the plan, largest first."""
        values, n = (ctypes.c_uint32 * max(1, self.n_values))(), ctypes.c_uint32()
        with Context() as context:
            context.check(
                lib.remat_graph_need_values(context.handle, self.handle, values, self.n_values, ctypes.byref(n))
            )
        return list(values[: min(n.value, self.n_values)])

    def op_name(self, op: int) -> str:
        return text_of(lib.remat_graph_op_name(self.handle, op))

    def op_target(self, op: int) -> str:
        return text_of(lib.remat_graph_op_target(self.handle, op))

    def value_name(self, value: int) -> str:
        return text_of(lib.remat_graph_value_name(self.handle, value))

    def op(self, op: int) -> Dict[str, Any]:
        """Everything about an op: name, target, in, out, cost, flops, workspace, phase, class, pinned, replay, kernel,
        given_cost, inplace (pairs of an output and the input in whose storage it may be made, by their places in out
        and in).

        >>> import remat
        >>> remat.load("zoo:f").op(0)["out"]
        [1]
        """
        if not 0 <= op < self.n_ops:
            raise IndexError(f"op {op} of {self.n_ops}")
        get = [lib.remat_graph_op_get(self.handle, op, attribute) for attribute in range(9)]
        made = self._list(lib.remat_graph_op_out, op)
        taken = [(k, lib.remat_graph_op_inplace(self.handle, op, k)) for k in range(len(made))]
        return {
            "name": self.op_name(op),
            "target": self.op_target(op),
            "in": self._list(lib.remat_graph_op_in, op),
            "out": made,
            "inplace": [pair for pair in taken if pair[1] != NONE],
            "cost": get[0],
            "flops": _known(get[1]),
            "workspace": get[2],
            "phase": PHASES[get[3]],
            "class": CLASSES[get[4]],
            "pinned": bool(get[5]),
            "replay": bool(get[6]),
            "kernel": _known(get[7]),
            "given_cost": _known(get[8]),
        }

    def value(self, value: int) -> Dict[str, Any]:
        """Everything about a value: name, size, storage, alias, kind, root, producer (None: resident), dtype, shape."""
        if not 0 <= value < self.n_values:
            raise IndexError(f"value {value} of {self.n_values}")
        get = [lib.remat_graph_value_get(self.handle, value, attribute) for attribute in range(6)]
        return {
            "name": self.value_name(value),
            "size": get[0],
            "storage": get[1],
            "alias": _known(get[2]),
            "kind": KINDS[get[3]],
            "root": get[4],
            "producer": _known(get[5]),
            "dtype": text_of(lib.remat_graph_value_dtype(self.handle, value)),
            "shape": self._list(lib.remat_graph_value_shape, value),
        }

    @property
    def outputs(self) -> List[int]:
        n = ctypes.c_uint32()
        array = lib.remat_graph_outputs(self.handle, ctypes.byref(n))
        return array[: n.value] if n.value else []

    def _list(self, function: Any, index: int) -> List[int]:
        n = ctypes.c_uint32()
        array = function(self.handle, index, ctypes.byref(n))
        return array[: n.value] if n.value else []

    def prepare(self, cost_model: Optional[str] = None, **flags: bool) -> "Graph":
        """A copy with other costs, and dce, fold_identity, no_alias, replay_random, fuse or inplace applied; its plans
        name the ops of this one.

        >>> import remat
        >>> remat.load("zoo:gpt?layers=2").prepare("unit", dce=True).cost_model
        'unit'
        """
        bits = 0
        for flag, wanted in flags.items():
            if flag not in FLAGS:
                raise UsageError(f"no flag {flag!r}: {', '.join(FLAGS)}")
            bits |= FLAGS[flag] if wanted else 0
        out = ctypes.c_void_p()
        with Context() as context:
            context.check(
                lib.remat_graph_prepare(
                    context.handle, self.handle, bits, cost_model.encode() if cost_model else None, ctypes.byref(out)
                )
            )
        return Graph(out)

    def bound(self, budget: Budget, **options: Any) -> Bound:
        """A lower limit on the cost of any plan within the budget whose ops first run in the graph's order.

        >>> import remat
        >>> graph = remat.load("zoo:resnet18").prepare(dce=True)
        >>> graph.bound("70%").cost <= graph.plan("70%").cost
        True
        """
        out = _native.Bound()
        with Context(options) as context:
            context.plan(lib.remat_bound_find, self.handle, self._budget(context, budget), ctypes.byref(out))
        fields = out.fields()
        fields["need_values"] = fields["need_values"][: fields.pop("n_need_values")]
        fields.pop("rules")
        return Bound(infeasible=fields.pop("status") == 10, **fields)

    def plan_of(
        self,
        steps: Iterable[Union[int, Tuple[str, int]]],
        budget: Budget = None,
        *,
        strategy: str = "given",
        bandwidth: int = 0,
    ) -> Plan:
        """A schedule of your own as a plan, to be saved, lowered, compared and verified; `InvalidPlan` says what is
        wrong with it. It need not fit the budget: see `within_budget`.

        >>> import remat
        >>> graph = remat.load("zoo:f")
        >>> graph.plan_of(range(graph.n_ops)).outcome
        'optimal'
        """
        out = ctypes.c_void_p()
        array, n_steps = _steps_array(steps)
        with Context() as context:
            context.plan(
                lib.remat_plan_of_steps,
                self.handle,
                array,
                n_steps,
                strategy.encode(),
                self._budget(context, budget),
                bandwidth,
                ctypes.byref(out),
            )
        return Plan(out)

    def memory(self, plan: Union[Plan, Iterable[Union[int, Tuple[str, int]]]]) -> List[int]:
        """Bytes in memory while each step runs; the largest is the peak.

        >>> import remat
        >>> graph = remat.load("zoo:f")
        >>> max(graph.memory(graph.plan())) == graph.plan().peak_bytes
        True
        """
        array, n_steps = _steps_array(plan)
        out = (ctypes.c_int64 * n_steps)()
        with Context() as context:
            context.check(lib.remat_steps_memory(context.handle, self.handle, array, n_steps, out))
        return list(out)

    def lower(self, plan: Union[Plan, Iterable[Union[int, Tuple[str, int]]]]) -> List[Statement]:
        """The schedule with its allocations and frees.

        >>> import remat
        >>> graph = remat.load("zoo:f")
        >>> {statement.kind for statement in graph.lower(graph.plan())} == {"allocate", "compute", "deallocate"}
        True
        """
        out, n = ctypes.c_void_p(), ctypes.c_size_t()
        steps, n_steps = _steps_array(plan)
        with Context() as context:
            context.check(lib.remat_lower(context.handle, self.handle, steps, n_steps, ctypes.byref(out)))
        try:
            array = lib.remat_program_statements(out, ctypes.byref(n))
            kinds = ("allocate", "compute", "deallocate", "reuse")
            return [
                Statement(
                    kinds[s.kind],
                    Step(STEPS[s.step.kind], s.step.index),
                    s.step_index,
                    None if s.value == NONE else s.value,
                    None if s.reg == NONE else s.reg,
                    s.bytes,
                    s.memory_bytes,
                )
                for s in array[: n.value]
            ]
        finally:
            lib.remat_program_free(out)

    def chain(self) -> "Chain":
        """The graph cut into a chain where one storage alone crosses its forward pass."""
        out = ctypes.c_void_p()
        with Context() as context:
            context.check(lib.remat_chain_of_graph(context.handle, self.handle, ctypes.byref(out)))
        return Chain(out)


@dataclass
class Stage:
    """A stage of a chain in Rotor's model: docs/format.md. `delta` None: that of `a`."""

    a: int = 0
    abar: int = 0
    delta: Optional[int] = None
    tf: int = 0
    tb: int = 0
    of: int = 0
    ob: int = 0
    keep: int = 0
    name: str = ""


class Chain(_Plannable):
    """A chain of stages; immutable. Its plans have the steps Fall, Fck, Fnone and B, with stages counted from 1.

    >>> import remat
    >>> chain = remat.Chain.of([remat.Stage(a=1, abar=3, tf=1, tb=2) for _ in range(8)], input=remat.Stage(a=1))
    >>> plan = chain.plan(14, "rotor", slots=0)
    >>> chain.verify(plan).peak_bytes <= 14
    True
    >>> plan.steps[-1]
    Step(kind='B', index=1)
    """

    _write, _make = lib.remat_chain_write, lib.remat_chain_plan
    _verify_plan, _verify_steps = lib.remat_chain_plan_verify, lib.remat_chain_verify

    def __init__(self, handle: ctypes.c_void_p):
        self.handle = own(self, handle, lib.remat_chain_free)

    @classmethod
    def of(
        cls, stages: Sequence[Stage], input: Optional[Stage] = None, loss: Optional[Stage] = None, name: str = ""
    ) -> "Chain":
        """A chain from its stages, its input (a, delta) and its loss."""
        all_stages = [input or Stage(), *stages, loss or Stage()]
        array = (_native.Stage * len(all_stages))(
            *(
                _native.Stage(
                    s.name.encode(), s.a, s.abar, s.a if s.delta is None else s.delta, s.tf, s.tb, s.of, s.ob, s.keep
                )
                for s in all_stages
            )
        )
        out = ctypes.c_void_p()
        with Context() as context:
            context.check(lib.remat_chain_new(context.handle, name.encode(), array, len(stages), ctypes.byref(out)))
        return cls(out)

    def __repr__(self) -> str:
        return f"<remat.Chain {self.name!r}: {self.n_stages} stages>"

    name = property(lambda self: text_of(lib.remat_chain_name(self.handle)))
    digest = property(lambda self: text_of(lib.remat_chain_digest(self.handle)))
    size_unit = property(lambda self: text_of(lib.remat_chain_size_unit(self.handle)))
    cost_unit = property(lambda self: text_of(lib.remat_chain_cost_unit(self.handle)))
    n_stages = property(lambda self: lib.remat_chain_n_stages(self.handle))

    def stage(self, index: int) -> Stage:
        """Stage `index`: 0 is the input, n_stages + 1 the loss."""
        if not 0 <= index <= self.n_stages + 1:
            raise IndexError(f"stage {index} of {self.n_stages}")
        fields = lib.remat_chain_stage(self.handle, index).contents
        return Stage(
            **{name: getattr(fields, name) for name in "a abar delta tf tb of ob keep".split()},
            name=text_of(fields.name or b""),
        )

    def _keep_all_peak(self) -> int:
        return self.plan(None, "keep-all").peak_bytes

    def _why(self, plan: Plan) -> str:
        if plan.status == 11:
            return f"no plan within {plan.budget_bytes} {self.size_unit} was found: the least peak met was {plan.peak_bytes}"
        where = f" at stage {plan.need_op}" if plan.need_op is not None else ""
        return f"nothing fits {plan.budget_bytes} {self.size_unit}: at least {plan.need_bytes} are needed{where}"


class Builder:
    """Builds a graph op by op. Values are known by the index that their call returns.

    >>> import remat
    >>> b = remat.Builder("two ops")
    >>> x = b.value("x", 4096, kind="input")
    >>> y = b.value("y", 4096)
    >>> z = b.view("z", 2048, of=y)
    >>> b.op("relu", [x], [y], cost=3, target="aten.relu.default")
    0
    >>> b.op("half", [y], [z], op_class="view")
    1
    >>> b.output(z)
    >>> b.finish().plan().peak_bytes
    8192
    """

    def __init__(self, name: str = "", cost_unit: str = ""):
        self._context = Context()
        self._handle = lib.remat_builder_new(self._context.handle, name.encode())
        if not self._handle:
            raise NoMemory("out of memory")
        context, handle = self._context.handle, self._handle
        self._context.handle, self._context.close = context, lambda: None  # type: ignore[method-assign]
        weakref.finalize(self, lambda: (lib.remat_builder_free(handle), lib.remat_ctx_free(context)))
        if cost_unit:
            lib.remat_builder_cost_unit(handle, cost_unit.encode())

    def value(
        self,
        name: str,
        size: int,
        *,
        storage: Optional[int] = None,
        kind: str = "temporary",
        dtype: str = "",
        shape: Sequence[int] = (),
    ) -> int:
        return self._described(lib.remat_builder_value(self._handle, name.encode(), size), storage, kind, dtype, shape)

    def view(
        self, name: str, size: int, of: int, *, kind: str = "temporary", dtype: str = "", shape: Sequence[int] = ()
    ) -> int:
        return self._described(lib.remat_builder_view(self._handle, name.encode(), size, of), None, kind, dtype, shape)

    def _described(self, value: int, storage: Optional[int], kind: str, dtype: str, shape: Sequence[int]) -> int:
        if kind not in KINDS:
            raise UsageError(f"no kind {kind!r}: {', '.join(KINDS)}")
        if storage is not None:
            lib.remat_builder_value_set(self._handle, value, 1, storage)
        lib.remat_builder_value_set(self._handle, value, 3, KINDS.index(kind))
        if dtype or shape:
            lib.remat_builder_value_tensor(
                self._handle, value, dtype.encode(), (ctypes.c_int64 * len(shape))(*shape), len(shape)
            )
        return value

    def op(
        self,
        name: str,
        inputs: Iterable[int],
        outputs: Iterable[int],
        *,
        target: str = "",
        cost: Optional[int] = None,
        flops: Optional[int] = None,
        workspace: int = 0,
        phase: str = "none",
        op_class: str = "other",
        pinned: bool = False,
        replay: bool = False,
        kernel: Optional[int] = None,
        inplace: Iterable[Tuple[int, int]] = (),
    ) -> int:
        """inplace: pairs of an output and the input in whose storage it may be made, by their places in outputs and
        inputs.
        """
        if phase not in PHASES or op_class not in CLASSES:
            raise UsageError(f"no phase {phase!r} or no class {op_class!r}: {', '.join(PHASES)}; {', '.join(CLASSES)}")
        op = lib.remat_builder_op(self._handle, name.encode(), *indices(inputs), *indices(outputs))
        for attribute, x in enumerate(
            (cost, flops, workspace, PHASES.index(phase), CLASSES.index(op_class), int(pinned), int(replay), kernel)
        ):
            if x is not None:
                lib.remat_builder_op_set(self._handle, op, attribute, x)
        if target:
            lib.remat_builder_op_target(self._handle, op, target.encode())
        for made, taken in inplace:
            lib.remat_builder_op_inplace(self._handle, op, made, taken)
        return op

    def output(self, value: int) -> None:
        lib.remat_builder_output(self._handle, value)

    def finish(self) -> Graph:
        """The graph so far; more may be added and finished again."""
        out = ctypes.c_void_p()
        self._context.check(lib.remat_builder_finish(self._handle, ctypes.byref(out)))
        return Graph(out)


def _read(context: Context, source: ctypes.c_void_p) -> Union[Graph, Chain, Plan]:
    out = ctypes.c_void_p()
    try:
        kind = lib.remat_input_kind(source)
        if kind == 3:
            raise InputError("a maximum-flow problem: only `remat maxflow` reads these")
        read, made = ((lib.remat_graph_read, Graph), (lib.remat_chain_read, Chain), (lib.remat_plan_read, Plan))[kind]
        context.check(read(context.handle, source, ctypes.byref(out)))
    finally:
        lib.remat_input_free(source)
    return made(out)


def load(source: Union[str, "os.PathLike[str]"]) -> Any:
    """Reads a graph, a chain or a plan from a file of any known format, plain or gzip, or an embedded model
    ("zoo:resnet50").

    >>> import remat
    >>> remat.load("zoo:resnet18").name
    'resnet18'
    """
    found = ctypes.c_void_p()
    with Context() as context:
        context.check(lib.remat_input_open(context.handle, os.fspath(source).encode(), ctypes.byref(found)))
        return _read(context, found)


def parse(data: Union[bytes, str], name: str = "<bytes>") -> Any:
    """The same from bytes or text in memory."""
    if isinstance(data, str):
        data = data.encode()
    found = ctypes.c_void_p()
    with Context() as context:
        context.check(lib.remat_input_parse(context.handle, name.encode(), data, len(data), ctypes.byref(found)))
        return _read(context, found)


def _rows(at: Any) -> Iterator[Any]:
    index = 0
    while at(index):
        yield at(index).contents
        index += 1


def _table(at: Any) -> Dict[str, str]:
    return {text_of(entry.name): text_of(entry.help) for entry in _rows(at)}


def strategies() -> Dict[str, str]:
    """Names and one line each.

    >>> import remat
    >>> "auto" in remat.strategies()
    True
    """
    return _table(lib.remat_strategy_at)


def zoo() -> Dict[str, str]:
    """Embedded models and their parameters."""
    return _table(lib.remat_zoo_at)


def devices() -> Dict[str, str]:
    """Devices of the roofline cost model."""
    return _table(lib.remat_device_at)


def options() -> Dict[str, Dict[str, Any]]:
    """What `plan` takes as keywords: help, initial value and range of each."""
    return {
        text_of(o.name): {"help": text_of(o.help), "initial": o.initial, "low": o.low, "high": o.high}
        for o in _rows(lib.remat_option_at)
    }


def version() -> str:
    return text_of(lib.remat_version())
