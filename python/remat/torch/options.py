"""The options of the backend, checked when they are given; and where a budget comes from: the options, `with
remat.torch.budget(...)`, or REMAT_BUDGET.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Iterator, Optional, Tuple, Union

from .. import core
from .._context import Context
from .._native import lib
from ..errors import UsageError

Budget = Union[int, str, None]

SEARCH = ("time", "work", "seed")  # limits of the planner, as in the program
_default: ContextVar[Budget] = ContextVar("remat_budget", default=None)


def bytes_of(text: Union[int, str], whole: Optional[int] = None) -> int:
    """Bytes of "8GiB", "900MB", 4096, and of "50%" if it is said what the whole is."""
    if not isinstance(text, str):
        return core.byte_count(text)
    if text.strip().endswith("%") and whole is None:
        raise UsageError(f"{text!r}: bytes are wanted here")
    out = ctypes.c_int64()
    with Context() as context:
        context.check(lib.remat_budget_parse(context.handle, text.encode(), whole or 0, ctypes.byref(out)))
    return out.value


def check_budget(budget: Budget) -> None:
    """Refuses what is no budget, before anything is traced."""
    if budget not in (None, "min", "auto"):
        bytes_of(budget, 1)


@contextlib.contextmanager
def budget(limit: Budget) -> Iterator[None]:
    """Graphs that are compiled inside, with options that have no budget, get this one.

    >>> import remat.torch
    >>> with remat.torch.budget("8GiB"):
    ...     remat.torch.options.default_budget()
    '8GiB'
    """
    check_budget(limit)
    mark = _default.set(limit)
    try:
        yield
    finally:
        _default.reset(mark)


def default_budget() -> Budget:
    return _default.get() if _default.get() is not None else os.environ.get("REMAT_BUDGET") or None


@dataclass
class Settings:
    """docs/pytorch.md says what each option means."""

    budget: Budget = None
    kernels: str = "eager"
    inductor: Dict[str, Any] = field(default_factory=dict)
    strategy: str = "auto"
    random: str = "replay"
    recompute: Tuple[str, ...] = ()
    reserve: int = 0
    device: Optional[str] = None
    cache: Union[bool, str] = True
    costs: Optional[str] = None
    strict: bool = False
    search: Dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Dict[str, Any]) -> "Settings":
        names = [f.name for f in fields(cls) if f.name != "search"] + list(SEARCH)
        unknown = [name for name in options if name not in names]
        if unknown:
            raise UsageError(f"no option {unknown[0]!r} of the backend remat: {', '.join(names)}")
        search = {name: options[name] for name in SEARCH if options.get(name) is not None}
        found = cls(search=search, **{name: value for name, value in options.items() if name not in SEARCH})
        if found.budget is None:
            found.budget = default_budget()
        found._check()
        return found

    def _check(self) -> None:
        for name, allowed in (
            ("kernels", ("eager", "inductor")),
            ("costs", (None, "roofline", "measure")),
            ("random", ("replay", "pin")),
            ("strict", (True, False)),
        ):
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f"{name}={getattr(self, name)!r}: {' or '.join(repr(value) for value in allowed if value is not None)}"
                )
        if self.inductor and self.kernels != "inductor":
            raise UsageError('inductor=...: settings of Inductor go with kernels="inductor"')
        if self.inductor.get("triton.cudagraphs"):
            raise UsageError("triton.cudagraphs: a pool of CUDA graphs keeps what a plan would free; not with a budget")
        if self.strategy not in core.strategies():
            raise UsageError(f"no strategy {self.strategy!r}: {', '.join(core.strategies())}")
        self.recompute = (self.recompute,) if isinstance(self.recompute, str) else tuple(self.recompute)
        for name in self.recompute:
            if not isinstance(name, str) or "::" not in name:
                raise UsageError(f"recompute={name!r}: names of ops, like 'mylib::op' or 'mylib::*'")
        self.reserve = bytes_of(self.reserve)
        check_budget(self.budget)
