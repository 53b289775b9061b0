"""`Checkpointable`: an nn.Sequential that trains within a memory budget, by Rotor's operations (Rotor, section 5).

Three phases. The stages are measured (stages.py); libremat finds the fastest sequence of Fall, Fck, Fnone and B within
the budget (`rotor`, and `rotor-float` on short chains, whichever is cheaper); every training step runs that sequence.
The first two happen once for each kind of input.

Each stage is one node of autograd whose inputs are the stage's input and its parameters. Its backward runs the sequence
up to the stage's B: so gradients reach parameters the way they always do, hooks, torch.autograd.grad and gradient
accumulation included.

Invariants: memory is what docs/model.md says for chains, because a value is held by the run's own slots only; a
stage that runs again has the random numbers, the autocast state and the buffers of its first run, and leaves those
of the moment as it found them."""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, TextIO, Tuple, Union

import torch
from torch import nn

from ..core import Chain, Plan, Stage, Step
from ..errors import Infeasible, UsageError, size_text
from . import stages
from .options import bytes_of
from .joint import Unsupported
from .stages import Form, Group, Tensors

MOST_KINDS = 64  # kinds of input that are remembered
# longer chains are planned in slots only; rotor-float takes O(L^4) time and O(L^3) memory
EXACT_STAGES, FLOAT_STAGES = 100, 40
SECONDS = 5.0  # for each search


@dataclass
class Decision:
    """What was decided for one kind of input. `steps` are Rotor's operations, stages counted from 1 behind
    `measured.first`.
    """

    measured: stages.Measured
    chain_stages: Tuple[Stage, List[Stage]]
    steps: List[Step]
    strategy: str
    budget_bytes: Optional[int]
    resident_bytes: int
    reserve_bytes: int
    accumulating: bool  # gradients of parameters are there from the start
    peak_bytes: int
    keep_all_peak_bytes: int
    cost: int
    keep_all_cost: int
    plan_seconds: float
    runs: List[int] = field(default_factory=list)  # forward runs by stage

    @property
    def groups(self) -> List[Group]:
        return self.measured.groups[self.measured.first :]

    @property
    def curve(self) -> List[int]:
        return memory_curve(self.measured, self.chain_stages, self.steps, self.resident_bytes, self.accumulating)

    @property
    def recomputed(self) -> int:
        return sum(n - 1 for n in self.runs if n > 1)


# ---- planning ----


def _cheapest(chain: Chain, budget: Union[int, str], floating: bool = True) -> Plan:
    """The cheapest plan that fits, or the one that comes nearest."""
    plans = []
    if chain.n_stages <= EXACT_STAGES:
        plans.append(chain.plan(budget, "rotor", strict=False, slots=0, time=SECONDS))
    if not plans or plans[0].stopped != "done":
        plans.append(
            chain.plan(
                budget,
                "rotor",
                strict=False,
                slots=2000 if chain.n_stages <= 2 * EXACT_STAGES else 500,
                time=4 * SECONDS,
            )
        )
    if floating and chain.n_stages <= FLOAT_STAGES:
        plans.append(chain.plan(budget, "rotor-float", strict=False, time=SECONDS))
    if budget == "min":  # the least peak is known now; the cheapest way to it is another question
        least = min(plans, key=lambda p: (p.peak_bytes, p.cost))
        cheapest = _cheapest(chain, least.peak_bytes)
        return least if cheapest.status else cheapest
    return min(plans, key=lambda p: (p.status != 0, p.cost if p.status == 0 else p.peak_bytes, p.peak_bytes))


def _runs(steps: Sequence[Step], n_stages: int) -> List[int]:
    runs = [0] * (n_stages + 1)
    for step in steps:
        if step.kind != "B" and step.index <= n_stages:
            runs[step.index] += 1
    return runs[1:]


