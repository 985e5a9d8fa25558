"""Threads that write for logs and stay awake for the next write.

An acknowledgement in topic sync mode waits for one trip to a worker and back. `trio.to_thread` wakes the loop through
its queue of callbacks and starts each job in a fresh context; here a thread takes the job from a queue of its own and
says that it is done by an eventfd, which the waiting task watches itself: about a third of the time. What is written
is not known here.
"""

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import trio

from leafcuttr.log.workers import write_limiter

T = TypeVar("T")


class _Writer:
    """One thread. Whoever has taken it from the idle ones calls it, once at a time."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()
        self._done = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._result: Any = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name="log writer", daemon=True).start()

    def _run(self) -> None:
        while True:
            function, arguments = self._jobs.get()
            try:
                self._result = function(*arguments)
            except BaseException as error:
                self._error = error
            del function, arguments  # the buffers of connections: they must not wait for the next job
            os.eventfd_write(self._done, 1)

    async def call(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        self._jobs.put((function, arguments))
        with trio.CancelScope(shield=True):
            await trio.lowlevel.wait_readable(self._done)
        os.eventfd_read(self._done)
        error, self._error = self._error, None
        result, self._result = self._result, None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]


_IDLE: Final[list[_Writer]] = []


async def run_in_writer(function: Callable[..., T], *arguments: Any) -> T:
    """Call it in a writer's thread and return what it returns, or raise what it raises. Not cancelled once begun."""
    async with write_limiter():
        try:
            writer = _IDLE.pop()  # the one that was busy last: it is the warmest
        except IndexError:
            writer = _Writer()
        try:
            return await writer.call(function, arguments)
        finally:
            _IDLE.append(writer)
