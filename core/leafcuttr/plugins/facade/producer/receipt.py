"""What the sender of a record gets: the record's outcome, once there is one, and the tasks that wait for it.

There is one for each record, so it has no event: a task that awaits it is parked in it.
"""

from collections.abc import Callable, Generator
from typing import Any, Protocol

import trio

from leafcuttr.errors import BrokerError
from leafcuttr.plugins.facade.producer.unread import UnreadFailures
from leafcuttr_sdk.records import Produced

_Task = trio.lowlevel.Task


class RecordFailure:
    """Why a record was not stored; counted if nobody has read it when it is dropped, with its receipt."""

    __slots__ = ("_topic", "_unread", "error", "is_read")

    def __init__(self, error: BrokerError, topic: str, unread: UnreadFailures) -> None:
        self.error = error
        self.is_read = False
        self._topic = topic
        self._unread = unread

    def __del__(self) -> None:
        if not self.is_read:
            self._unread.count(self._topic, self.error)


Outcome = Produced | RecordFailure


class ReceiptOwner(Protocol):
    """The producer, for the receipts of what is not written yet."""

    first: "RecordReceipt | None"
    """The first that the next write will settle."""

    def lead(self) -> None:
        """The task that awaits the first one does the write, at the end of its turn."""
        ...


class RecordReceipt:
    """See `leafcuttr_sdk.Receipt`."""

    __slots__ = ("_outcome", "_owner", "_parked")

    def __init__(self, owner: ReceiptOwner) -> None:
        self._owner: ReceiptOwner | None = owner
        self._outcome: Outcome | None = None
        self._parked: _Task | list[_Task] | None = None

    @property
    def done(self) -> bool:
        return self._outcome is not None

    def result(self) -> Produced:
        """Raises BrokerError, trio.WouldBlock."""
        outcome = self._outcome
        if isinstance(outcome, Produced):
            return outcome
        if outcome is None:
            raise trio.WouldBlock
        outcome.is_read = True
        # Records that were refused together have one error, which does not keep what it was raised through before.
        raise outcome.error.with_traceback(None)

    def __await__(self) -> Generator[Any, Any, Produced]:
        return self._wait().__await__()

    async def _wait(self) -> Produced:
        owner = self._owner
        if owner is None:
            await trio.lowlevel.checkpoint()
        else:
            if owner.first is self:
                await trio.lowlevel.checkpoint()
                if owner.first is self:
                    owner.lead()
            if self._outcome is None:
                await self._park()
        return self.result()

    async def _park(self) -> None:
        task = trio.lowlevel.current_task()
        parked = self._parked
        if parked is None:
            self._parked = task
        elif isinstance(parked, list):
            parked.append(task)
        else:
            self._parked = [parked, task]
        await trio.lowlevel.wait_task_rescheduled(self._abort_of(task))

    def _abort_of(self, task: _Task) -> Callable[[object], trio.lowlevel.Abort]:
        def abort(_: object) -> trio.lowlevel.Abort:
            if isinstance(self._parked, list):
                self._parked.remove(task)
            else:
                self._parked = None
            return trio.lowlevel.Abort.SUCCEEDED

        return abort

    def settle(self, outcome: Outcome) -> None:
        """It is done; who waits goes on."""
        self._outcome = outcome
        self._owner = None
        parked, self._parked = self._parked, None
        if parked is None:
            return
        if isinstance(parked, list):
            for task in parked:
                trio.lowlevel.reschedule(task)
        else:
            trio.lowlevel.reschedule(parked)