def _chains(measured: stages.Measured) -> List[Tuple[Stage, List[Stage]]]:
    """The chain in two readings. The caller holds the output to the end, so it counts as there all the time. If the
    last stage runs once, what it made is that output; if it runs again, it makes another one.
    """
    last = [g.sizes for g in measured.groups[measured.first :]]
    end = last[-1]
    shared = min(measured.output_bytes, end.a)
    once = Stage(**{**end.__dict__, "a": end.a - shared, "abar": max(end.abar - shared, end.a - shared)})
    return [(measured.input, [*last[:-1], once]), (measured.input, last)]


def _penalty(body: Sequence[Stage]) -> int:
    """More than any sequence costs: no stage runs more often than there are stages."""
    return (len(body) + 1) * sum(stage.tf + stage.tb + 1 for stage in body)


def _dearer(stage: Stage, penalty: int) -> Stage:
    """A stage that gave other bits when it ran again: a run costs so much that the cheapest sequence has one only,
    if any has.
    """
    return Stage(**{**stage.__dict__, "tf": stage.tf + penalty})


def chain_curve(head: Stage, body: Sequence[Stage], steps: Sequence[Step]) -> List[int]:
    """Memory during each step: docs/model.md, chains."""
    line = [head, *body, Stage()]
    delta = [s.a if s.delta is None else s.delta for s in line]
    plain, saved, kept, newest, curve = {0}, set(), set(), len(body) + 1, []
    for kind, l in steps:
        stage = line[l]
        held = (
            sum(line[i].a for i in plain)
            + sum(line[i].abar for i in saved)
            + sum(line[i].keep for i in kept)
            + delta[newest]
        )
        if kind == "B":
            curve.append(held + delta[l - 1] + stage.ob)
            plain.discard(l - 1)
            saved.discard(l)
            kept.discard(l)
            newest = l - 1
            continue
        curve.append(held + (stage.abar if kind == "Fall" else stage.a) + stage.of + (0 if l in kept else stage.keep))
        kept.add(l)
        (saved if kind == "Fall" else plain).add(l)
        if kind == "Fnone":
            plain.discard(l - 1)
    return curve


def memory_curve(
    measured: stages.Measured,
    reading: Tuple[Stage, List[Stage]],
    steps: Sequence[Step],
    resident_bytes: int,
    accumulating: bool,
) -> List[int]:
    """Memory during each step with what is there besides the chain: gradients of parameters are there from the
    start, or come with each B.
    """
    gradients = measured.gradient_bytes[measured.first :]
    there, curve = sum(gradients) if accumulating else 0, []
    for step, memory in zip(steps, chain_curve(*reading, steps)):
        curve.append(resident_bytes + there + memory)
        if step.kind == "B" and step.index <= len(gradients) and not accumulating:
            there += gradients[step.index - 1]
    return curve


