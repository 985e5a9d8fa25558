"""Answers kept by Idempotency-Key, so that a request which is sent again is not stored again.

Kept in memory, for ten minutes and within a number of bytes; a restart of the broker forgets them. What is kept is an
answer after which records are stored, or may be. An answer that says that nothing was stored is not: the same request
may try again.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import trio

from leafcuttr_http.errors import ApiError
from leafcuttr_sdk.types import Clock

TTL_S: Final = 600.0
LONGEST: Final = 255
_OVERHEAD: Final = 1024
"""Bytes of an entry beside its answer, about."""


class Answer(NamedTuple):
    """An answer without the headers that depend on the client. `final`: something was stored, or may have been."""

    status: int
    body: bytes
    final: bool = True


class _Entry:
    __slots__ = ("answer", "done", "error", "fingerprint", "since")

    def __init__(self, fingerprint: bytes, since: float) -> None:
        self.fingerprint = fingerprint
        self.since = since
        self.done = trio.Event()
        self.answer: Answer | None = None
        self.error: Exception | None = None


class Answers:
    """The answers to requests with a key, by topic and key."""

    def __init__(self, clock: Clock, max_bytes: int) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()
        self.bytes = 0

    async def once(
        self,
        name: tuple[str, str],
        fingerprint: bytes,
        make: Callable[[], Awaitable[Answer]],
        nursery: trio.Nursery,
    ) -> tuple[Answer, bool]:
        """The answer to the first request of this name, made by `make` if this is the first; and whether it was there
        before. `make` runs in the nursery, so that it comes to its end even if the caller is cancelled. Raises
        ApiError, what `make` raises."""
        while True:
            self._expire()
            entry = self._entries.get(name)
            if entry is None:
                break
            if entry.fingerprint != fingerprint:
                raise ApiError(42208, "This Idempotency-Key was used for another request.")
            await entry.done.wait()
            if entry.answer is not None and entry.answer.final:
                return entry.answer, True
        entry = self._entries[name] = _Entry(fingerprint, self._clock.monotonic())
        nursery.start_soon(self._run, name, entry, make)
        await entry.done.wait()
        if entry.answer is None:
            raise entry.error or ApiError(503, "The broker is stopping; it is not known what was stored.")
        return entry.answer, False

    async def _run(self, name: tuple[str, str], entry: _Entry, make: Callable[[], Awaitable[Answer]]) -> None:
        try:
            entry.answer = await make()
        except Exception as error:
            entry.error = error
        finally:
            if entry.answer is None or not entry.answer.final:
                del self._entries[name]
            else:
                self.bytes += _size(entry)
                self._expire()
            entry.done.set()

    def _expire(self) -> None:
        """Forget what is too old or too much, the oldest first, never what is under way."""
        oldest = self._clock.monotonic() - TTL_S
        for name, entry in list(self._entries.items()) if self.bytes > self._max_bytes else ():
            if self.bytes <= self._max_bytes:
                break
            if entry.answer is not None:
                self._forget(name, entry)
        while self._entries:
            name, entry = next(iter(self._entries.items()))
            if entry.since > oldest or entry.answer is None:
                break
            self._forget(name, entry)

    def _forget(self, name: tuple[str, str], entry: _Entry) -> None:
        del self._entries[name]
        self.bytes -= _size(entry)


def _size(entry: _Entry) -> int:
    return _OVERHEAD + (len(entry.answer.body) if entry.answer else 0)
