"""One call into libremat: a C context with its options, its errors as exceptions, warnings, progress, and Ctrl-C;
handles, strings and arrays across the border.
"""

from __future__ import annotations

import ctypes
import signal
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional

from ._native import ON_PROGRESS, ON_WARNING, SINK, lib
from .errors import BY_STATUS, Error, NoMemory, UsageError

CLASSES = ("other", "compute", "fusible", "view", "random")


@dataclass(frozen=True)
class Progress:
    strategy: str
    permille: int
    cost: Optional[int]
    peak_bytes: Optional[int]
    work: int
    bound_cost: Optional[int]


class Context:
    """One C context for one call: options in, errors out. `plan` runs a call so that Ctrl-C stops it."""

    def __init__(
        self,
        options: Optional[Dict[str, Any]] = None,
        progress: Optional[Callable[[Progress], Any]] = None,
        classes: Optional[Dict[str, str]] = None,
    ):
        self.handle = lib.remat_ctx_new(None)
        if not self.handle:
            raise NoMemory("out of memory")
        self.failure: Optional[BaseException] = None
        self._on_warning = ON_WARNING(self._warn)
        lib.remat_ctx_on_warning(self.handle, self._on_warning, None)
        if progress is not None:
            self._on_progress = ON_PROGRESS(self._report)
            self.progress = progress
            lib.remat_ctx_on_progress(self.handle, self._on_progress, None)
        self.warnings: List[str] = []
        try:
            for name, value in (options or {}).items():
                if value is None:
                    continue
                if name == "time":  # seconds, as the program's flag
                    if not isinstance(value, (int, float)) or not 0 <= value < 1e12:
                        raise UsageError(f"option time: {value!r} is not a number of seconds")
                    name, value = "time_ms", max(1, round(value * 1000))
                if not isinstance(value, int):
                    raise UsageError(f"option {name}: {value!r} is not an integer")
                self.check(lib.remat_ctx_set(self.handle, name.encode(), int(value)))
            for target, kind in (classes or {}).items():
                if kind not in CLASSES:
                    raise UsageError(f"no class {kind!r}: {', '.join(CLASSES)}")
                self.check(lib.remat_ctx_class(self.handle, target.encode(), CLASSES.index(kind)))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
        for line in self.warnings:
            warnings.warn(line, stacklevel=3)

    def close(self) -> None:
        handle, self.handle = self.handle, None
        lib.remat_ctx_free(handle)

    def _warn(self, _user: Any, line: bytes) -> None:
        self.warnings.append(line.decode("utf-8", "replace"))

    def _report(self, _user: Any, record: Any) -> None:
        try:
            self.progress(Progress(**record.contents.fields()))
        except BaseException as error:  # raised again once the library has returned
            self.failure = self.failure or error
            lib.remat_ctx_stop(self.handle)

    def check(self, status: int) -> None:
        if self.failure is not None:
            raise self.failure
        if status:
            text = [
                f(self.handle).decode("utf-8", "replace")
                for f in (
                    lib.remat_ctx_error,
                    lib.remat_ctx_error_file,
                    lib.remat_ctx_error_place,
                    lib.remat_ctx_error_reason,
                )
            ]
            raise BY_STATUS.get(status, Error)(*text)

    def plan(self, function: Any, *arguments: Any) -> None:
        """Calls function(context, *arguments). On the main thread another one does the work: Python runs its signal
        handlers between bytecodes only, and a Ctrl-C must reach remat_ctx_stop while C is running. The best plan so
        far then comes back.
        """
        if threading.current_thread() is not threading.main_thread():
            return self.check(function(self.handle, *arguments))
        status: List[int] = []
        done = threading.Event()

        def work() -> None:
            try:
                status.append(function(self.handle, *arguments))
            finally:
                done.set()

        before = signal.getsignal(signal.SIGINT)
        # another handler may raise: that is its owner's wish, and comes after the call
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, lambda *_: lib.remat_ctx_stop(self.handle))
        threading.Thread(target=work, name="remat-plan", daemon=True).start()
        while not done.is_set():
            try:
                done.wait()
            except BaseException as error:
                self.failure = self.failure or error
                lib.remat_ctx_stop(self.handle)
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)
        self.check(status[0])


def own(owner: Any, handle: ctypes.c_void_p, free: Any) -> int:
    weakref.finalize(owner, free, handle.value)
    return handle.value  # type: ignore[return-value]


def text_of(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def indices(values: Iterable[int]) -> Any:
    items = list(values)
    return (ctypes.c_uint32 * len(items))(*items), len(items)


def written_bytes(write: Any, handle: int, compress: bool) -> bytes:
    pieces: List[bytes] = []

    def take(_user: Any, data: int, n_bytes: int) -> int:
        pieces.append(ctypes.string_at(data, n_bytes))
        return 0

    with Context() as context:
        context.check(write(context.handle, handle, 1 if compress else 0, SINK(take), None))
    return b"".join(pieces)