def decide(
    measured: stages.Measured, budget: Union[int, str, None], reserve_bytes: int, accumulating: bool
) -> Decision:
    """The fastest sequence within the budget that was found. Nothing fits: Infeasible, with what would do.

    If gradients are there from the start, the chain has what they leave of the budget, and the plan is the best. If
    they come with each B, the chain may have more, up to all of it: how much is found by bisection, plans being
    judged by their real curve."""
    began = time.perf_counter()
    resident = measured.parameter_bytes + measured.output_bytes + measured.outer_input_bytes + reserve_bytes
    gradient_bytes = sum(measured.gradient_bytes[measured.first :])
    floor = measured.parameter_bytes + reserve_bytes + measured.prefix_bytes + (gradient_bytes if accumulating else 0)
    readings = _chains(measured)
    once = [not group.reproducible for group in measured.groups[measured.first :]]
    penalty = _penalty(readings[0][1]) if any(once) else 0
    chains = [
        Chain.of(
            [_dearer(stage, penalty) if single else stage for stage, single in zip(body, once)], head, name="Sequential"
        )
        for head, body in readings
    ]

    def judged(reading: int, plan: Plan) -> Tuple[int, int, int, Plan]:
        """Cost, peak, reading, plan."""
        return (
            plan.cost - penalty * sum(once),
            max(floor, *memory_curve(measured, readings[reading], plan.steps, resident, accumulating)),
            reading,
            plan,
        )

    def holds(reading: int, plan: Plan) -> bool:
        runs = _runs(plan.steps, chains[0].n_stages)
        return (
            not plan.status
            and (reading == 1 or runs[-1] == 1)
            and not any(single and n > 1 for single, n in zip(once, runs))
        )

    def least() -> Tuple[int, int, int, Plan]:
        plans = [(reading, _cheapest(chain, "min")) for reading, chain in enumerate(chains)]
        # the least memory may take runs that are not allowed: how much more it takes without is found by bisection
        if any(once):
            for reading, chain in enumerate(chains):
                low, high = plans[reading][1].peak_bytes, chain.plan(None, "keep-all").peak_bytes
                while high - low > low // 200:
                    middle = (low + high) // 2
                    plan = _cheapest(chain, middle)
                    plans.append((reading, plan))
                    low, high = (low, middle) if holds(reading, plan) else (middle, high)
            plans.append((0, chains[0].plan(None, "keep-all")))
        return min((judged(*p) for p in plans if holds(*p)), key=lambda c: c[1::-1])

    def fitting(limit: int) -> Iterator[Tuple[int, int, int, Plan]]:
        """Plans within the limit, found by bisection for the room that the chain may have."""
        for reading in (1,) if 200 * measured.output_bytes < limit else (0, 1):
            low, high = limit - resident - gradient_bytes, limit - resident
            tries: List[Optional[int]] = (
                [low] if accumulating else [high, low, *[None] * (5 if 20 * gradient_bytes > limit else 2)]
            )
            for room in tries:
                room = (low + high) // 2 if room is None else room
                plan = _cheapest(chains[reading], room, accumulating) if room > 0 else None
                found = judged(reading, plan) if plan is not None and holds(reading, plan) else None
                if found is not None and found[1] <= limit:
                    yield found
                    low = max(low, room)
                    if room == high:
                        break
                elif room > low:
                    high = room
            if not accumulating and low > 0:
                floated = _cheapest(chains[reading], low)
                if holds(reading, floated) and judged(reading, floated)[1] <= limit:
                    yield judged(reading, floated)

    keep_all = judged(0, chains[0].plan(None, "keep-all"))
    limit: Union[int, str, None] = budget
    if isinstance(budget, str) and budget != "min":
        limit = bytes_of(budget, keep_all[1])
    if limit is None or limit != "min" and keep_all[1] <= int(limit):
        found = keep_all
    elif limit == "min":
        found = least()
    else:
        fits = list(fitting(int(limit)))
        if not fits:
            fits = [least()]
            if fits[0][1] > int(limit):
                raise _impossible(measured, int(limit), fits[0], accumulating)
        found = min(fits, key=lambda c: c[:2])
    cost, peak, reading, plan = found
    n = len(readings[0][1])
    assert [step.index for step in plan.steps[: n + 2]] == [*range(1, n + 2), n + 1], (
        "a sequence runs every stage once before the loss"
    )
    return Decision(
        measured,
        readings[reading],
        plan.steps,
        plan.strategy,
        None if limit in (None, "min") else int(limit),
        resident,
        reserve_bytes,
        accumulating,
        peak,
        keep_all[1],
        cost,
        keep_all[0],
        time.perf_counter() - began,
        _runs(plan.steps, n),
    )


def _impossible(
    measured: stages.Measured, limit: int, least: Tuple[int, int, int, Plan], accumulating: bool
) -> Infeasible:
    _, peak, _, plan = least
    names = [g.name for g in measured.groups[measured.first :]]
    step = plan.steps[plan.peak_step]
    where = f"{step.kind} of stage {names[step.index - 1]}" if step.index <= len(names) else "the loss"
    fixed = measured.parameter_bytes + sum(measured.gradient_bytes) + measured.output_bytes
    error = Infeasible(
        f"nothing fits {size_text(limit)}: {peak} bytes ({size_text(peak)}) would do{' while gradients accumulate' if accumulating else ''}; parameters, their "
        f"gradients and the output take {size_text(fixed)}, and most is needed at {where}",
        plan,
    )
    error.need_bytes = peak
    return error


