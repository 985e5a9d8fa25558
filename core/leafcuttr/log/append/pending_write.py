"""What becomes of a write that a worker thread does: to be awaited, or to be called back on."""

from collections.abc import Callable

import trio

from leafcuttr.log.append.staged import WriteError


class Ticket:
    """The fate shared by all that goes with one flight. Once `landed`, `failure` says what of it is not there, if
    anything; once `finished`, the dead letters of what is there are written too, or lost."""

    __slots__ = ("_calls", "_on_landing", "failure", "finished", "landed")

    def __init__(self) -> None:
        self.landed = self.finished = False
        self.failure: WriteError | None = None
        self._calls: list[Callable[[], None]] = []
        self._on_landing: list[Callable[[], None]] = []

    def when_finished(self, call: Callable[[], None]) -> None:
        """Have it called once the fate is known; it may not touch the log. Not when that is so already."""
        self._calls.append(call)

    async def wait(self) -> None:
        """Wait for that; not to be cancelled, for the views of what is written stay in use."""
        with trio.CancelScope(shield=True):
            if self.finished:
                await trio.lowlevel.cancel_shielded_checkpoint()
            else:
                finished = trio.Event()
                self.when_finished(finished.set)
                await finished.wait()

    async def wait_for_landing(self) -> None:
        """As `wait`, but not for dead letters: for whoever writes them, and for nobody else."""
        with trio.CancelScope(shield=True):
            if self.landed:
                await trio.lowlevel.cancel_shielded_checkpoint()
            else:
                landed = trio.Event()
                self._on_landing.append(landed.set)
                await landed.wait()

    def land(self, failure: WriteError | None = None) -> None:
        self.landed, self.failure = True, failure
        calls, self._on_landing = self._on_landing, []
        for call in calls:
            call()

    def finish(self, failure: WriteError | None = None) -> None:
        if not self.landed:
            self.land(failure)
        self.finished = True
        calls, self._calls = self._calls, []
        for call in calls:
            call()
