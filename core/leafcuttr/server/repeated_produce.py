"""The same Produce again: a short way for producers that send small batches to one partition.

Successive requests of a producer to one partition are the same bytes but for the correlation id, the records and
their length; their answers differ in the correlation id and three numbers. `RepeatedProduce` has learned one such
request of its connection. Frames that repeat it, one behind the other in what was received at once, go straight to
`Log.stage`, are written together, and their answers are put together from the bytes around the numbers; everything
else is for the general way, `handlers.produce`, which remains the one place where a request is judged.

What has to hold:

- Only a frame in the one canonical form is learned (read and written again it is the same bytes), so that one which
  agrees with it in every byte but those named above is read as the same request with other records.
- The learned request is forgotten as soon as anything that it was judged by changes: `_Learned.holds` is the one place
  that says what that is. What the general way comes to check for every request (a right, a quota) belongs there, or has
  to keep the request from being learned. Offsets and producers are the log's, which checks them each time. Nothing of
  the transport is remembered.
- Requests are taken in the order in which they arrived, and none behind one that is not taken.
- Whatever `Log.stage` raises, the general way will find again, and answer; nothing of that request is staged then. What
  cannot be written at once, or fails to be, is handed to the connection's `Turn`, which waits for it or answers the
  failure.
- Not learned: acks=0, a transactional id, more than one partition, an internal topic, what a client with a quota sends,
  anything where the audit log has all that is allowed. Never taken: a batch that is transactional or of control
  records, a frame above LARGEST, or one that `queued.max.request.bytes` counts, one for a topic with record filters or
  produce validators.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from leafcuttr.handlers.access import WRITE_TOPIC, client_may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.produce import Turn
from leafcuttr.handlers.produce_answers import succeeded
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import Staged
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.state.topics import Partition
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.batch import ATTRIBUTES_AT, CONTROL, HEADER_SIZE, TRANSACTIONAL
from leafcuttr.wire.codec import writer
from leafcuttr.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from leafcuttr.wire.primitives import write_unsigned_varint

LARGEST: Final = 20 * 1024
"""What is repeated at most: the batch of 16 KB that Kafka's producer sends by its defaults, with what is around it.
Larger ones are few for a gigabyte, and their records cost more than what is saved here."""

_OLDEST: Final = 7  # before it some codecs are refused, which only the general way knows
_FLEXIBLE: Final = 9
_TOPIC_IDS: Final = 13
_UNUSUAL: Final = TRANSACTIONAL | CONTROL
# Requests that are taken together: a millisecond of work, after which other connections have their turn.
_TOGETHER: Final = 128
_LEARN_AFTER: Final = 2  # requests of a connection before one is learned,
_LEARN_EVERY: Final = 64  # and before the next is, if that one does not come again

# Base offset, append time and log start offset stand together in every version from _OLDEST on.
_NUMBERS: Final = struct.Struct(">qqq")
_CLIENT: Final = Origin.CLIENT
_MARKS: Final = (-0x7E7D7C7B7A797877, -0x6E6D6C6B6A696867, -0x5E5D5C5B5A595857)


class RepeatedProduce:
    """What one connection has learned of its Produce requests, and the state of the one that repeats it just now."""

    __slots__ = (
        "_broker",
        "_context",
        "_largest",
        "_learned",
        "_until_learning",
        "count",
        "log",
        "pending",
        "turn",
    )

    def __init__(
        self, broker: Broker, context: RequestContext, turn: Turn, *, counted_from: int | None
    ) -> None:
        """Only the general way counts frames above `counted_from` against their limit. None: there is no limit."""
        self._broker = broker
        self._context = context
        self._learned: _Learned | None = None
        self._until_learning = _LEARN_AFTER
        self._largest = LARGEST if counted_from is None else counted_from
        self.turn = turn
        self.log: Log | None = None
        """That of what was staged last."""
        self.count = 0
        """Of the requests that were staged last."""
        self.pending: PendingWrite | None = None
        """What is staged is being written by a worker, or has been, and is not answered."""

    def stage(self, view: memoryview, at: int, end: int, now_ms: int) -> int:
        """Stage the requests that repeat the learned one, from `at` on in what was received, which ends at `end`.
        Returns where what is left begins: `at` if nothing is staged. They must stay as they are until they are written.
        """
        learned = self._learned
        if learned is None:
            return at
        if not learned.holds(self._broker, self._context):
            self._learned, self._until_learning = None, _LEARN_AFTER
            return at
        staged: list[tuple[int, Staged]] = []
        while size := learned.stage(view, at, end, self._largest, now_ms, staged):
            at += size
            # Most often there is one, and nothing behind it.
            if at == end or len(staged) == _TOGETHER:
                break
        if staged:
            learned.staged, self.count, self.log = staged, len(staged), learned.log
        return at

    def due(self, size: int) -> bool:
        """Whether the request at hand, of `size` bytes, which goes the general way, should be learned."""
        self._until_learning -= 1
        if self._until_learning > 0 or size > self._largest:
            return False
        self._until_learning = _LEARN_EVERY
        return True

    def learn(self, route: Any, frame: memoryview, body_at: int, request: ProduceRequest) -> None:
        """Learn the request that was read from `body_at` on in `frame`, if it may be repeated."""
        self._learned = _learn(self._broker, self._context, route, frame, body_at, request) or self._learned

    def answer(self) -> bytes:
        """The answers to what was staged last, once it is written."""
        assert self._learned is not None
        return self._learned.answer()

    def written(self, write: PendingWrite) -> None:
        """What becomes of the write of what was staged last: `pending`, or failed, which the turn answers, or done."""
        if not write.done:
            self.pending = write
        elif write.failure is not None:
            self.hand_to_turn(write)

    def hand_to_turn(self, write: PendingWrite) -> None:
        """Let the general way answer what was staged last, and wait for it if need be."""
        self.pending = None
        assert self._learned is not None
        self._learned.hand_to(self.turn, write)


class _Learned:
    """One learned request."""

    __slots__ = (
        "_answer",
        "_answer_size",
        "_around",
        "_authorizer",
        "_changes",
        "_client",
        "_head",
        "_head_size",
        "_key_and_version",
        "_length",
        "_name",
        "_partition",
        "_prefix",
        "_records",
        "_records_at",
        "_rights",
        "_route",
        "_tags",
        "_topics",
        "log",
        "staged",
    )

    def __init__(
        self,
        broker: Broker,
        context: RequestContext,
        route: Any,
        frame: memoryview,
        name: str | bytes,
        partition: Partition,
        records: int,
    ) -> None:
        """`frame` begins with its size, is in canonical form and carries `records` bytes of records."""
        flexible = route.version >= _FLEXIBLE
        self._changes = broker.metadata.changes
        self._authorizer = broker.authorizer
        self._rights = 0 if broker.authorizer is None else broker.authorizer.version
        self._client = context.client
        self._topics: Any = broker.topics.by_id if route.version >= _TOPIC_IDS else broker.topics.by_name
        self._name = name
        self._partition = partition
        self._route = route
        self._tags = b"\0\0\0" if flexible else b""  # of partition, topic and request
        self._records_at = len(frame) - len(self._tags) - records
        self._records = records
        self._length = _length(records, flexible)
        before = self._records_at - len(self._length)
        self._key_and_version = bytes(frame[4:8])
        self._prefix = bytes(frame[12:before])
        # Size, key and version, correlation id, what does not change, length of the records; attributes.
        head = struct.Struct(f">i4si{before - 12}s{len(self._length)}s{ATTRIBUTES_AT}xh")
        self._head, self._head_size = head.unpack_from, head.size
        self._answer, self._answer_size, self._around = _answer_of(route, name, partition.index)
        self.log = partition.log
        self.staged: list[tuple[int, Staged]] = []
        """With the correlation id of each, in order."""

    def holds(self, broker: Broker, context: RequestContext) -> bool:
        """Whether all that the learned request was judged by is as it was: the client, which has no quota, and all
        topics, settings and ACLs, every change of which is counted. A worker thread counts it before the loop learns of
        it, so the topic, the chain of its log and the version of the authorizer are compared besides; the log of a
        partition is never another one. A log with a chain must not show it twice what it refuses."""
        return (
            context.limits is None
            and context.client is self._client
            and broker.metadata.changes == self._changes
            and self._topics.get(self._name) is self._partition.topic
            and self.log.chain is None
            and (self._authorizer is None or self._authorizer.version == self._rights)
        )

    def stage(
        self,
        view: memoryview,
        at: int,
        end: int,
        largest: int,
        now_ms: int,
        staged: list[tuple[int, Staged]],
    ) -> int:
        """Stage the frame at `at`, if it is whole and the learned request with other records, and note it in `staged`.
        Returns its size; 0 if it is not staged."""
        have = end - at
        if have < self._head_size:
            return 0
        claimed, key_and_version, correlation_id, prefix, length, attributes = self._head(view, at)
        size: int = claimed + 4
        tags = self._tags
        records_at, records_end = self._records_at, size - len(tags)
        records = records_end - records_at
        if size > have or size > largest or records < HEADER_SIZE:
            return 0
        if records != self._records:
            self._records, self._length = records, _length(records, bool(tags))
        if (
            prefix != self._prefix
            or key_and_version != self._key_and_version
            or length != self._length
            or attributes & _UNUSUAL
            or (tags and view[at + records_end : at + size] != tags)
        ):
            return 0
        try:
            one = self.log.stage(view[at + records_at : at + records_end], _CLIENT, now_ms=now_ms)
        except Exception:  # the general way finds it too, and answers it
            return 0
        staged.append((correlation_id, one))
        return size

    def answer(self) -> bytes:
        """The answers to all that is staged, in order."""
        pack, size, log = self._answer, self._answer_size, self.log
        before, after = self._around
        start = log.log_start_offset
        answers: list[bytes] = []
        for correlation_id, one in self.staged:
            answers.append(
                pack(size, correlation_id, before, one.base_offset, one.log_append_time, start, after)
            )
        return answers[0] if len(answers) == 1 else b"".join(answers)

    def hand_to(self, turn: Turn, write: PendingWrite) -> None:
        for correlation_id, staged in self.staged:
            part = succeeded(self._partition.index, staged, self.log.log_start_offset)
            turn.adopt(correlation_id, self._route, _topic_answer(self._name, part), self.log)
        turn.write({self.log: write})


def _learn(
    broker: Broker,
    context: RequestContext,
    route: Any,
    frame: memoryview,
    body_at: int,
    request: ProduceRequest,
) -> _Learned | None:
    """What is learned of a request; None if it must not be repeated."""
    if route.version < _OLDEST or context.limits is not None:
        return None
    if broker.audit is not None and broker.audit.every:
        return None
    if request.transactional_id is not None or request.acks not in (-1, 1):
        return None
    if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
        return None
    data = request.topic_data[0]
    item = data.partition_data[0]
    topics = broker.topics
    topic = topics.by_id.get(data.topic_id) if route.version >= _TOPIC_IDS else topics.by_name.get(data.name)
    if topic is None or topic.internal or item.records is None or not 0 <= item.index < len(topic.partitions):
        return None
    if not client_may(broker, context.client, ApiKey.PRODUCE, WRITE_TOPIC, topic.name, quietly=True):
        return None
    partition = topic.partitions[item.index]
    if partition.log.chain is not None:
        return None
    canonical = bytearray()
    writer(ProduceRequest, route.version)(request, canonical, [])
    if canonical != frame[body_at:]:
        return None
    name = topic.id if route.version >= _TOPIC_IDS else topic.name
    return _Learned(broker, context, route, frame, name, partition, len(item.records))


class Repeating(Protocol):
    """A connection that has just staged repeated requests."""

    @property
    def repeated(self) -> RepeatedProduce: ...


def write_repeated(connections: Iterable[Repeating]) -> None:
    """Write what they have staged, with one write for each log. Afterwards a connection may send its answer, or has
    something `pending` to wait for, or its turn has something in it: then the general way goes on with it."""
    writes: dict[Log, PendingWrite] = {}
    for connection in connections:
        repeated = connection.repeated
        log = repeated.log
        assert log is not None
        write = writes.get(log)
        if write is None:
            write = writes[log] = log.write()
        repeated.written(write)


def _length(records: int, flexible: bool) -> bytes:
    if not flexible:
        return records.to_bytes(4, "big")
    out = bytearray()
    write_unsigned_varint(out, records + 1)
    return bytes(out)


def _topic_answer(name: str | bytes, part: PartitionProduceResponse) -> TopicProduceResponse:
    if isinstance(name, bytes):
        return TopicProduceResponse(topic_id=name, partition_responses=[part])
    return TopicProduceResponse(name=name, partition_responses=[part])


def _answer_of(
    route: Any, name: str | bytes, index: int
) -> tuple[Callable[..., bytes], bytes, tuple[bytes, bytes]]:
    """How an answer is packed, its size, and what stands around its three numbers: from one that was written with
    numbers that stand out."""
    base, append_time, start = _MARKS
    part = succeeded(index, Staged(base, base, append_time), start)
    frame, _ = route.frame(0, ProduceResponse(responses=[_topic_answer(name, part)]))
    data = bytes(frame)
    at = data.index(_NUMBERS.pack(*_MARKS))
    before, after = data[8:at], data[at + _NUMBERS.size :]
    return struct.Struct(f">4si{len(before)}sqqq{len(after)}s").pack, data[:4], (before, after)
