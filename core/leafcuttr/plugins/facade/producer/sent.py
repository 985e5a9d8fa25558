"""The records of one topic that were sent and will be written together, and what is appended in one call."""

from collections.abc import Iterable, Iterator

import trio

from leafcuttr.log.appender import AppendCall
from leafcuttr.plugins.facade.producer.receipt import RecordReceipt
from leafcuttr.plugins.facade.producing import RecordBatches
from leafcuttr_sdk.principals import Principal
from leafcuttr_sdk.records import Record


class SentRecords:
    """Records with their receipts, in the order in which they were sent.

    `partitions` and `principals` have one for each record, once one of them has another than None, or than the first
    record's `principal`.
    """

    __slots__ = (
        "_done",
        "bytes",
        "is_creating",
        "is_finished",
        "partitions",
        "principal",
        "principals",
        "receipts",
        "records",
        "topic",
    )

    def __init__(self, topic: str, principal: Principal | None) -> None:
        self.topic = topic
        self.principal = principal
        self.principals: list[Principal | None] | None = None
        self.partitions: list[int | None] | None = None
        self.records: list[Record] = []
        self.receipts: list[RecordReceipt] = []
        self.bytes = 0
        self.is_creating = False  # its topic does not exist yet
        self.is_finished = False
        self._done: trio.Event | None = None

    def note(self, partition: int | None, principal: Principal | None) -> None:
        """Of the record that was added last, if either is not as for all before it."""
        before = len(self.records) - 1
        if self.partitions is not None:
            self.partitions.append(partition)
        elif partition is not None:
            self.partitions = [*[None] * before, partition]
        if self.principals is not None:
            self.principals.append(principal)
        elif principal is not self.principal:
            self.principals = [*[self.principal] * before, principal]

    def by_principal(self) -> "Iterable[SentRecords]":
        """The same, in their order, as those that were sent for one principal each. The bytes, and those who wait for
        all of it, are with the last one, which is finished last."""
        if self.principals is None:
            return (self,)
        found: list[SentRecords] = []
        for start, end in _runs(self.principals):
            run = SentRecords(self.topic, self.principals[start])
            run.records, run.receipts = self.records[start:end], self.receipts[start:end]
            run.partitions = None if self.partitions is None else self.partitions[start:end]
            found.append(run)
        found[-1].bytes, found[-1]._done = self.bytes, self._event()
        return found

    def finish(self) -> None:
        """All of it is settled."""
        self.is_finished = True
        if self._done is not None:
            self._done.set()

    async def wait(self) -> None:
        """Until it is finished."""
        if not self.is_finished:
            await self._event().wait()

    def _event(self) -> trio.Event:
        if self._done is None:
            self._done = trio.Event()
        return self._done


class JointAppend:
    """What is appended in one call, for one principal. `call` is it once it has begun."""

    __slots__ = ("batches", "call", "groups", "principal")

    def __init__(self, principal: Principal | None) -> None:
        self.principal = principal
        self.groups: list[SentRecords] = []
        self.batches: list[RecordBatches] = []  # one for each of the groups
        self.call: AppendCall | None = None


def _runs(principals: list[Principal | None]) -> Iterator[tuple[int, int]]:
    """Where equal ones that follow each other begin and end."""
    start = 0
    for number, principal in enumerate(principals):
        if principal != principals[start]:
            yield start, number
            start = number
    yield start, len(principals)
