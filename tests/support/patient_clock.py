"""An `autojump_clock` that does not jump while a thread works for the loop.

trio's jumps when no task has run for its threshold. A task that waits for a thread does not run either, and how long
the thread takes depends on the machine: a write that takes longer than the threshold would let a session expire.
Here a thread of `trio.to_thread`, or a writer of logs, holds the time until it is done. One that takes longer than
`HELD_S`, such as one that a test blocks on purpose, does not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.runtime import writers

HELD_S = 5.0


class ThreadsAtWork:
    """Since when each of them has been at work."""

    def __init__(self) -> None:
        self._since: dict[object, float] = {}
        self._changed = threading.Condition()

    def begin(self, job: object) -> None:
        with self._changed:
            self._since[job] = time.monotonic()

    def end(self, job: object) -> None:
        with self._changed:
            self._since.pop(job, None)
            self._changed.notify_all()

    def waited_for(self) -> bool:
        """Whether one was at work; returns when it is done, or has been for `HELD_S`."""
        with self._changed:
            oldest = min(self._since.values(), default=None)
            if oldest is None:
                return False
            left = oldest + HELD_S - time.monotonic()
            if left <= 0:
                # It no longer holds the time: neither now nor later.
                self._since = {job: since for job, since in self._since.items() if since != oldest}
                return bool(self._since)
            self._changed.wait(left)
            return True


@pytest.fixture
def autojump_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockClock]:
    at_work = ThreadsAtWork()
    _watch_threads(monkeypatch, at_work)
    _watch_writers(monkeypatch, at_work)
    clock: Any = MockClock(autojump_threshold=0)
    jump = clock._autojump

    def jump_unless_a_thread_works() -> None:
        if not at_work.waited_for():
            jump()

    clock._autojump = jump_unless_a_thread_works
    yield clock
    clock._autojump = jump


def _watch_threads(monkeypatch: pytest.MonkeyPatch, at_work: ThreadsAtWork) -> None:
    start_thread_soon = trio.lowlevel.start_thread_soon

    def start(fn: Callable[[], Any], deliver: Callable[[Any], None], name: str | None = None) -> None:
        job = object()

        def delivered(result: Any) -> None:
            try:
                deliver(result)
            finally:
                at_work.end(job)

        at_work.begin(job)
        start_thread_soon(fn, delivered, name)

    monkeypatch.setattr("trio._threads.start_thread_soon", start)


def _watch_writers(monkeypatch: pytest.MonkeyPatch, at_work: ThreadsAtWork) -> None:
    begin, done = writers.Writers._begin, writers.Writers.done

    def begun(self: writers.Writers, job: Any) -> None:
        at_work.begin(job)
        begin(self, job)

    def is_done(self: writers.Writers, job: Any, thread: Any) -> None:
        done(self, job, thread)
        at_work.end(job)

    monkeypatch.setattr(writers.Writers, "_begin", begun)
    monkeypatch.setattr(writers.Writers, "done", is_done)
