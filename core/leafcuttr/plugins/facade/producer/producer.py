"""What the plugin calls, and the task that writes.

A turn of a producer without a linger: the first `send` wakes the writer, which runs in the next turn of the loop, and
writes everything that was sent meanwhile. So does a task that awaits the first receipt of a turn, or flushes: it is
there in that turn anyway, and goes on in it, one turn before the writer could have woken it. Few records are encoded
and appended in one step (`_begin_write`). Many, and what needs a worker thread, the writer sees to, in short turns;
what is sent until that is done gathers for the next write.

A topic that has to be created first keeps its records waiting, and no others.

Longer than other modules because what plugins call and the writer change the same few fields in turn: where one leaves
them, the other goes on.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr.errors import BrokerError, RequestTimedOut
from leafcuttr.log.append.staged import Staged
from leafcuttr.plugins.facade.producer.receipt import RecordFailure, RecordReceipt
from leafcuttr.plugins.facade.producer.sent import JointAppend, SentRecords
from leafcuttr.plugins.facade.producing import Producing
from leafcuttr.runtime.pacing import Pace
from leafcuttr.runtime.unexpected import as_refusal
from leafcuttr.state.broker import Broker
from leafcuttr_sdk.principals import Principal, act_for, current_principal
from leafcuttr_sdk.producer import RECORD_BYTES, ProducerFullError

if TYPE_CHECKING:
    from leafcuttr.plugins.facade.producer.unread import UnreadFailures
    from leafcuttr_sdk.records import Produced, Record

_AT_ONCE: Final = 500
_AT_ONCE_BYTES: Final = 512 * 1024
_AT_ONCE_TOPICS: Final = 50
"""So much is encoded and appended in one step of the loop: a millisecond or two."""
_SLICE: Final = 200
"""Receipts that are settled between two readings of the clock."""
END_S: Final = 3.0
"""How long a producer whose context is cancelled may take to write what was sent: less than a service may take to
end."""


class RecordProducer:
    """See `leafcuttr_sdk.Producer`."""

    def __init__(
        self, core: Broker, producing: Producing, unread: "UnreadFailures", max_bytes: int, linger_s: float
    ) -> None:
        self._core = core
        self._producing = producing
        self._unread = unread
        self._max_bytes = max_bytes
        self._linger_s = linger_s
        self._gathered: dict[str, SentRecords] = {}  # by topic: what the next write takes
        self._count = 0  # its records
        self._bytes = 0
        self._since = 0.0  # when the first of them was sent
        self._creating: dict[
            str, list[SentRecords]
        ] = {}  # by topic: what waits for it, in the order of the sends
        self._created: list[SentRecords] = []  # what has waited: the next write takes it before all others
        self._unfinished: dict[SentRecords, None] = {}
        # For the writer, who sees to one write at a time.
        self._busy = False
        self._taken: list[SentRecords] = []
        self._under_way: list[JointAppend] = []
        self._hurried = False
        self._parked: trio.lowlevel.Task | None = None  # the writer, while there is nothing for it
        self._room = trio.lowlevel.ParkingLot()
        self._is_full = False  # and a task waits for space
        self._nursery: trio.Nursery | None = None
        self._scope = trio.CancelScope(shield=True)
        self._closed = False
        self.held_bytes = 0
        self.first: RecordReceipt | None = None
        """The receipt of the first record that was sent for the next write: a task that awaits it does that write."""

    # --- what plugins call ----------------------------------------------------------------------------------

    def send(self, topic: str, record: "Record", *, partition: int | None = None) -> RecordReceipt:
        """Raises ProducerFullError, TypeError, trio.ClosedResourceError."""
        if self.held_bytes >= self._max_bytes or self._closed:
            self._refuse_all()
        fields: Any = record
        value, key, headers, timestamp = fields
        size = RECORD_BYTES
        if value is not None:
            size += len(value) if isinstance(value, bytes) else _refuse_type("value", value)
        if key is not None:
            size += len(key) if isinstance(key, bytes) else _refuse_type("key", key)
        if headers:
            size += _size_of(headers)
        if timestamp is not None and not isinstance(timestamp, int):
            _refuse_type("timestamp", timestamp)
        chosen: Any = partition
        if chosen is not None and not isinstance(chosen, int):
            _refuse_type("partition", chosen)
        principal = current_principal()
        gathered = self._gathered.get(topic)
        if gathered is None:
            gathered = self._gather(topic, principal)
        receipt = RecordReceipt(self)
        gathered.records.append(record)
        gathered.receipts.append(receipt)
        gathered.bytes += size
        if (
            partition is not None
            or principal is not gathered.principal
            or gathered.partitions is not None
            or gathered.principals is not None
        ):
            gathered.note(partition, principal)
        self.held_bytes += size
        if not gathered.is_creating:
            self._count += 1
            self._bytes += size
            if self._count == 1:
                self._first_sent(receipt)
            if self._linger_s and self._bytes * 2 >= self._max_bytes:
                self._hurry()
        return receipt

    async def flush(self) -> None:
        """See `leafcuttr_sdk.Producer.flush`."""
        await trio.lowlevel.checkpoint()
        if not self._busy:
            self._begin_write()
        elif self._count:
            self._hurried = True
        for gathered in [*self._unfinished]:
            await gathered.wait()

    async def room(self) -> None:
        """Raises trio.ClosedResourceError."""
        if self.held_bytes < self._max_bytes or self._closed:
            await trio.lowlevel.checkpoint()
        while self.held_bytes >= self._max_bytes and not self._closed:
            self._is_full = True
            self._hurry()
            await self._room.park()
        if self._closed:
            raise trio.ClosedResourceError("The producer is closed.")

    def lead(self) -> None:
        """The task that awaits the first receipt has waited for the end of the turn."""
        if not self._busy:
            self._begin_write()

    # --- gathering ------------------------------------------------------------------------------------------

    def _gather(self, topic: str, principal: Principal | None) -> SentRecords:
        waiting = self._creating.get(topic)
        if waiting is not None:
            return waiting[-1]
        name: object = topic
        if not isinstance(name, str):
            raise TypeError(f"The name of a topic cannot be of type {type(name).__name__}.")
        gathered = self._gathered[topic] = SentRecords(topic, principal)
        self._unfinished[gathered] = None
        return gathered

    def _first_sent(self, receipt: RecordReceipt) -> None:
        if self._linger_s:
            self._since = trio.current_time()
        else:
            self.first = receipt
        self._wake()

    def _refuse_all(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("The producer is closed.")
        self._hurry()
        raise ProducerFullError(
            f"The producer holds {self.held_bytes} bytes, its max_bytes are {self._max_bytes}."
        )

    def _hurry(self) -> None:
        if not self._hurried and self._count:
            self._hurried = True
            self._wake()

    def _wake(self) -> None:
        task, self._parked = self._parked, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    # --- writing --------------------------------------------------------------------------------------------

    @trio.lowlevel.enable_ki_protection
    def _begin_write(self) -> None:
        """Write what was sent; what takes long is left to the writer."""
        taken, count = [*self._created, *self._gathered.values()], self._count
        few = count <= _AT_ONCE and self._bytes <= _AT_ONCE_BYTES and len(taken) <= _AT_ONCE_TOPICS
        self._gathered, self._count, self._bytes, self.first, self._hurried = {}, 0, 0, None, False
        self._created = []
        if len(taken) == 1 == count and self._write_one(taken[0]):
            return
        if few:
            appends: list[JointAppend] = []
            for gathered in taken:
                self._add(appends, gathered)
            if not appends or (len(appends) == 1 and self._write_at_once(appends[0])):
                return
            self._under_way = appends
        else:
            self._taken = taken
        self._busy = True
        self._wake()

    def _write_one(self, gathered: SentRecords) -> bool:
        """A short cut for the record of a task that is alone. Whether it was taken."""
        if gathered.topic in self._creating:
            return False
        producing = self._producing
        try:
            topic = producing.existing(gathered.topic)
            begun = None
            if topic is not None and gathered.partitions is None:
                begun = producing.begin_one(topic, gathered.records[0])
        except BrokerError:
            return False
        except Exception as error:
            self._failed((gathered,), error)
            return True
        if topic is None or begun is None:
            return False
        made, call = begun
        if call.done and isinstance(outcome := call.results[0], Staged):
            gathered.receipts[0].settle(made.produced(topic.name, outcome, 0))
            self._finish(gathered)
            return True
        append = JointAppend(gathered.principal)
        append.groups.append(gathered)
        append.batches.append(producing.batches_of_one(topic, gathered.records, made))
        append.call = call
        self._under_way, self._busy = [append], True
        self._wake()
        return True

    def _write_at_once(self, append: JointAppend) -> bool:
        """Whether all of it is done."""
        producing, before = self._producing, current_principal()
        if append.principal is not before:
            act_for(append.principal)
        try:
            call = append.call = producing.begin(append.batches)
            if call is None or not call.done:
                return False
            producing.answer_at_once(append.batches, call)
            for group, batches in zip(append.groups, append.batches, strict=True):
                self._settle(group.topic, group.receipts, batches.answers())
                self._finish(group)
        except Exception as error:
            self._failed(append.groups, error)
        finally:
            if append.principal is not before:
                act_for(before)
        return True

    def _add(self, appends: list[JointAppend], gathered: SentRecords) -> None:
        """Have it appended, if its topic exists."""
        try:
            topic = self._producing.existing(gathered.topic)
        except BrokerError as error:
            assert self._nursery is not None
            self._nursery.start_soon(self._refuse_in_turns, gathered, error.with_traceback(None))
            return
        # Also one that is there by now: what was sent before still waits for it.
        if topic is None or gathered.topic in self._creating:
            self._create(gathered)
            return
        # Where nothing sees the principal, it does not matter for whom it is written.
        seen = topic.partitions[0].log.chain is not None
        if seen and gathered.principals is not None:
            groups = gathered.by_principal()
            del self._unfinished[gathered]
            self._unfinished.update(dict.fromkeys(groups))
        else:
            groups = (gathered,)
        for group in groups:
            if appends and not (seen and appends[-1].principal != group.principal):
                append = appends[-1]
            else:
                append = JointAppend(group.principal)
                appends.append(append)
            append.groups.append(group)
            append.batches.append(self._producing.batches(topic, group.records, group.partitions))

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """The writer."""
        with self._scope:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                task = trio.lowlevel.current_task()
                while True:
                    if self._busy:
                        await self._work_off()
                    elif not self._count:
                        self._parked = task
                        await trio.lowlevel.wait_task_rescheduled(self._no_wait)
                    elif (left_s := self._left_of_linger()) > 0:
                        with trio.move_on_after(left_s):
                            self._parked = task
                            await trio.lowlevel.wait_task_rescheduled(self._no_wait)
                    else:
                        self._begin_write()

    def _left_of_linger(self) -> float:
        if not self._linger_s or self._hurried:
            return 0.0
        return self._since + self._linger_s - trio.current_time()

    def _no_wait(self, _: object) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def _work_off(self) -> None:
        pace = Pace()
        for gathered in self._taken:
            await pace.turn()
            self._add(self._under_way, gathered)
        for append in self._under_way:
            act_for(append.principal)
            try:
                if append.call is None:
                    await self._producing.write(append.batches)
                else:
                    await self._producing.complete(append.batches, append.call)
                await self._settle_all(append)
            except Exception as error:
                self._failed(append.groups, error)
        self._taken, self._under_way, self._busy = [], [], False

    async def _settle_all(self, append: JointAppend) -> None:
        pace = Pace()
        for group, batches in zip(append.groups, append.batches, strict=True):
            answers = batches.answers()
            for at in range(0, len(answers), _SLICE):
                await pace.turn()
                to = at + _SLICE
                self._settle(group.topic, group.receipts[at:to], answers[at:to])
            self._finish(group)

    def _settle(
        self, topic: str, receipts: list[RecordReceipt], answers: "list[Produced | BrokerError]"
    ) -> None:
        for receipt, answer in zip(receipts, answers, strict=True):
            if isinstance(answer, BrokerError):
                receipt.settle(RecordFailure(answer, topic, self._unread))
            else:
                receipt.settle(answer)

    def _failed(self, groups: Iterable[SentRecords], error: Exception) -> None:
        """An unexpected error is that of all records of the call that have no answer."""
        refusal = as_refusal(self._core.runtime.complaints, error, "writing the records of a producer")
        for group in groups:
            self._refuse(group, refusal)

    def _refuse(self, gathered: SentRecords, error: BrokerError) -> None:
        for receipt in gathered.receipts:
            if not receipt.done:
                receipt.settle(RecordFailure(error, gathered.topic, self._unread))
        self._finish(gathered)

    async def _refuse_in_turns(self, gathered: SentRecords, error: BrokerError) -> None:
        receipts, pace = gathered.receipts, Pace()
        for at in range(0, len(receipts), _SLICE):
            await pace.turn()
            these = receipts[at : at + _SLICE]
            self._settle(gathered.topic, these, [error] * len(these))
        self._finish(gathered)

    def _finish(self, gathered: SentRecords) -> None:
        if gathered not in self._unfinished:
            return
        del self._unfinished[gathered]
        self.held_bytes -= gathered.bytes
        gathered.finish()
        if self._is_full and self.held_bytes < self._max_bytes:
            self._is_full = False
            self._room.unpark_all()

    # --- topics that are created ----------------------------------------------------------------------------

    def _create(self, gathered: SentRecords) -> None:
        assert self._nursery is not None
        if not self._creating:
            self._nursery.start_soon(self._create_topics)
        gathered.is_creating = True
        self._creating.setdefault(gathered.topic, []).append(gathered)

    async def _create_topics(self) -> None:
        while self._creating:
            name = next(iter(self._creating))
            refusal: BrokerError | None = None
            try:
                await self._producing.ensured(name)
            except BrokerError as error:
                refusal = error.with_traceback(None)
            except Exception as error:
                refusal = as_refusal(self._core.runtime.complaints, error, f"creating topic {name}")
            for gathered in self._creating.pop(name):
                if refusal is not None:
                    await self._refuse_in_turns(gathered, refusal)
                    continue
                gathered.is_creating = False
                self._created.append(gathered)
                self._count += len(gathered.records)
                self._bytes += gathered.bytes
            self._hurry()  # they have waited long enough

    # --- its end --------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Write what was sent. Cancelled: the same, but for no longer than `END_S`."""
        self._closed = True
        self._room.unpark_all()
        try:
            await self.flush()
        finally:
            if self._unfinished:
                with trio.move_on_after(END_S, shield=True):
                    await self.flush()
            self._scope.cancel()
            self._abandon()

    def _abandon(self) -> None:
        for gathered in [*self._unfinished]:
            self._refuse(gathered, RequestTimedOut("The producer was closed before the record was written."))


