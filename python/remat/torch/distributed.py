"""One plan for many processes. Processes that train together ask the same questions (a graph, its sizes, its budget),
and a search that is stopped by time may answer them differently. So whoever asks first answers for all: it claims the
question in the store of torch.distributed, plans, and leaves the plan there; the others wait for it and verify it
against the graph that they have themselves.

No collective is used. A process that asks what no other asks (another stage of a pipeline, a longer batch) waits for
nobody, and what is in flight between processes stays in order. Who has claimed a question says every second that it is
still there; where that stops, the others raise instead of waiting for ever.

Invariant: an answer is written once, by the process that claimed the question. Cost: one round trip to the store to
claim, ten a second to wait."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
import time
from typing import Callable, Iterator, NamedTuple, Optional

import torch.distributed as dist

from ..errors import Error

SILENCE = 60.0  # seconds without a sign of life after which a process that plans is taken for dead
PAUSE = 0.1  # seconds between two looks
NOTHING = b"-"  # the answer of a process that found none; who asked finds out why by itself


class Answer(NamedTuple):
    """`data` is None where the process that was asked found nothing."""

    data: Optional[bytes]
    rank: Optional[int]  # of the process that answered; None where there is one process alone


def together() -> bool:
    """Whether there are other processes to agree with."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def shared(question: str, find: Callable[[], bytes]) -> Answer:
    """What `find` returns, or what it returned in the process that asked first. Raises what `find` raises."""
    if not together():
        return Answer(find(), None)
    store = dist.distributed_c10d._get_default_store()
    key = "remat/" + hashlib.sha256(question.encode()).hexdigest()[:32]
    try:
        if not store.check([f"{key}/answer"]):
            if store.add(f"{key}/claims", 1) == 1:
                return _answer(store, key, dist.get_rank(), find)
            _wait(store, key)
        rank, data = store.get(f"{key}/answer").split()
    except (dist.DistError, ConnectionError) as error:
        raise Error(f"the processes that train together cannot agree on a plan: {str(error).splitlines()[0]}") from None
    return Answer(None if data == NOTHING else base64.b64decode(data), int(rank))


def _answer(store: dist.Store, key: str, rank: int, find: Callable[[], bytes]) -> Answer:
    """Of the process that claimed the question."""
    found = NOTHING
    try:
        with _signs_of_life(store, key, rank):
            made = find()
        found = base64.b64encode(made) or NOTHING
        return Answer(made, rank)
    finally:
        store.set(f"{key}/answer", b"%d %s" % (rank, found))


@contextlib.contextmanager
def _signs_of_life(store: dist.Store, key: str, rank: int) -> Iterator[None]:
    """A number that grows while the block runs, behind the rank."""
    over = threading.Event()
    store.set(f"{key}/beat", f"{rank} 0")

    def beat() -> None:
        beats = 0
        with contextlib.suppress(dist.DistError):  # the store is gone: whoever reads it will say so
            while not over.wait(1):
                beats += 1
                store.set(f"{key}/beat", f"{rank} {beats}")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _wait(store: dist.Store, key: str) -> None:
    """Until the question is answered; an error where the process that claimed it is silent."""
    last, heard = b"", time.monotonic()
    while not store.check([f"{key}/answer"]):
        beat = store.get(f"{key}/beat") if store.check([f"{key}/beat"]) else b""
        if beat != last:
            last, heard = beat, time.monotonic()
        elif time.monotonic() - heard > SILENCE:
            who = f"process {last.split()[0].decode()}" if last else "a process"
            raise Error(f"{who} has said nothing for {SILENCE:.0f} s while it plans for all: it may have died")
        time.sleep(PAUSE)
