"""The records of one topic that were sent and will be written together, and the parts in which they are written."""

from collections.abc import Iterator
from typing import TypeVar

import trio

from leafcuttr.errors import BrokerError
from leafcuttr.log.appender import AppendCall
from leafcuttr.plugins.facade.producer.receipt import RecordFailure, RecordReceipt
from leafcuttr.plugins.facade.producer.unread import UnreadFailures
from leafcuttr.plugins.facade.producing import RecordBatches
from leafcuttr_sdk.authentication import Principal
from leafcuttr_sdk.records import Produced, Record

T = TypeVar("T")


class Gathered:
    """Records with their receipts, in the order in which they were sent.

    `partitions` and `principals` have one for each record, once one of them has another than None, or than the first
    record's `principal`.
    """

    __slots__ = (
        "_done",
        "_left",
        "bytes",
        "is_creating",
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
        self._left = 0  # parts that are to be settled
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

    def parts(self, *, by_principal: bool) -> "list[Part]":
        """Everything as one part, or, in their order, those that were sent for one principal each."""
        total = len(self.records)
        if self.principals is None or not by_principal:
            parts = [Part(self, 0, total, self.principal)]
        else:
            parts = [Part(self, *run) for run in _runs(self.principals)]
        self._left = len(parts)
        return parts

    def part_settled(self) -> bool:
        """Whether it was the last one."""
        self._left -= 1
        return self._left <= 0

    def finish(self) -> None:
        """All of it is settled."""
        if self._done is not None:
            self._done.set()

    async def wait(self) -> None:
        """Until it is finished."""
        if self._done is None:
            self._done = trio.Event()
        await self._done.wait()


class Part:
    """Records of one topic, from `start` to `end`, all sent for one principal if filters or validators see them."""

    __slots__ = ("batches", "end", "gathered", "principal", "start")

    def __init__(self, gathered: Gathered, start: int, end: int, principal: Principal | None) -> None:
        self.gathered = gathered
        self.start = start
        self.end = end
        self.principal = principal
        self.batches: RecordBatches | None = None

    @property
    def records(self) -> list[Record]:
        return _cut(self.gathered.records, self.start, self.end)

    @property
    def partitions(self) -> list[int | None] | None:
        partitions = self.gathered.partitions
        return None if partitions is None else _cut(partitions, self.start, self.end)

    def answers(self) -> list[Produced | BrokerError]:
        """One for each record, once they are appended."""
        return [] if self.batches is None else self.batches.answers()

    def settle(
        self, answers: list[Produced | BrokerError] | BrokerError, unread: UnreadFailures, at: int, to: int
    ) -> None:
        """What became of the records from `at` to `to`, counted from the first of the part; one error is that of all
        that have none."""
        topic = self.gathered.topic
        receipts = self.gathered.receipts[self.start + at : min(self.start + to, self.end)]
        if isinstance(answers, BrokerError):
            for receipt in receipts:
                if not receipt.done:
                    receipt.settle(RecordFailure(answers, topic, unread))
            return
        for receipt, answer in zip(receipts, answers[at:to], strict=True):
            receipt.settle(
                RecordFailure(answer, topic, unread) if isinstance(answer, BrokerError) else answer
            )


class Segment:
    """Parts that are appended in one call, for one principal. `call` is it once it has begun."""

    __slots__ = ("call", "parts", "principal")

    def __init__(self, principal: Principal | None) -> None:
        self.principal = principal
        self.parts: list[Part] = []
        self.call: AppendCall | None = None

    @property
    def batches(self) -> list[RecordBatches]:
        return [part.batches for part in self.parts if part.batches is not None]


def _runs(principals: list[Principal | None]) -> Iterator[tuple[int, int, Principal | None]]:
    """Where equal ones that follow each other begin and end."""
    start = 0
    for number, principal in enumerate(principals):
        if principal != principals[start]:
            yield start, number, principals[start]
            start = number
    yield start, len(principals), principals[start]


def _cut(items: list[T], start: int, end: int) -> list[T]:
    return items if start == 0 and end == len(items) else items[start:end]
