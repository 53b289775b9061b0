"""The plan that keeps its budget once Inductor has made code of it.

Problem. Plans are made with a model of fused kernels. Inductor's code needs more or less than the model says, by some
percent or, near the least memory, by much more; and the excess depends on the plan. Lowering the budget of the plan by
the excess overshoots: the cheaper the memory, the smaller the excess.

Method. What code needs and moves is read before it is compiled (reading.py). `room` is the budget that is planned for,
`limit` the one that was given. The first looks are at room = limit, at one candidate after the other, the cheapest
first, until one fits or nearly does. Where none fits, or one that nearly does is faster, the next room is smaller by
that excess; where code leaves room unused, it lies on the line through the last one that fits and the last one that
does not. Plans from a start whose code needed much more than was planned come last. At most LOOKS looks. Then, where it
was not looked at yet, the cheapest partition that would be compiled node for node, if by the model it is about as fast:
Inductor makes more of torch's own order than of a plan's, which the model does not know. If none fits by then, the plan of least memory is looked at, and MORE - 1 rooms between it and the limit: a budget is kept wherever a
plan is known that keeps it. Of all that fit the fastest one by its code is taken, and if none fits the one that needs
least.

The least memory ("min") is that of code, too: plans of least memory may need more than others do that were given more
room. After them the room is halved between what the smallest code was planned to need and what it needs.

Invariant: what is returned was planned and verified, and its code was read; where nothing can be read, it is the
first plan, unchanged. Cost: LOOKS + MORE readings and plans at most."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from .planning import Solution

LOOKS, MORE = 4, 3  # at most, and as many more where none of those fits
FIRST = 3  # of those, candidates for the whole budget
OFF = 1.1  # code that needs so much more than was planned tells that plans from this start are no good
TOLERANCE = 1.005  # how much more than the budget code may need
UNUSED = 0.96  # of the budget: code that needs less is looked at again with more room
# code that needs so much more than the budget nearly fits; where it was so much faster than what fits, it is looked at
# again with less room
CLOSE, SLOWER = 1.03, 1.01
# times the modelled cost of what was chosen: a partition as it is that is dearer is not looked at. On a GPT at the peak
# of per-block checkpointing the kernels of a plan took 35.5 ms, and those of that partition 35.3
ABOUT = 1.08


class Look(NamedTuple):
    """A plan and what its code would need and take."""

    solution: Solution
    room: int
    needs_bytes: int
    ns: float
    drafts: Tuple[Any, ...] = ()  # its code, to be compiled if it is chosen (reading.py)


class Fit:
    """`plan(room)` gives plans within so many bytes, the cheapest first, or those of least memory; `read(solution)`
    what code would need and take, or None. A limit of 0 is for `least`.
    """

    def __init__(self, limit: int, plan: Callable[[int], List[Solution]], read: Callable[[Solution], Optional[Look]]):
        self.limit, self._plan, self._read = limit, plan, read
        self.looks: List[Look] = []
        self._most = LOOKS

    def _look(self, solution: Solution, room: int) -> bool:
        """Whether there was anything new to be read."""
        if len(self.looks) >= self._most or self._seen(solution):
            return False
        found = self._read(solution)
        if found is not None:  # where nothing fits the room, the plan of least memory has what it needs
            self.looks.append(found._replace(room=max(room, solution.verdict.peak_bytes or 0)))
        return found is not None

    def _seen(self, solution: Solution) -> Optional[Look]:
        return next(
            (
                look
                for look in self.looks
                if look.solution.schedule == solution.schedule and self._is_of(look, solution)
            ),
            None,
        )

    def _is_over(self, solution: Solution) -> bool:
        """Whether it was seen that this plan does not fit: partitions as they are come again with another room."""
        look = self._seen(solution)
        return look is not None and not self._fits(look)

    def _fits(self, look: Look) -> bool:
        return look.needs_bytes <= TOLERANCE * self.limit

    @staticmethod
    def _is_of(look: Look, solution: Solution) -> bool:
        """Whether it is a look at a plan from the same start."""
        return look.solution.joint.module is solution.joint.module

    def _is_off(self, solution: Solution) -> bool:
        """Whether code of a plan from the same start needed much more than was planned."""
        return any(
            self._is_of(look, solution) and look.needs_bytes > OFF * look.solution.verdict.peak_bytes
            for look in self.looks
        )

    def best(self) -> Optional[Look]:
        """The fastest that fits, else the one that needs least."""
        fitting = [look for look in self.looks if self._fits(look)]
        return (
            min(fitting, key=lambda look: look.ns)
            if fitting
            else min(self.looks, key=lambda look: look.needs_bytes, default=None)
        )

    def run(self, first: Solution) -> Optional[Look]:
        candidates = self._plan(self.limit) or [first]
        for solution in candidates[:FIRST]:
            if not self._look(solution, self.limit) or self.looks[-1].needs_bytes <= CLOSE * self.limit:
                break  # a little less room makes that one fit
        self._converge()
        self._look_as_it_is(candidates)
        if self.looks and not any(map(self._fits, self.looks)):
            self._most = LOOKS + MORE
            least = self._plan(0)[0]
            if self._look(least, 0):
                self._converge()
        return self.best()

    def least(self) -> Optional[Look]:
        """The plan whose code needs least; of those whose code needs about as little the fastest."""
        self._most = LOOKS + MORE
        for solution in self._plan(0)[:FIRST]:
            self._look(solution, 0)
        smallest, room = self.best(), 0
        while smallest is not None:
            planned = smallest.solution.verdict.peak_bytes
            room = (planned + (room or smallest.needs_bytes)) // 2
            if room < CLOSE * planned or not self._look(min(self._plan(room), key=self._is_off), room):
                break
            if self.best() is not smallest:
                smallest, room = self.best(), 0
        self.limit = smallest.needs_bytes if smallest else 0
        return self.best()

    def _look_as_it_is(self, candidates: List[Solution]) -> None:
        """At the cheapest partition that may fit as it is, beside a plan."""
        chosen = self.best()
        if chosen is None or not chosen.solution.again:
            return
        most = ABOUT * chosen.solution.verdict.cost
        partitions = [
            solution
            for solution in candidates
            if not solution.again
            and solution.verdict.peak_bytes <= CLOSE * self.limit
            and (solution.verdict.cost <= most or not self._fits(chosen))
        ]
        if partitions:
            self._most += 1
            self._look(partitions[0], self.limit)

    def _converge(self) -> None:
        room = self._next_room()
        while room is not None and len(self.looks) < self._most:
            found = [solution for solution in self._plan(room) if not self._is_over(solution)]
            if not found or not self._look(min(found, key=self._is_off), room):
                break
            room = self._next_room()

    def _next_room(self) -> Optional[int]:
        """The budget to plan for next; None: what there is will do."""
        under = max(filter(self._fits, self.looks), key=lambda look: look.needs_bytes, default=None)
        over = [
            look
            for look in self.looks
            if not self._fits(look)
            and (under is None or self._is_of(look, under.solution) or not self._is_off(look.solution))
        ]
        if under is not None:
            ns = min(look.ns for look in self.looks if self._fits(look))
            faster = [look for look in over if look.needs_bytes <= CLOSE * self.limit and SLOWER * look.ns < ns]
            over = faster or ([] if under.needs_bytes >= UNUSED * self.limit else over)
        if not over:
            return None
        above = min(over, key=lambda look: look.needs_bytes)
        if under is None or above.room <= under.room:
            return max(0, above.room - max(1, round(1.05 * (above.needs_bytes - self.limit))))
        slope = (above.room - under.room) / max(1, above.needs_bytes - under.needs_bytes)
        return min(
            above.room - 1, under.room + round(min(1.0, max(0.1, slope)) * 0.95 * (self.limit - under.needs_bytes))
        )