# ---- running ----


class _Run:
    """One training step: the slots of docs/model.md, and how far the sequence is. `a` holds activations, `saved` a
    stage's input and its output with what autograd saved for it.
    """

    def __init__(self, sequence: Decision, inputs: Tensors, form: Optional[Form], device: torch.device):
        self.sequence, self.groups, self.device = sequence, sequence.groups, device
        self.position, self.next_backward = 0, len(self.groups)
        self.a: Dict[int, Tensors] = {0: [t.detach() for t in inputs]}
        self.needs = [tuple(t.requires_grad for t in inputs), *(g.out_needs_grad for g in self.groups)]
        self.saved: Dict[int, Tuple[Tensors, Tensors]] = {}
        self.forms: List[Optional[Form]] = [form] + [None] * len(self.groups)
        # what forward only reads, by stage, of stages that run again
        self.contents: Dict[int, List[Tuple[Any, int]]] = {}
        self.input_versions = [t._version for t in self.a[0]]
        self.replays: Dict[int, Tuple[Optional[Tensors], Optional[stages.Buffers]]] = {}
        self.ambient = stages.ambient(device)
        self.generators = stages.generators_of(device)

    def first(self, stage: int) -> Tensors:
        """The first forward of a stage, in its turn."""
        step = self.sequence.steps[self.position]
        group = self.groups[stage - 1]
        self.position += 1
        if self.sequence.runs[stage - 1] == 1:
            return self.forward(step.kind, stage)
        self.contents[stage] = group.contents()
        buffers = stages.Buffers(group.buffers) if group.buffers else None
        states = stages.get_states(self.generators)
        out = self.forward(step.kind, stage)
        if stages.same_states(states, stages.get_states(self.generators)):
            states = None
        if states is not None or buffers is not None:
            self.replays[stage] = states, buffers
        return out

    def again(self, kind: str, stage: int) -> None:
        """Another forward of a stage, as if it were the first."""
        group = self.groups[stage - 1]
        for (now, version), (then, old) in zip(group.contents(), self.contents[stage]):
            if now is not then or version != old:
                what = (
                    "modified in place" if now is then else "replaced by another tensor (torch.func.functional_call?)"
                )
                raise RuntimeError(
                    f"Checkpointable: a parameter or buffer of stage {group.name} was {what} between forward and backward: the stage cannot run again"
                )
        if stage == 1 and [t._version for t in self.a[0]] != self.input_versions:
            raise RuntimeError(
                "Checkpointable: the input was modified in place between forward and backward: the first stage cannot run again"
            )
        states, buffers = self.replays.get(stage, (None, None))
        now = stages.get_states(self.generators) if states is not None else None
        current = stages.Buffers(group.buffers) if buffers is not None else None
        if states is not None:
            stages.set_states(self.generators, states)
        if buffers is not None:
            buffers.restore()
        try:
            with stages.as_in(self.ambient, self.device), stages.without_statistics(group.norms):
                self.forward(kind, stage)
        finally:
            if now is not None:
                stages.set_states(self.generators, now)
            if current is not None:
                current.restore()

    def forward(self, kind: str, stage: int) -> Tensors:
        group, form, needs = self.groups[stage - 1], self.forms[stage - 1], self.needs[stage - 1]
        inputs = self.a[stage - 1] if stage - 1 in self.a else self.saved[stage - 1][1]
        if kind == "Fall":
            inputs = stages.leaves_for_grad(inputs, needs)
        elif stage - 1 not in self.a:
            inputs = [t.detach() for t in inputs]
        versions = [t._version for t in inputs]
        if kind == "Fall":
            out, form = stages.run_saving(group, inputs, form)
            self.saved[stage] = inputs, out
        else:
            out, form = stages.run_dropping(group, inputs, form, needs)
            self.a[stage] = out
        if [t._version for t in inputs] != versions:
            raise RuntimeError(
                f"Checkpointable: stage {group.name} wrote into its input, which it did not when it was measured"
            )
        if (
            kind == "Fall"
            and tuple(t.requires_grad for t in out) != group.out_needs_grad
            or len(out) != len(group.out_needs_grad)
        ):
            raise RuntimeError(f"Checkpointable: the outputs of stage {group.name} are not those that were measured")
        if kind == "Fnone":
            self.a.pop(stage - 1, None)
        self.forms[stage] = form
        return [t.detach() for t in out]

    def backward(
        self, stage: int, deltas: Sequence[Optional[torch.Tensor]], wanted: Sequence[bool]
    ) -> List[Optional[torch.Tensor]]:
        """The sequence up to B of the stage: gradients of its input and its parameters."""
        if torch.is_grad_enabled():
            raise RuntimeError(
                "Checkpointable: gradients of gradients (create_graph=True) are not supported: use the plain Sequential for them"
            )
        if stage != self.next_backward:
            raise RuntimeError(
                "Checkpointable: a second backward through the same forward: what it needs was freed on the way, whatever retain_graph says; call forward again"
            )
        self.next_backward = -1  # until this one is done
        while True:
            step = self.sequence.steps[self.position]
            self.position += 1
            if step.kind == "B":
                break
            self.again(step.kind, step.index)
        assert step.index == stage
        inputs, out = self.saved.pop(stage)
        group = self.groups[stage - 1]
        sources = [t for t, want in zip((*inputs, *group.parameters), wanted) if want]
        found = iter(stages.differentiate(out, sources, deltas, group.parameters))
        self.a.pop(stage - 1, None)
        self.replays.pop(stage, None)
        self.next_backward = stage - 1
        return [next(found) if want else None for want in wanted]


