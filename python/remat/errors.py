"""What can go wrong: an exception for every status of include/remat.h, each with the library's one line."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """What libremat refuses, in one line. `code` is the C status; `file`, `place` and `reason` are the parts of the
    line.
    """

    code = 0

    def __init__(self, message: str, file: str = "", place: str = "", reason: str = ""):
        super().__init__(message)
        self.file, self.place, self.reason = file, place, reason or message


class UsageError(Error, ValueError):
    """A call is wrong: a strategy, an option or a budget that does not exist."""

    code = 1


class InputError(Error, ValueError):
    """A file or a graph is wrong.

    >>> import remat
    >>> remat.parse(b'{"format":"remat-graph","version":1,"values":[],"nodes":[{"in":[7],"out":[]}]}')
    Traceback (most recent call last):
    remat.errors.InputError: <bytes>: nodes[0].in[0]: value 7 does not exist: the number of values is 0
    """

    code = 2


class FileError(Error, OSError):
    """Reading or writing failed."""

    code = 3


class NoMemory(Error, MemoryError):
    code = 4


class InvalidPlan(Error, ValueError):
    """A plan that was given is not valid."""

    code = 5


class NotApplicable(Error):
    """The strategy has nothing to say about this graph."""

    code = 6


class Bug(Error):
    """libremat made a plan that its own verifier refuses: please report it."""

    code = 9


class BudgetError(Error):
    """Nothing fits. `plan` is what comes nearest, `need_bytes` the least budget that is not ruled out."""

    def __init__(self, message: str, plan: Any):
        super().__init__(message)
        self.plan, self.need_bytes = plan, plan.need_bytes


class Infeasible(BudgetError):
    """Proved: no plan fits the budget.

    >>> import remat
    >>> remat.load("zoo:mlp").plan("1%")
    Traceback (most recent call last):
    remat.errors.Infeasible: nothing fits 714466 bytes: at least 63062100 (60.1 MiB) are needed at the end of the step (grad2_fc1, grad2_fc4, grad2_fc3, ...)
    """

    code = 10


class NotFound(BudgetError):
    """No plan within the budget was found, and none was proved impossible."""

    code = 11


BY_STATUS = {kind.code: kind for kind in (UsageError, InputError, FileError, NoMemory, InvalidPlan, NotApplicable, Bug)}


def size_text(n_bytes: int) -> str:
    """Bytes for people, three digits.

    >>> size_text(5497527042)
    '5.12 GiB'
    """
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if n_bytes >= 1 << shift:
            x = n_bytes / (1 << shift)
            return f"{x:.{2 if x < 9.995 else 1 if x < 99.95 else 0}f} {unit}"
    return f"{n_bytes} B"
