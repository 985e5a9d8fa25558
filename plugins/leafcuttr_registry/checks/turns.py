"""Who may use a worker process next, and until when. Clients that send schemas which take long do not keep others from
an answer, and each request is answered in time, with the wait for a process.

At most half of the processes run checks without another limit than that of the request. While these are taken, a check
gets `SOON_S` of another process; one that takes longer is ended, and begins again when one of its half is free. What
took too long once, and what is large, waits for that half at once.
"""

import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Final

import trio

from leafcuttr_registry.subjects.refusals import busy

DEADLINE_S: Final = 1.8
"""Waiting for others, and the processor's time for the work: for the answer to come within two seconds, where the
machine has no other work."""
PATIENCE: Final = 5
"""So many times as much may pass by the clock, for what no limit of the processor's time ends;"""
SHORT_PATIENCE: Final = 2
"""and in a short turn, for which others wait: what it ends begins again in the long half, and is not refused."""
SOON_S: Final = 0.25
LARGE: Final = 256 * 1024
"""Characters of a text."""
_MOST_SLOW: Final = 10_000
"""Texts that are remembered."""


class Limit:
    """Of one request: how long it may wait for others, by the clock, and work, by the processor's time; and how long it
    has. What a machine with other work takes from it does not count."""

    def __init__(self, seconds: float) -> None:
        self.seconds: Final = seconds
        self.waited_s = 0.0
        self.worked_s = 0.0

    @property
    def left_s(self) -> float:
        return self.seconds - self.waited_s - self.worked_s

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """For what is inside to wait for others. Raises Refusal 503 when the time is up."""
        began = trio.current_time()
        with trio.move_on_after(max(self.left_s, 0)) as scope:
            yield
        self.waited_s += trio.current_time() - began
        if scope.cancelled_caught:
            raise busy()

    @property
    def was_others(self) -> bool:
        """Whether most of the time went by with waiting."""
        return self.waited_s > DEADLINE_S / 2


_limit: Final[ContextVar[Limit]] = ContextVar("limit")


def begin() -> Limit:
    """The time of a request counts from now: its body has come."""
    limit = Limit(DEADLINE_S)
    _limit.set(limit)
    return limit


def of_request() -> Limit:
    """For what no request has asked for, the time of one that begins now."""
    return _limit.get(None) or Limit(DEADLINE_S)


class Turns:
    """`most` as there are worker processes."""

    def __init__(self, most: int | None = None) -> None:
        # The broker's pool has as many. More turns would wait there, where a deadline does not count.
        most = most or min(max(len(os.sched_getaffinity(0)), 2), 4)
        self._any: Final = trio.Semaphore(most)
        self._long: Final = trio.Semaphore(most // 2 or 1)
        self._slow: OrderedDict[bytes, None] = OrderedDict()

    def is_slow(self, type: str, text: str) -> bool:
        return len(text) > LARGE or _digest(type, text) in self._slow

    def was_slow(self, type: str, text: str) -> None:
        """It has taken too long."""
        self._slow[_digest(type, text)] = None
        while len(self._slow) > _MOST_SLOW:
            self._slow.popitem(last=False)

    @asynccontextmanager
    async def take(self, limit: Limit, *, short: bool) -> AsyncGenerator[bool]:
        """A turn, and whether it is one without another limit: `short` says that one of `SOON_S` will do. Raises
        Refusal 503."""
        long = True
        try:
            self._long.acquire_nowait()
        except trio.WouldBlock:
            long = not short
            if long:
                with limit.waiting():
                    await self._long.acquire()
        try:
            with limit.waiting():
                await self._any.acquire()
            try:
                yield long
            finally:
                self._any.release()
        finally:
            if long:
                self._long.release()


def _digest(type: str, text: str) -> bytes:
    return blake2b(f"{type}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