class _Node(torch.autograd.Function):
    """A stage as autograd sees it."""

    @staticmethod
    def forward(ctx: Any, run: _Run, stage: int, *sources: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        out = run.first(stage)
        ctx.run, ctx.stage = run, stage
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(t for t, needs in zip(out, run.needs[stage]) if not needs))
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *deltas: Optional[torch.Tensor]) -> Tuple[Any, ...]:
        return (None, None, *ctx.run.backward(ctx.stage, deltas, ctx.needs_input_grad[2:]))


class Checkpointable(nn.Sequential):
    """An nn.Sequential that trains within a memory budget, with the same results to the last bit.

        model = remat.torch.Checkpointable(model, "6GiB")

    It takes the place of `sequential` and shares its modules: parameters, buffers, state_dict, hooks, train() and
    eval() are those of the original. Sequentials inside it are taken apart; every other module is a stage, as a whole.

    `budget`: bytes, or text such as "6GiB", "60%" (of the peak with everything kept), "min" (the least possible) or
    None (no limit). It is the peak of forward and backward together, on the device of the parameters, and covers:
    parameters and buffers; the gradients of all parameters, from the start if one of them is there when forward is
    called (they accumulate), else as they come; input and output, held by the caller to the end; activations, what
    autograd saves, gradients on their way, and what a stage takes besides while it runs. It does not cover what lies
    outside the Sequential, such as an optimizer's state, the rest of the model, the loss and its temporary tensors:
    `reserve` is room for that, out of the budget.

    Stages are measured with `sample` (what forward takes) at once, or else with the first batch; and again for each
    new kind of input: other shapes, dtypes, autocast, train or eval, parameters frozen or not. A budget that nothing
    fits raises remat.Infeasible then, with the least that would do. Without gradients, under no_grad, or if
    everything fits, it runs as the plain Sequential does."""

    def __init__(
        self,
        sequential: nn.Sequential,
        budget: Union[int, str, None],
        sample: Any = None,
        *,
        reserve: Union[int, str] = 0,
    ):
        if not isinstance(sequential, nn.Sequential):
            raise UsageError(f"Checkpointable takes an nn.Sequential, not a {type(sequential).__name__}")
        if type(sequential).forward is not nn.Sequential.forward:
            raise UsageError(
                f"{type(sequential).__name__} has a forward of its own: Checkpointable knows how to run an nn.Sequential only"
            )
        super().__init__()
        self.__dict__.update(sequential.__dict__)  # its very modules, hooks and mode
        self._reserve_bytes = bytes_of(reserve)
        self._measured: Dict[Any, Optional[stages.Measured]] = {}  # by kind of input; None: it runs as it is
        self._holders: Tuple[int, ...] = ()  # identities of the parameters that were measured
        self.budget = budget
        if sample is not None:
            with torch.enable_grad():
                self._sequence(*stages.pack(sample, "the sample"))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return nn.Sequential(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_measured": {}, "_decided": {}, "_latest": None}  # a copy measures for itself

    @property
    def budget(self) -> Union[int, str, None]:
        """May be set: what was measured stays, the sequences are found anew."""
        return self._budget

    @budget.setter
    def budget(self, budget: Union[int, str, None]) -> None:
        if budget is not None and budget != "min":
            bytes_of(budget, 1)  # refused here if it is not a budget
        self._budget = budget
        self._decided: Dict[Any, Decision] = {}
        self._latest: Optional[Decision] = None

    def _device(self, tensors: Tensors) -> torch.device:
        found = [t.device for t in tensors] + [p.device for _, p in zip(range(1), self.parameters())]
        return next((d for d in found if d.type != "cpu"), found[0] if found else torch.device("cpu"))

    def _key(self, tensors: Tensors, form: Optional[Form], device: torch.device) -> Tuple[Any, bool]:
        """What decides sizes and times, as far as can be told, and whether gradients accumulate. It is asked at
        every step: hence no generators over modules and parameters.
        """
        flags: List[Any] = []
        holders: List[int] = []
        accumulating = False
        todo: List[nn.Module] = [self]
        while todo:
            module = todo.pop()
            flags += (id(module), module.training)
            for parameter in module._parameters.values():
                if parameter is not None:
                    flags.append(parameter.requires_grad)
                    holders.append(id(parameter))
                    accumulating = accumulating or parameter.grad is not None
            if module._modules:
                todo += [child for child in module._modules.values() if child is not None]
                flags.append(stages.hooked(module))
        if self._holders != tuple(holders):  # other tensors took the parameters' places: gradients are theirs now
            self._measured, self._decided, self._holders = {}, {}, tuple(holders)
        described = tuple((t.shape, t.stride(), t.dtype, t.device, t.requires_grad) for t in tensors)
        shape = None if form is None else (repr(form.spec), tuple(map(repr, form.leaves)), form.is_tensor)
        return (described, shape, tuple(flags), device, stages.ambient(device)), accumulating

    def _sequence(self, tensors: Tensors, form: Optional[Form]) -> Optional[Decision]:
        """The sequence for this kind of input, measured and planned if it is new; None: nothing needs a gradient."""
        device = self._device(tensors)
        key, accumulating = self._key(tensors, form, device)
        if key not in self._measured:
            found = None
            devices = {t.device for t in (*tensors, *self.parameters())}
            if len({d for d in devices if d.type != "cpu"}) > 1:
                raise Unsupported(f"tensors on {', '.join(sorted(map(str, devices)))}: a budget is for one device")
            if len(self) and any(t.requires_grad for t in (*tensors, *self.parameters())):
                found = stages.measure(self, tensors, form, device)
            while len(self._measured) >= MOST_KINDS:
                oldest = next(iter(self._measured))
                del self._measured[oldest]
                self._decided.pop((oldest, False), None)
                self._decided.pop((oldest, True), None)
            self._measured[key] = found
        measured = self._measured[key]
        if measured is None or measured.first == len(measured.groups):
            return None
        if (key, accumulating) not in self._decided:
            self._decided[key, accumulating] = decide(measured, self._budget, self._reserve_bytes, accumulating)
        self._latest = self._decided[key, accumulating]
        return self._latest

    @torch.compiler.disable
    def forward(self, input: Any) -> Any:
        if not torch.is_grad_enabled():
            return super().forward(input)
        tensors, form = stages.pack(input, "the input")
        sequence = self._sequence(tensors, form)
        if sequence is None or not sequence.recomputed:
            return super().forward(input)
        for group in sequence.measured.groups[: sequence.measured.first]:
            tensors, form = stages.run_dropping(group, tensors, form, [t.requires_grad for t in tensors])
        run = _Run(sequence, tensors, form, self._device(tensors))
        for stage, group in enumerate(run.groups, 1):
            tensors = list(_Node.apply(run, stage, *tensors, *group.parameters))
        run.position += 2  # forward and backward of the loss, which is the caller's
        return stages.unpack(tensors, run.forms[-1])

    # ---- what was decided ----

    @property
    def chain(self) -> Optional[Chain]:
        """The stages as measured last, as a chain that every remat command takes (`.chain.save("chain.json")`)."""
        if self._latest is None:
            return None
        head, body = self._latest.chain_stages
        return Chain.of(body, head, name="Sequential")

    @property
    def predicted_bytes(self) -> Optional[int]:
        """The peak that the sequence decided last will have."""
        return None if self._latest is None else self._latest.peak_bytes

    def explain(self, file: Optional[TextIO] = None) -> None:
        """Prints the sequence decided last: what it costs, its stages, and each operation with the memory in use
        while it runs.
        """
        print("\n".join(_explanation(self._latest)), file=file or sys.stdout)


def _explanation(sequence: Optional[Decision]) -> List[str]:
    if sequence is None:
        return [
            "Checkpointable: nothing was measured yet, or nothing needs a gradient: give a sample, or run forward once"
        ]
    measured = sequence.measured
    limit = "no budget" if sequence.budget_bytes is None else f"budget {size_text(sequence.budget_bytes)}"
    gradients = f"gradients {size_text(sum(measured.gradient_bytes))}{' (accumulating)' if sequence.accumulating else ' in the end'}"
    lines = [
        f"Checkpointable: {len(sequence.groups)} stages, {limit}: peak {size_text(sequence.peak_bytes)} (keep-all {size_text(sequence.keep_all_peak_bytes)}), "
        f"{sequence.recomputed} forward runs more, {100 * (sequence.cost / max(1, sequence.keep_all_cost) - 1):.1f} % more time; "
        f"{sequence.strategy}, measured in {measured.seconds:.2f} s, planned in {sequence.plan_seconds:.2f} s",
        f"always there: parameters and buffers {size_text(measured.parameter_bytes)}, {gradients}, "
        f"output {size_text(measured.output_bytes)}, reserve {size_text(sequence.reserve_bytes)}; input {size_text(measured.input.a)}",
    ]
    if measured.first:
        lines.append(
            f"without gradients, run as they are: stages {measured.groups[0].name} to {measured.groups[measured.first - 1].name}"
        )
    width = max(5, *(len(g.name) for g in sequence.groups))
    lines.append(
        f"{'stage':{width}}  {'forward':>10} {'backward':>10} {'output':>10} {'saved':>10} {'+forward':>10} {'+backward':>10}  runs"
    )
    for group, runs in zip(sequence.groups, sequence.runs):
        s = group.sizes
        notes = [
            note
            for note, said in (
                ("random", group.random),
                ("buffers", bool(group.buffers)),
                ("not reproducible", not group.reproducible),
            )
            if said
        ]
        lines.append(
            f"{group.name:{width}}  {s.tf / 1e6:7.3f} ms {s.tb / 1e6:7.3f} ms {size_text(s.a):>10} {size_text(s.abar):>10} {size_text(s.of):>10} {size_text(s.ob):>10}  "
            f"{runs}{'  ' + ', '.join(notes) if notes else ''}"
        )
    lines.append(f"{'step':>5}  {'operation':{width + 6}} {'memory':>10}")
    for i, (step, memory) in enumerate(zip(sequence.steps, sequence.curve)):
        name = sequence.groups[step.index - 1].name if step.index <= len(sequence.groups) else "(loss)"
        lines.append(
            f"{i:5}  {step.kind + ' ' + name:{width + 6}} {size_text(memory):>10}{'  peak' if memory == sequence.peak_bytes else ''}"
        )
    return lines
