"""What a start reads: sessions, retained messages, the queue, and the ends of Kafka topics that messages are mapped to.

Damaged records are left out and counted; one line in the log for each topic that has some.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.storage.formats import (
    RecordFormatError,
    VersionError,
    decode_bucket,
    decode_bucket_key,
    decode_message,
    decode_session,
)
from leafcuttr_mqtt.storage.replay import Replay
from leafcuttr_mqtt.storage.session_records import joined
from leafcuttr_mqtt.storage.state import (
    Bucket,
    Recovered,
    RecoveredSession,
    SessionRecord,
    StoredSession,
)
from leafcuttr_mqtt.storage.topics import QUEUE, RETAINED, SESSIONS
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.batches import Batch, BatchError, batches_in
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_sdk import Broker
    from leafcuttr_sdk.batches import BatchRecord

NUMBER_HEADER: Final = "mqtt.message.number"
"""Of records in Kafka topics: `state.record_number`, as decimal digits."""
_READ_BYTES: Final = 1024 * 1024
_CLOCKS_MS: Final = 600_000
"""By how much clocks may have been set back while the records that are looked for were written."""


class Recovery:
    """See the module. The fields are there after `recover`."""

    def __init__(self, broker: "Broker", mapped: tuple[str, ...]) -> None:
        self._broker = broker
        self._mapped = mapped
        self._damaged: dict[str, int] = {}
        self.next_session = 1
        self.positions: Mapping[str, tuple[int, ...]] = {}
        self.log_start = 0
        """Of the queue."""
        self.end = 0
        """Of the queue."""
        self.queue_bytes = 0
        self.left: set[int] = set()
        """See `Replay.left`."""
        self.needless: list[str] = []
        """Client identifiers with records that say nothing any more."""
        self.buckets: dict[str, dict[int, Bucket]] = {}
        """Those of `__mqtt_sessions`, by client identifier and number."""

    async def recover(self) -> Recovered:
        """Raises BrokerError; PluginError for what a later version has written."""
        records = await self._sessions()
        retained = await self._retained()
        outlive = {record.number: record for record in records.values() if record.expiry_s}
        replay = Replay(StoredSession(record.client_id, record.number) for record in outlive.values())
        replay.highest_session = max([one.number for one in records.values()], default=0)
        await self._queue(replay)
        found = replay.finish(await self._numbers(replay))
        self.next_session = replay.highest_session + 1
        if replay.positions is not None:
            self.positions = replay.positions.positions
        for topic, count in self._damaged.items():
            self._broker.logger.error(
                "%s: %d damaged %s left out", topic, count, "record is" if count == 1 else "records are"
            )
        wills = [one for one in records.values() if not one.expiry_s]
        self.needless = [one.client_id for one in wills if one.will is None]
        self.needless += self.buckets.keys() - records.keys()
        return Recovered(
            sessions=[
                RecoveredSession(
                    record,
                    replay.sessions[number].stored,
                    replay.sessions[number].queue,
                    found.get(number, {}),
                )
                for number, record in outlive.items()
            ],
            wills=[one for one in wills if one.will is not None],
            retained=list(retained.values()),
            damaged=dict(self._damaged),
        )

    async def _sessions(self) -> dict[str, SessionRecord]:
        found: dict[str, SessionRecord] = {}

        def take(record: "BatchRecord") -> None:
            if record.key is None:
                raise RecordFormatError("no key")
            bucket = decode_bucket_key(record.key)
            if bucket is not None:
                client_id, place = bucket
                if record.value is not None:
                    self.buckets.setdefault(client_id, {})[place] = decode_bucket(record.value)
                elif client_id in self.buckets:
                    self.buckets[client_id].pop(place, None)
            elif record.value is None:
                found.pop(str(record.key, "utf-8", "replace"), None)
            else:
                session = decode_session(record.key, record.value)
                found[session.client_id] = session

        async for batch in self._batches(SESSIONS):
            self._each(SESSIONS, batch, take)
        self.buckets = {client_id: each for client_id, each in self.buckets.items() if each}
        return joined(found, self.buckets)

    async def _retained(self) -> "dict[bytes, Message]":
        found: dict[bytes, Message] = {}

        def take(record: "BatchRecord") -> None:
            if record.key is None:
                raise RecordFormatError("no key")
            if record.value is None:
                found.pop(bytes(record.key), None)
            else:
                found[bytes(record.key)] = decode_message(record.value)

        async for batch in self._batches(RETAINED):
            self._each(RETAINED, batch, take)
        return found

    async def _queue(self, replay: Replay) -> None:
        info = self._broker.topics.get(QUEUE.topic)
        if info is not None:
            self.log_start, self.end = info.partitions[0].log_start_offset, info.partitions[0].high_watermark
        apply = replay.apply
        start = self.log_start

        def take(record: "BatchRecord") -> None:
            if record.offset >= start:
                apply(record.offset, record.timestamp, record.key, record.value)

        async for batch in self._batches(QUEUE):
            self.queue_bytes += batch.header.size
            self._each(QUEUE, batch, take)
        self.left = replay.left

    async def _numbers(self, replay: Replay) -> dict[int, set[str]]:
        """The QoS 2 messages in Kafka topics behind the last positions, by number."""
        found: dict[int, set[str]] = {}
        if replay.positions is None:
            return found
        for name in self._mapped:
            info = self._broker.topics.get(name)
            if info is None:
                continue
            known = replay.positions.positions.get(name, ())
            for each in info.partitions:
                partition = TopicPartition(name, each.partition)
                if each.offline is not None:
                    continue
                if each.partition < len(known):
                    start = known[each.partition]
                else:
                    time = max(replay.positions_ms - _CLOCKS_MS, 0)
                    start = (await self._broker.offsets({partition: time}))[partition]
                async for batch in self._batches(partition, start):
                    self._look_for_numbers(name, batch, found)
        return found

    def _look_for_numbers(self, topic: str, batch: Batch, found: dict[int, set[str]]) -> None:
        name = NUMBER_HEADER.encode()
        if not batch.header.codec and name not in bytes(batch.data):
            return
        try:
            for record in batch.records():
                if name not in bytes(record.encoded_headers):
                    continue
                for header, value in record.headers():
                    if header == NUMBER_HEADER and value is not None and value.isdigit() and len(value) < 40:
                        found.setdefault(int(value), set()).add(topic)
        except BatchError:
            self._damaged[topic] = self._damaged.get(topic, 0) + 1

    async def _batches(self, partition: TopicPartition, start: int = 0) -> AsyncIterator[Batch]:
        """All batches of a partition that has them now, from this offset on or the log start offset."""
        info = self._broker.topics.get(partition.topic)
        if info is None:
            return
        state = info.partitions[partition.partition]
        offset = max(start, state.log_start_offset)
        while offset < state.high_watermark:
            read = await self._broker.read_batches(partition, offset, max_bytes=_READ_BYTES)
            for batch in batches_in(read.data):
                if batch.header.count and not batch.header.is_control:
                    yield batch
            offset = max(read.next_offset, offset + 1)

    def _each(self, partition: TopicPartition, batch: Batch, take: "Callable[[BatchRecord], None]") -> None:
        """Take each record of a batch."""
        topic = partition.topic
        try:
            batch.check()
        except BatchError:
            self._damaged[topic] = self._damaged.get(topic, 0) + batch.header.count
            return
        try:
            for record in batch.records():
                try:
                    take(record)
                except VersionError as newer:
                    raise PluginError(f"{topic}, offset {record.offset}: {newer}") from None
                except RecordFormatError:
                    self._damaged[topic] = self._damaged.get(topic, 0) + 1
        except BatchError:
            self._damaged[topic] = self._damaged.get(topic, 0) + 1