def _refuse_type(what: str, given: object) -> int:
    raise TypeError(f"The {what} of a record cannot be of type {type(given).__name__}.")


def _size_of(headers: Any) -> int:
    size = 0
    for name, value in headers:
        if not isinstance(name, str):
            _refuse_type("header name", name)
        size += len(name)
        if value is not None:
            size += len(value) if isinstance(value, bytes) else _refuse_type("header value", value)
    return size


@asynccontextmanager
async def open_producer(
    core: Broker, producing: Producing, unread: "UnreadFailures", max_bytes: int, linger_s: float
) -> AsyncIterator[RecordProducer]:
    """See `leafcuttr_sdk.Broker.producer`. Raises ValueError."""
    if max_bytes < 1:
        raise ValueError("max_bytes is at least 1.")
    if not 0 <= linger_s < float("inf"):
        raise ValueError("linger_s is at least 0.")
    producer = RecordProducer(core, producing, unread, max_bytes, linger_s)
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        with trio.CancelScope(shield=True):
            await nursery.start(
                producer.run
            )  # cancelled in here, it would wait for the writer, which is shielded
        unread.opened()
        try:
            yield producer
        except Exception as error:
            failure = error  # raised outside the nursery, which would wrap it in a group
        finally:
            try:
                await producer.close()
            finally:
                unread.closed()
    if failure is not None:
        raise failure
