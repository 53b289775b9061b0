"""The plan that keeps its budget once Inductor has made code of it.

Problem. Plans are made with a model of fused kernels. Inductor's code needs more or less than the model says, by some percent or, near the least memory, by much more; and the excess depends on the plan.
Lowering the budget of the plan by the excess overshoots: the cheaper the memory, the smaller the excess.

Method. What code needs and moves is read before it is compiled (reading.py). `room` is the budget that is planned for, `limit` the one that was given. The first look is at room = limit, at the cheapest candidate, and at the next one if that does not fit and costs hardly more.
Where code needs much more than the limit, the same plan with kernels merged only nearby is looked at; then a room that is smaller by the least excess so far. Where code leaves room unused, the next room lies on the line through the last
one that fits and the last one that does not. At most LOOKS looks. If none fits by then, the plan of least memory is looked at, and MORE - 1
rooms between it and the limit: a budget is kept wherever a plan is known that keeps it. Of all that fit the fastest one by its code is taken, and if none fits the one that needs least.

Invariant: what is returned was planned and verified, and its code was read; where nothing can be read, it is the first plan, unchanged. Cost: LOOKS + MORE readings and plans at most.
"""
from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional

from .planning import Solution

LOOKS, MORE = 4, 3  # at most, and as many more where none of those fits
CLOSE = 1.05  # code that needs so much more than the budget is helped by a little less room; more, by merging less
TOLERANCE = 1.005  # how much more than the budget code may need
UNUSED = 0.96  # of the budget: code that needs less is looked at again with more room
ALIKE = 1.02  # candidates whose costs differ by less are as good

ANYWHERE, NEAR = 1 << 30, 12  # steps of a plan within which kernels that read the same tensors may become one: at first, and where that took too much memory


class Look(NamedTuple):
    """A plan and what its code would need and take."""
    solution: Solution
    near: int
    room: int
    needs_bytes: int
    ns: float


class Fit:
    """`plan(room)` gives plans within so many bytes, the cheapest first, or none; `read(solution, near)` what code would need and take, or None."""

    def __init__(self, limit: int, plan: Callable[[int], List[Solution]], read: Callable[[Solution, int], Optional[Look]]):
        self.limit, self._plan, self._read = limit, plan, read
        self.looks: List[Look] = []
        self._most = LOOKS

    def _look(self, solution: Solution, near: int, room: int) -> bool:
        """Whether there was anything new to be read."""
        if len(self.looks) >= self._most or any(look.near == near and look.solution.schedule == solution.schedule and look.solution.joint is solution.joint for look in self.looks):
            return False
        found = self._read(solution, near)
        if found is not None:
            self.looks.append(found._replace(room=room))
        return found is not None

    def _fits(self, look: Look) -> bool:
        return look.needs_bytes <= TOLERANCE * self.limit

    def best(self) -> Optional[Look]:
        """The fastest that fits, else the one that needs least."""
        fitting = [look for look in self.looks if self._fits(look)]
        return min(fitting, key=lambda look: look.ns) if fitting else min(self.looks, key=lambda look: look.needs_bytes, default=None)

    def run(self, first: Solution) -> Optional[Look]:
        candidates = self._plan(self.limit) or [first]
        for solution in candidates[:2]:
            alike = solution.verdict.cost <= ALIKE * candidates[0].verdict.cost
            if solution is candidates[0] or alike and not any(map(self._fits, self.looks)):
                if not self._look(solution, ANYWHERE, self.limit):
                    return self.best()
        least = min(self.looks, key=lambda look: look.needs_bytes)
        if least.needs_bytes > CLOSE * self.limit:
            self._look(least.solution, NEAR, self.limit)
        self._converge()
        if not any(map(self._fits, self.looks)):
            self._most = LOOKS + MORE
            least_memory = self._plan(0)[0]
            if self._look(least_memory, NEAR, least_memory.verdict.peak_bytes):  # type: ignore[arg-type]
                self._converge()
        return self.best()

    def _converge(self) -> None:
        room = self._next_room()
        while room is not None and len(self.looks) < self._most:
            found = self._plan(room)
            near = NEAR if any(look.near == NEAR for look in self.looks) else ANYWHERE
            if not found or not self._look(found[0], near, room):
                break
            room = self._next_room()

    def _next_room(self) -> Optional[int]:
        """The budget to plan for next; None: what there is will do."""
        fitting = [look for look in self.looks if self._fits(look)]
        if not fitting:
            least = min(self.looks, key=lambda look: look.needs_bytes)
            return least.room - max(1, round(1.05 * (least.needs_bytes - self.limit)))
        under = max(fitting, key=lambda look: look.needs_bytes)
        over = [look for look in self.looks if not self._fits(look) and look.room > under.room]
        if under.needs_bytes >= UNUSED * self.limit or not over:
            return None
        above = min(over, key=lambda look: (look.room, look.needs_bytes))
        slope = (above.room - under.room) / max(1, above.needs_bytes - under.needs_bytes)
        return min(above.room - 1, under.room + round(min(1.0, max(0.1, slope)) * 0.95 * (self.limit - under.needs_bytes)))
