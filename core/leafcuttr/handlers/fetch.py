"""Fetch, versions 4 to 18: record batches from given offsets, as ranges of the segment files.

Version 4 added the isolation level, 5 the log start offset, 7 sessions (KIP-227), 9 leader epochs (KIP-320), 11 the
rack, 12 is flexible and detects diverging logs (KIP-595), 13 topic ids (KIP-516), 15 moved the replica id into a
tagged field, 16 added node endpoints (KIP-951), 17 directory ids, 18 the high watermark of followers. There are no
followers here: a fetch with a replica id gets an error for each partition, as from a Kafka that does not know that
replica.

Records are never read into this process: the answer names file ranges that the connection sends. An answer waits,
up to `max_wait_ms`, until `min_bytes` are there or some partition has an error. The first partition with records
may exceed every limit by one batch, so that a consumer always gets on (KIP-74). A read_committed fetch ends at the
last stable offset, and gets the aborted transactions in its range, which the client leaves out (KIP-98).

A consumer that has used up its quota gets an answer without records at once, which says how long it has to wait; one
that has not gets no more than what is left of it, or one batch. Kafka answers without records where the records that it
has read are too many, and has to read them again.

Longer than other modules because one request is read, checked, waited for and answered here, partition by partition.
"""

from collections.abc import Awaitable, Generator, Iterator, Sequence
from math import ceil
from typing import Any, Final

import trio

