"""Records on their way to another cluster: batches for an idempotent appender of a peer, with acks=all.

Records wait by partition. What waits when the last batch of a partition is acknowledged makes the next one, so batches
grow with the time that the cluster takes; one that is large goes at once. Batches of several partitions go together. A
batch that is refused for what may be one record of it is sent again by halves, and behind it what was refused because
of it. Topics are found, or made by the cluster, at their first record.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import lru_cache, partial
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr_mqtt.mapping.outcomes import CONCERNS_ONE
from leafcuttr_sdk.batches import BatchBuilder, encode_headers, encode_key
from leafcuttr_sdk.batches.compression import Codec, compress
from leafcuttr_sdk.batches.header import HEADER, HEADER_SIZE, BatchHeader, seal
from leafcuttr_sdk.batches.partitioner import Sticky, partition_of
from leafcuttr_sdk.errors import BrokerError, ErrorCode, PluginError
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.batches.builder import EncodedRecord
    from leafcuttr_sdk.peers import Peer, PeerAppender
    from leafcuttr_sdk.records import Headers

MESSAGE_TIMEOUT_MS: Final = 10_000
"""How long a message is tried. After it its publisher is held back, and tries again."""
_CLOSE_S: Final = 3.0
_KNOWN_S: Final = 300.0
"""How long the number of a topic's partitions is believed: `metadata.max.age.ms`."""
_MAX_COUNT: Final = 100_000
_MAX_BYTES: Final = 1_000_000
"""Of a record and of a batch, unless `message.max.bytes` says otherwise."""
_RECORD_BYTES: Final = 40
"""What a record takes at most beside its key, value and headers."""
_BATCH_BYTES: Final = 256 * 1024
"""Of a batch, unless a record is larger or `batch.size` says otherwise: while one is written the next is made."""
_ENOUGH_BYTES: Final = 64 * 1024
"""What waits is sent beside other batches of its partition, if it is so much."""
_UNDER_WAY: Final = 5
"""Batches of a partition at a time."""
_USUAL_HEADERS: Final = 4
"""Those that say of a message what its publisher and its topic are: many messages have the same."""
_SHORT: Final = 200
_TELL_AT_ONCE: Final = 500
_COMPRESS_HERE: Final = 16 * 1024


class DeliveryError(NamedTuple):
    """A record is not stored."""

    code: int
    """Of Kafka, or -184 for too much under way."""
    text: str


Told = Callable[["DeliveryError | None"], None]
"""Called with None once the record is stored."""
OpenPeer = Callable[[Mapping[str, str]], "AbstractAsyncContextManager[Peer]"]


class _Record(NamedTuple):
    key: bytes | None
    row: "EncodedRecord"
    size: int
    since: float
    told: Told


class _Sending:
    """One batch, and what the cluster says of it."""

    __slots__ = ("answer", "batch", "records")

    def __init__(self, records: list[_Record]) -> None:
        self.records = records
        self.batch = bytearray()
        self.answer: Appended | BrokerError | None = None


class _Partition:
    """Records of one partition: those that wait, with their size, and the batches under way, in their order. `most` is
    how many the next batch may have, while the record is looked for that a batch was refused for. `again` are those of
    batches that came back, to go before those that wait once nothing is under way."""

    __slots__ = ("again", "bytes", "most", "name", "under_way", "waiting")

    def __init__(self, name: TopicPartition) -> None:
        self.name = name
        self.waiting: deque[_Record] = deque()
        self.bytes = 0
        self.under_way: deque[_Sending] = deque()
        self.again: list[_Record] | None = None
        self.most = _MAX_COUNT

    @property
    def is_ready(self) -> bool:
        """Whether a batch can be sent."""
        if not self.under_way:
            return bool(self.waiting)
        return self.again is None and self.bytes >= _ENOUGH_BYTES and len(self.under_way) < _UNDER_WAY

    def add(self, record: _Record) -> None:
        self.waiting.append(record)
        self.bytes += record.size

    def take(self) -> _Record:
        record = self.waiting.popleft()
        self.bytes -= record.size
        return record

    def come_back(self) -> None:
        """Nothing is under way: what came back is sent first."""
        if self.again is not None:
            self.waiting.extendleft(reversed(self.again))
            self.bytes += sum(each.size for each in self.again)
            self.again = None


