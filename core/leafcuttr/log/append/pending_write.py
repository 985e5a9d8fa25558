"""A write of a log, done already or to be waited for: `Log.write` returns it.

Callers whose batches are written together share one, so each of them checks with `failure_of` whether its own are in
the log.
"""

from collections.abc import Callable
from typing import Final

import trio

from leafcuttr.log.append.staged import Staged, WriteError


class PendingWrite:
    """Once `published`, `failure` says what of it is not in the log, if anything; once `done`, the dead letters of what
    was published are written too, or lost."""

    __slots__ = ("_on_done", "_on_published", "done", "failure", "published")

    def __init__(self) -> None:
        self.published = self.done = False
        self.failure: WriteError | None = None
        self._on_published: list[Callable[[], None]] = []
        self._on_done: list[Callable[[], None]] = []

    def when_done(self, call: Callable[[], None]) -> None:
        """Have it called once this is done; it may not touch the log. Not when it is done already."""
        self._on_done.append(call)

    async def wait(self) -> None:
        """Wait until it is done; not to be cancelled, for the views of what is written stay in use."""
        with trio.CancelScope(shield=True):
            if self.done:
                await trio.lowlevel.cancel_shielded_checkpoint()
            else:
                done = trio.Event()
                self.when_done(done.set)
                await done.wait()

    async def wait_until_published(self) -> None:
        """As `wait`, but not for dead letters: for the task that writes them alone."""
        with trio.CancelScope(shield=True):
            if self.published:
                await trio.lowlevel.cancel_shielded_checkpoint()
            else:
                published = trio.Event()
                self._on_published.append(published.set)
                await published.wait()

    def failure_of(self, staged: Staged) -> WriteError | None:
        """Why what was staged is not in the log, if it is not. Once published."""
        failure = self.failure
        if failure is None or staged.base_offset < failure.written_to:
            return None
        return failure.again()

    async def confirm(self, staged: Staged) -> None:
        """Wait for it, if it is not done. Raises WriteError if what was staged is not in the log."""
        if not self.done:
            await self.wait()
        failure = self.failure_of(staged)
        if failure is not None:
            raise failure

    # For the writer

    def publish(self, failure: WriteError | None = None) -> None:
        self.published, self.failure = True, failure
        calls, self._on_published = self._on_published, []
        for call in calls:
            call()

    def finish(self, failure: WriteError | None = None) -> None:
        """It is done, and published if it was not yet."""
        if not self.published:
            self.publish(failure)
        self.done = True
        calls, self._on_done = self._on_done, []
        for call in calls:
            call()


def _done() -> PendingWrite:
    write = PendingWrite()
    write.published = write.done = True
    return write


DONE: Final = _done()
"""Of a write that was over, and had not failed, when `Log.write` returned."""


def failed(failure: WriteError) -> PendingWrite:
    """One that was over, and had failed."""
    write = PendingWrite()
    write.finish(failure)
    return write