from leafcuttr.errors import (
    BrokerError,
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from leafcuttr.handlers.access import CLUSTER_ACTION, READ_TOPIC, TopicAccessDenied, client_may, denied
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.delayed import DelayedAnswer
from leafcuttr.log.log import Log, NotCached
from leafcuttr.state.broker import Broker
from leafcuttr.state.fetch_sessions import NO_SESSION, FetchPlan, FetchSpec
from leafcuttr.state.security.acl import CLUSTER_NAME
from leafcuttr.state.security.limits import ClientLimits
from leafcuttr.state.security.quota_entities import CONSUMER_BYTE_RATE
from leafcuttr.state.topics import Partition, Topic
from leafcuttr.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

_TOPIC_IDS: Final = 13
_READ_COMMITTED: Final = 1
# What is found before the partition itself: its answer has empty lists, and nothing else.
_WITHOUT_PARTITION: Final = (UnknownTopicId, UnknownTopicOrPartition, TopicAccessDenied)
_AT_ONCE: Final = 200  # partitions read before others have their turn


def handle(
    broker: Broker, context: RequestContext, request: FetchRequest
) -> FetchResponse | Awaitable[FetchResponse]:
    try:
        plan = broker.fetch_sessions.plan(
            request.session_id,
            request.session_epoch,
            _specs(request, context.api_version),
            _forgotten(request, context.api_version),
            uses_topic_ids=context.api_version >= _TOPIC_IDS,
        )
    except BrokerError as error:
        return FetchResponse(error_code=error.code, session_id=0)
    if context.limits is not None and (wait_s := context.limits.fetch_wait_s(trio.current_time())):
        return _throttled(broker, plan, wait_s)
    readable = None if broker.authorizer is None else _Readable(broker, context)
    first = _Pass(broker, plan, request, context.limits, readable)
    try:
        whole = first.read_on()
    except NotCached:
        whole = False
    if not whole:
        return _answer_in_steps(broker, context, plan, request, first)
    return first.response() if first.suffices() else DelayedFetch(broker, context, plan, request, first)


def _throttled(broker: Broker, plan: FetchPlan, wait_s: float) -> FetchResponse:
    """Without records. Clients take such an answer to a full fetch for one without a session."""
    broker.counts.throttled[CONSUMER_BYTE_RATE].add(wait_s)
    if plan.session is not None and not plan.incremental:
        broker.fetch_sessions.close(plan.session)
        return FetchResponse(throttle_time_ms=ceil(wait_s * 1000), session_id=NO_SESSION)
    return FetchResponse(throttle_time_ms=ceil(wait_s * 1000), session_id=plan.session_id)


class _Readable:
    """Which topics the client of a request may read, also later, while the request waits; and whether it may as a
    follower."""

    __slots__ = ("_api_key", "_broker", "_client", "_known", "_version")

    def __init__(self, broker: Broker, context: RequestContext) -> None:
        self._broker = broker
        self._client = context.client
        self._api_key = context.api_key
        self._known: dict[str, bool] = {}
        self._version = -1

    @property
    def by_follower(self) -> bool:
        return client_may(self._broker, self._client, self._api_key, CLUSTER_ACTION, CLUSTER_NAME)

    def __contains__(self, name: str) -> bool:
        authorizer = self._broker.authorizer
        if authorizer is not None and authorizer.version != self._version:
            self._known.clear()
            self._version = authorizer.version
        found = self._known.get(name)
        if found is None:
            found = client_may(self._broker, self._client, self._api_key, READ_TOPIC, name)
            self._known[name] = found
        return found


async def _answer_in_steps(
    broker: Broker, context: RequestContext, plan: FetchPlan, request: FetchRequest, first: "_Pass"
) -> FetchResponse:
    await first.finish()
    if first.suffices():
        return first.response()
    delayed = DelayedFetch(broker, context, plan, request, first)
    if first.is_outdated():
        delayed.notify()  # something came during that pass, of which nobody was notified
    return await delayed


class DelayedFetch(DelayedAnswer):
    """A fetch that waits: each of its logs notifies it of new records."""

    __slots__ = ("_begun", "_broker", "_context", "_last", "_logs", "_plan")

    def __init__(
        self,
        broker: Broker,
        context: RequestContext,
        plan: FetchPlan,
        request: FetchRequest,
        first: "_Pass",
    ) -> None:
        """`first` is a pass that does not suffice, over all partitions. `context` stays that of this request until it
        is answered."""
        super().__init__(request.max_wait_ms / 1000)
        self._broker = broker
        self._context = context
        self._plan = plan
        self._last = first
        self._begun: _Pass | None = None  # a pass that has to be awaited
        self._logs = first.logs
        for log in self._logs:
            log.waiters.add(self)
        broker.delayed_requests.add(self)

    def _held_back(self) -> FetchResponse | None:
        """The answer without records, if other connections of its client have used up their common quota."""
        limits = self._context.limits
        if limits is None or not (wait_s := limits.fetch_wait_s(trio.current_time())):
            return None
        return _throttled(self._broker, self._plan, wait_s)

    def answer(self) -> FetchResponse | None:
        late = trio.current_time() >= self.deadline
        notified, self._notified = self._notified, False
        # What came before its time was over is in the answer, however late this look is.
        if notified or self.over or not late:
            held_back = self._held_back()
            if held_back is not None:
                self.close()
                return held_back
            pass_ = self._new_pass()
            try:
                whole = pass_.read_on()
            except NotCached:
                whole = False
            if not whole:
                self._begun, self.has_to_be_awaited = pass_, True
                return None
            self._last = pass_
            if not (self.over or late or pass_.suffices()):
                return None
        self.close()
        return self._last.response()

    def _new_pass(self) -> "_Pass":
        return self._last.again(self._context.limits)

    def close(self) -> None:
        self._then = None
        self._broker.delayed_requests.discard(self)
        for log in self._logs:
            log.waiters.discard(self)

    def __await__(self) -> Generator[Any, Any, FetchResponse]:
        return self._wait().__await__()

    async def _wait(self) -> FetchResponse:
        try:
            with trio.move_on_at(self.deadline):
                while True:
                    if self._begun is None:
                        await self._notification()
                        self._notified = False
                        held_back = self._held_back()
                        if held_back is not None:
                            return held_back
                        self._begun = self._new_pass()
                    await self._begun.finish()
                    self._last, self._begun = self._begun, None
                    if self.over or self._last.suffices():
                        break
        finally:
            self.close()
        return self._last.response()


class _Pass:
    """One pass over all partitions of a plan: `size` bytes found, `failed` if any partition has an error.

    Each partition is read in one go; between two of them others may have their turn.
    """

    __slots__ = (
        "_answers",
        "_broker",
        "_committed",
        "_done",
        "_follower",
        "_left",
        "_min_bytes",
        "_out",
        "_plan",
        "_readable",
        "_request",
        "_seen",
        "failed",
        "logs",
        "size",
    )

    def __init__(
        self,
        broker: Broker,
        plan: FetchPlan,
        request: FetchRequest,
        limits: ClientLimits | None,
        readable: _Readable | None,
    ) -> None:
        """`readable` is None where everything is."""
        self._broker = broker
        self._request = request
        self._plan = plan
        self._readable = readable
        self._answers: list[tuple[FetchSpec, PartitionData]] = []
        self._done = 0  # how many of the plan's partitions have been read
        self._follower = request.replica_id >= 0 or request.replica_state.replica_id >= 0
        self._committed = request.isolation_level == _READ_COMMITTED
        self._left = min(request.max_bytes, broker.settings.int("fetch.max.bytes"))
        self._min_bytes = request.min_bytes
        if limits is not None and limits.consumer is not None:
            self._left = min(self._left, limits.most_bytes(trio.current_time()))
            if self._min_bytes > self._left:
                self._min_bytes = 1  # more than what is left never comes
        self.logs: list[Log] = []
        self._seen: list[tuple[int, int]] = []  # high watermark and log start offset of each of `logs`
        self._out: list[tuple[Log, int, int]] = []  # what the answer takes from each: bytes, offsets
        self.size = 0
        self.failed = False

    def again(self, limits: ClientLimits | None) -> "_Pass":
        """Another pass for the same request."""
        return _Pass(self._broker, self._plan, self._request, limits, self._readable)

    def read_on(self) -> bool:
        """Look at some more partitions; whether that was all. Raises NotCached where that one needs the disk."""
        specs, incremental = self._plan.specs, self._plan.incremental
        for spec in specs[self._done : self._done + _AT_ONCE]:
            if not (incremental and self._is_quiet(self._broker, spec)):
                self._answers.append((spec, self._look(spec)))
            self._done += 1
        return self._done == len(specs)

    async def finish(self) -> None:
        """Read the remaining ones, a turn at a time; a worker thread reads in what has to come from the disk."""
        while True:
            try:
                if self.read_on():
                    return
                await trio.lowlevel.checkpoint()
            except NotCached as cold:
                await trio.to_thread.run_sync(cold.warm)

    def _look(self, spec: FetchSpec) -> PartitionData:
        try:
            return self._read(self._broker, spec, self._committed)
        except BrokerError as error:
            self.failed = True
            unknown = isinstance(error, _WITHOUT_PARTITION)
            return PartitionData(
                partition_index=spec.partition,
                error_code=error.code,
                high_watermark=-1,
                aborted_transactions=() if unknown else None,
                records=b"",
            )

    def suffices(self) -> bool:
        """Whether this is the answer, or waiting may bring more."""
        requested = self._request
        return (
            self.failed or self.size >= self._min_bytes or requested.max_wait_ms <= 0 or not self._plan.specs
        )

    def is_outdated(self) -> bool:
        """Whether a log has moved since."""
        return any(
            log.high_watermark != high_watermark
            or log.log_start_offset != log_start
            or log.offline is not None  # or it has been deleted
            for log, (high_watermark, log_start) in zip(self.logs, self._seen, strict=True)
        )

    def _is_quiet(self, broker: Broker, spec: FetchSpec) -> bool:
        """Whether a partition of a session has nothing that its client does not know: the common case of consumers
        with many partitions, which must cost next to nothing."""
        topic = _topic(broker, spec)
        if topic is None or not 0 <= spec.partition < len(topic.partitions):
            return False
        log: Log = topic.partitions[spec.partition].log
        end_offset, epoch = log.log_end_offset, log.leader_epoch
        if (
            (log.last_stable_offset if self._committed else end_offset) != spec.fetch_offset
            or end_offset != spec.answered_high_watermark
            or log.log_start_offset != spec.answered_log_start
            or log.offline is not None
            or spec.current_leader_epoch not in (-1, epoch)
            or spec.last_fetched_epoch not in (-1, epoch)
            or self._follower
            or (self._readable is not None and topic.name not in self._readable)
        ):
            return False
        self._look_at(log)
        return True

    def _look_at(self, log: Log) -> None:
        self.logs.append(log)
        self._seen.append((log.high_watermark, log.log_start_offset))

    def _read(self, broker: Broker, spec: FetchSpec, committed: bool) -> PartitionData:
        if self._readable is not None:
            self._check_right(broker, spec, self._readable)
        partition = _find(broker, spec)
        log = partition.log
        _check_epoch(partition, spec.current_leader_epoch)
        if self._follower:
            raise NotLeaderOrFollower
        self._look_at(log)
        diverging = _diverging(log, spec)
        records = None
        aborted: Sequence[AbortedTransaction] | None = () if committed else None
        if diverging is None:
            if self.size and broker.logs.holds_many_files:
                # Each partition's records hold a file until the peer has taken them. As if the answer were full: peers
                # that read nothing may not have all descriptors of the process.
                self._left = 0
            read = log.read(
                spec.fetch_offset,
                min(spec.max_bytes, self._left),
                at_least_one=not self.size,
                up_to=log.last_stable_offset if committed else None,
                may_block=False,
            )
            records = read.region
            if committed and records is not None:
                aborted = _aborted(log, spec.fetch_offset, read.next_offset)
            if records is not None:
                self.size += records.length
                self._out.append((log, records.length, max(read.next_offset - spec.fetch_offset, 0)))
                self._left = max(self._left - records.length, 0)
        else:
            self.failed = True
        return PartitionData(
            partition_index=spec.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            diverging_epoch=diverging or EpochEndOffset(),
            records=records if records is not None else b"",
        )

    def _check_right(self, broker: Broker, spec: FetchSpec, readable: _Readable) -> None:
        """Of a topic that is named by its name even whether it exists is not said."""
        topic = _topic(broker, spec)
        name = spec.topic if isinstance(spec.topic, str) else None if topic is None else topic.name
        if self._follower:
            if not readable.by_follower:
                raise denied(READ_TOPIC)
        elif name is not None and name not in readable:
            raise denied(READ_TOPIC)

    def response(self) -> FetchResponse:
        """The answer to this pass; in an incremental session without the partitions that have no news."""
        session, incremental = self._plan.session, self._plan.incremental
        for log, size, records in self._out:
            log.bytes_out += size
            log.records_out += records
        topics: dict[str | bytes, list[PartitionData]] = {}
        for spec, answer in self._answers:
            if session is not None:
                news = session.has_news(
                    spec, answer.high_watermark, answer.log_start_offset, with_records=bool(_length(answer))
                )
                if incremental and not news and not answer.error_code and answer.diverging_epoch.epoch < 0:
                    continue
            topics.setdefault(spec.topic, []).append(answer)
        return FetchResponse(
            session_id=self._plan.session_id,
            responses=[
                FetchableTopicResponse(topic_id=topic, partitions=answers)
                if isinstance(topic, bytes)
                else FetchableTopicResponse(topic=topic, partitions=answers)
                for topic, answers in topics.items()
            ],
        )


def _aborted(log: Log, from_offset: int, next_offset: int) -> list[AbortedTransaction]:
    """What a read_committed consumer has to skip of the records that it gets. Raises NotCached, StorageError."""
    up_to = next_offset if next_offset >= 0 else log.last_stable_offset
    return [
        AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
        for one in log.aborted_transactions(from_offset, up_to, may_block=False)
    ]


def _length(answer: PartitionData) -> int:
    records = answer.records
    return 0 if records is None or isinstance(records, bytes | bytearray | memoryview) else records.length


def _specs(request: FetchRequest, version: int) -> Sequence[FetchSpec]:
    by_id = version >= _TOPIC_IDS
    specs = [
        FetchSpec(
            topic.topic_id if by_id else topic.topic,
            item.partition,
            item.fetch_offset,
            item.partition_max_bytes,
            item.current_leader_epoch,
            item.last_fetched_epoch,
        )
        for topic in request.topics
        for item in topic.partitions
    ]
    # Of a partition that is named twice the last one counts.
    return specs if len(specs) < 2 else list({spec.key: spec for spec in specs}.values())


def _forgotten(request: FetchRequest, version: int) -> Iterator[tuple[str | bytes, int]]:
    for topic in request.forgotten_topics_data:
        name: str | bytes = topic.topic_id if version >= _TOPIC_IDS else topic.topic
        for partition in topic.partitions:
            yield name, partition


def _topic(broker: Broker, spec: FetchSpec) -> Topic | None:
    if isinstance(spec.topic, bytes):
        return broker.topics.by_id.get(spec.topic)
    return broker.topics.by_name.get(spec.topic)


def _find(broker: Broker, spec: FetchSpec) -> Partition:
    topic = _topic(broker, spec)
    if topic is None and isinstance(spec.topic, bytes):
        raise UnknownTopicId
    if topic is None or not 0 <= spec.partition < len(topic.partitions):
        raise UnknownTopicOrPartition
    return topic.partitions[spec.partition]


def _check_epoch(partition: Partition, requested: int) -> None:
    if requested < 0 or requested == partition.leader_epoch:
        return
    if requested < partition.leader_epoch:
        raise FencedLeaderEpoch
    raise UnknownLeaderEpoch


def _diverging(log: Log, spec: FetchSpec) -> EpochEndOffset | None:
    """Where the client's log and ours part, if its last epoch says that they do (KIP-595)."""
    if spec.last_fetched_epoch < 0:
        return None
    epoch, end_offset = log.offset_for_leader_epoch(spec.last_fetched_epoch)
    if end_offset < 0:
        raise OffsetOutOfRange
    if epoch < spec.last_fetched_epoch or end_offset < spec.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