class _Topic:
    """`count` is 0 until the topic is found; its records wait here until then."""

    __slots__ = ("count", "found_at", "is_looked_for", "name", "partitions", "sticky", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.found_at = float("-inf")
        self.is_looked_for = False
        self.partitions: dict[int, _Partition] = {}
        self.sticky = Sticky()
        self.waiting: deque[_Record] = deque()


class ClusterProducer:
    """`run` has to be running."""

    def __init__(
        self,
        open_peer: OpenPeer,
        servers: str,
        client_id: str,
        properties: Mapping[str, str],
        max_bytes: int,
    ) -> None:
        """`max_bytes` is how much of records may be under way."""
        self._open_peer = open_peer
        self._properties: Final = {
            **properties,
            "bootstrap.servers": servers,
            "client.id": client_id,
            "delivery.timeout.ms": str(MESSAGE_TIMEOUT_MS),
        }
        self._timeout_s: Final = MESSAGE_TIMEOUT_MS / 1000
        self._max_bytes = max_bytes
        self._linger_s = 0.0
        self._record_bytes = _MAX_BYTES
        self._batch_bytes = _BATCH_BYTES
        self._codec = Codec.NONE
        self._topics: dict[str, _Topic] = {}
        self._bytes = self._count = 0
        self._stirred = trio.Event()
        self._told_all = trio.Event()
        self._scope = trio.CancelScope(shield=True)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until cancelled; then what is under way is given a few seconds. Raises PluginError for properties that cannot
        be used."""
        failure: PluginError | None = None
        async with trio.open_nursery() as nursery:
            try:
                await nursery.start(self._work)
                task_status.started()
                await trio.sleep_forever()
            except PluginError as error:
                failure = error  # raised outside the nursery, which would wrap it in a group
            finally:
                with trio.move_on_after(_CLOSE_S, shield=True):
                    while self._count and failure is None:
                        self._told_all = trio.Event()
                        await self._told_all.wait()
                self._scope.cancel()
        if failure is not None:
            raise failure

    def send(
        self, topic: str, key: bytes | None, value: bytes, headers: "Headers", time_ms: int, told: Told
    ) -> None:
        """Take a record without waiting. `told` is called once its outcome is known, at once if it is not taken, unless
        `run` has ended."""
        usual = len(headers) == _USUAL_HEADERS and all(
            len(content or b"") <= _SHORT for _, content in headers
        )
        row = (value, encode_key(key), (_remembered if usual else encode_headers)(headers), time_ms)
        size = len(value) + len(row[1]) + len(row[2]) + _RECORD_BYTES
        if size + HEADER_SIZE > self._record_bytes:
            limit = f"a record of {size} bytes is larger than message.max.bytes, {self._record_bytes}"
            told(DeliveryError(ErrorCode.MESSAGE_TOO_LARGE, limit))
            return
        if self._bytes + size > self._max_bytes or self._count >= _MAX_COUNT:
            told(DeliveryError(-184, "too much is under way to the cluster"))
            return
        self._bytes += size
        self._count += 1
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _Topic(topic)
        found.waiting.append(_Record(key, row, size, monotonic(), told))
        self._stirred.set()

    # The task

    async def _work(self, task_status: trio.TaskStatus[None]) -> None:
        with self._scope:
            async with AsyncExitStack() as stack:
                try:
                    self._read_properties()
                    peer = await stack.enter_async_context(self._open_peer(self._properties))
                except PluginError as error:
                    raise PluginError(
                        f"the client of the other Kafka cluster cannot be made: {error} (mqtt.kafka.property.*)"
                    ) from None
                appender = await stack.enter_async_context(peer.appender())
                nursery = await stack.enter_async_context(trio.open_nursery())
                task_status.started()
                while True:
                    await self._stirred.wait()
                    await trio.sleep(self._linger_s)  # at least until every task has had its turn
                    self._stirred = trio.Event()
                    await self._pass(peer, appender, nursery)

    def _read_properties(self) -> None:
        """Those of librdkafka's that are not the connection's. Raises PluginError."""
        given = self._properties
        codec = given.get("compression.type", given.get("compression.codec", "none"))
        try:
            self._linger_s = float(given.get("linger.ms", given.get("queue.buffering.max.ms", "0"))) / 1000
            self._record_bytes = int(given.get("message.max.bytes", str(_MAX_BYTES)))
            self._codec = Codec[codec.upper()]
        except (KeyError, ValueError):
            raise PluginError(
                "linger.ms and message.max.bytes are numbers, compression.type is one of none, gzip, snappy, lz4, zstd"
            ) from None

    async def _pass(self, peer: "Peer", appender: "PeerAppender", nursery: trio.Nursery) -> None:
        """Send what can be sent now."""
        now = trio.current_time()
        partitions: list[_Partition] = []
        for topic in list(self._topics.values()):
            if topic.waiting and now - topic.found_at > _KNOWN_S and not topic.is_looked_for:
                topic.is_looked_for = True
                nursery.start_soon(self._look_for, peer, topic)
            if topic.count and topic.waiting:
                _distribute(topic)
            partitions += topic.partitions.values()
        while partitions := [each for each in partitions if each.is_ready]:
            sendings: list[tuple[_Partition, _Sending]] = []
            size = 0
            for number, partition in enumerate(partitions, 1):
                sending = await self._batch(partition)
                sendings.append((partition, sending))
                size += len(sending.batch)
                if size >= _ENOUGH_BYTES or number == len(partitions):
                    nursery.start_soon(self._append, appender, sendings)
                    sendings, size = [], 0
                    await trio.lowlevel.checkpoint()

    async def _look_for(self, peer: "Peer", topic: _Topic) -> None:
        error: DeliveryError | None = None
        try:
            with trio.fail_after(self._timeout_s):
                found = await peer.ensure_topic(topic.name)
            topic.count, topic.found_at = found.partitions, trio.current_time()
        except trio.TooSlowError:
            error = DeliveryError(
                ErrorCode.REQUEST_TIMED_OUT, peer.trouble or "the cluster does not answer in time"
            )
        except BrokerError as refused:
            error = _error(refused)
        topic.is_looked_for = False
        if error is not None and not topic.count:
            records, topic.waiting = list(topic.waiting), deque()
            del self._topics[topic.name]
            await self._tell(records, error)
        self._stirred.set()

    async def _batch(self, partition: _Partition) -> _Sending:
        """The next batch of a partition, which is under way from now on."""
        records = [partition.take()]
        size = HEADER_SIZE + records[0].size
        while partition.waiting and len(records) < partition.most:
            size += partition.waiting[0].size
            if size > self._batch_bytes:
                break
            records.append(partition.take())
        sending = _Sending(records)
        partition.under_way.append(sending)
        builder = BatchBuilder()
        for start in range(0, len(records), _TELL_AT_ONCE):
            if start:
                await trio.lowlevel.checkpoint()
            builder.extend_encoded([each.row for each in records[start : start + _TELL_AT_ONCE]])
        sending.batch = builder.finish()
        if self._codec is not Codec.NONE:
            compressed = partial(_compressed, sending.batch, self._codec)
            small = len(sending.batch) <= _COMPRESS_HERE
            sending.batch = compressed() if small else await trio.to_thread.run_sync(compressed)
        return sending

    async def _append(
        self, appender: "PeerAppender", sendings: "Sequence[tuple[_Partition, _Sending]]"
    ) -> None:
        batches = [NewBatch(partition.name, sending.batch) for partition, sending in sendings]
        answers = await appender.append(batches)
        for (partition, sending), answer in zip(sendings, answers, strict=True):
            sending.answer, sending.batch = answer, bytearray()
            while partition.under_way and (given := partition.under_way[0].answer) is not None:
                await self._settle(partition, partition.under_way.popleft().records, given)
                if not partition.under_way:
                    partition.come_back()
        self._stirred.set()

    async def _settle(
        self, partition: _Partition, records: list[_Record], answer: Appended | BrokerError
    ) -> None:
        """What the oldest batch under way came to."""
        if isinstance(answer, Appended):
            partition.most = min(2 * partition.most, _MAX_COUNT)
            await self._tell(records, None)
            return
        error, behind = _error(answer), partition.again is not None
        partition.again = partition.again or []
        if behind and error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            partition.again += records
            return
        if error.code in CONCERNS_ONE and len(records) > 1:
            partition.most = len(records) // 2
            partition.again += records
            return
        if error.code == ErrorCode.REQUEST_TIMED_OUT:
            late = monotonic() - self._timeout_s
            while not partition.under_way and partition.waiting and partition.waiting[0].since <= late:
                records.append(partition.take())
        elif error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._forget(partition.name.topic)
        await self._tell(records, error)

    def _forget(self, name: str) -> None:
        """The topic was deleted, or has other partitions: it is looked for at the next record."""
        topic = self._topics.get(name)
        if topic is not None:
            topic.count, topic.found_at = 0, float("-inf")

    async def _tell(self, records: Sequence[_Record], error: DeliveryError | None) -> None:
        for number, record in enumerate(records, 1):
            self._bytes -= record.size
            self._count -= 1
            record.told(error)
            if not number % _TELL_AT_ONCE:
                await trio.lowlevel.checkpoint()
        if not self._count:
            self._told_all.set()


_remembered = lru_cache(maxsize=4096)(encode_headers)


def _distribute(topic: _Topic) -> None:
    """Records that wait for their topic to their partitions."""
    count, partitions, usable = topic.count, topic.partitions, range(topic.count)
    while topic.waiting:
        record = topic.waiting.popleft()
        if record.key is None:
            number = topic.sticky.take(record.size, usable)
        else:
            number = partition_of(record.key, count)
        found = partitions.get(number)
        if found is None:
            found = partitions[number] = _Partition(TopicPartition(topic.name, number))
        found.add(record)


def _compressed(batch: bytearray, codec: Codec) -> bytearray:
    header = BatchHeader._make(HEADER.unpack_from(batch))
    new = batch[:HEADER_SIZE] + compress(codec, memoryview(batch)[HEADER_SIZE:])
    seal(new, header._replace(attributes=header.attributes | codec))
    return new


def _error(error: BrokerError) -> DeliveryError:
    return DeliveryError(error.code, str(error) or error.code.name)
