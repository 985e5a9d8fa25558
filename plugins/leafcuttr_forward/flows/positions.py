"""The topic `leafcuttr-flows` at a target: how far each flow has come, and what was requested of it.

Partition 0 has positions, the last partition requests (see `control`). Keys and values are JSON:

    key     {"flow": name, "cluster": source, "topic": topic, "partition": number}
    value   {"offset": next offset at the source, "epoch": leader epoch of the last batch, "topic_id": hex,
            "source": id of the cluster that was read, "last": offset of the last record, "digest": of its key and
            value, "target_offset": behind the last record at the target}

A transactional flow writes its positions in the transaction of the records. The topic is read to its end without regard
to the isolation level, and transactions are told apart here, by their markers: once the flow's transactional producer
has begun, no transaction of the flow is open, so the position is known at once, whatever other flows have open.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from leafcuttr_forward.flows.spec import FLOWS_TOPIC
from leafcuttr_sdk.errors import TopicAlreadyExists
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.batches import Batch
    from leafcuttr_sdk.peers import Peer

POSITIONS: Final = TopicPartition(FLOWS_TOPIC, 0)
REQUESTS: Final = TopicPartition(FLOWS_TOPIC, 1)
TOPIC_SETTINGS: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(8 << 20),
    "compression.type": "producer",
    # The clocks of the two machines may be hours apart: the target would refuse ours.
    "message.timestamp.type": "LogAppendTime",
}
_COMMIT: Final = 1


class Position(NamedTuple):
    """How far a flow has come in one partition of its source."""

    offset: int
    """The next one to copy."""
    epoch: int = -1
    """The leader epoch of the last batch; -1 where it is not known."""
    topic_id: str = ""
    """The source topic's, in hexadecimal digits; empty where it has none."""
    source: str = ""
    """The id of the cluster that was read: epochs and ids of topics are its own."""
    last: int = -1
    """The offset of the last record that was copied, which is before `offset`."""
    digest: str = ""
    """Of the key and the value of that record; empty where it was not made."""
    target_offset: int = -1
    """Behind the last record at the target; -1 where it is not known."""


class Entry(NamedTuple):
    """A record of the topic."""

    key: bytes
    value: bytes | None
    offset: int


def key_of(flow: str, cluster: str, partition: TopicPartition) -> bytes:
    """The key of a position."""
    return _json(
        {"flow": flow, "cluster": cluster, "topic": partition.topic, "partition": partition.partition}
    )


def value_of(position: Position) -> bytes:
    """A position as it is stored."""
    return _json({name: value for name, value in position._asdict().items() if value not in ("", -1)})


def position_of(value: bytes) -> Position | None:
    """What `value_of` has made; None for anything else. Fields of later versions are ignored."""
    found = object_of(value)
    if found is None or not _is_number(found.get("offset")) or found["offset"] < 0:
        return None
    defaults = Position(0)._asdict()
    fields = {
        name: found[name]
        for name, default in defaults.items()
        if name in found and type(found[name]) is type(default)
    }
    return Position(**fields)


def digest_of(key: bytes | memoryview | None, value: bytes | memoryview | None) -> str:
    """A short text that is the same for records with the same key and value."""
    digest = hashlib.sha256()
    for part in (key, value):
        digest.update(b"-" if part is None else len(part).to_bytes(8, "big"))
        digest.update(part or b"")
    return digest.hexdigest()[:32]


def object_of(text: bytes) -> dict[str, Any] | None:
    """The JSON object that this is; None for anything else."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


async def ensure_topic(target: "Peer") -> int:
    """Create the topic where it is missing; how many partitions it has. Raises BrokerError."""
    found = await target.topics([FLOWS_TOPIC])
    if FLOWS_TOPIC not in found:
        with suppress(TopicAlreadyExists):  # another flow was quicker
            await target.create_topic(
                FLOWS_TOPIC,
                partitions=2,
                replication_factor=min(3, await target.node_count()),
                configs=TOPIC_SETTINGS,
            )
        found = await target.topics([FLOWS_TOPIC])
    return found[FLOWS_TOPIC].partitions if FLOWS_TOPIC in found else 2


async def read_positions(target: "Peer", flow: str, cluster: str) -> dict[TopicPartition, Position]:
    """The positions of a flow that reads this source. Raises BrokerError."""
    found: dict[TopicPartition, Position] = {}
    for key, value in (await read_entries(target, POSITIONS)).items():
        names = object_of(key)
        if names is None or names.get("flow") != flow or names.get("cluster") != cluster:
            continue
        topic, partition = names.get("topic"), names.get("partition")
        position = position_of(value)
        if isinstance(topic, str) and isinstance(partition, int) and position is not None:
            found[TopicPartition(topic, partition)] = position
    return found


async def read_entries(target: "Peer", partition: TopicPartition) -> dict[bytes, bytes]:
    """The last value by each key, of all records that stand, in their order: neither aborted nor undecided, no
    tombstones. Raises BrokerError."""
    from leafcuttr_sdk.broker import EARLIEST, LATEST

    first = (await target.offsets({partition: EARLIEST})).get(partition, 0)
    end = (await target.offsets({partition: LATEST})).get(partition, 0)
    standing = Standing()
    if first >= end:
        return standing.entries
    async with target.reader(committed=False, max_bytes=8 << 20, partition_bytes=4 << 20) as reader:
        reader.assign({partition: first})
        position = first
        while position < end:
            for read in await reader.read():
                if read.error is not None:
                    raise read.error
                standing.take(read.data, position)
                position = max(position, read.next_offset)
    return standing.entries


class Standing:
    """What stands of a compacted partition, fed with its batches in their order. No I/O."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}
        """The last value by each key, in the order in which these were written."""
        self._open: dict[int, list[Entry]] = {}

    def take(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """The next batches; records before the position are left out."""
        from leafcuttr_sdk.batches import batches_in

        for batch in batches_in(data):
            header = batch.header
            if header.is_control:
                self._end(header.producer_id, _is_commit(batch))
                continue
            entries = [
                Entry(bytes(record.key), None if record.value is None else bytes(record.value), record.offset)
                for record in batch.records()
                if record.offset >= position and record.key is not None
            ]
            if header.is_transactional:
                self._open.setdefault(header.producer_id, []).extend(entries)
            else:
                self._apply(entries)

    def _end(self, producer: int, committed: bool) -> None:
        entries = self._open.pop(producer, [])
        if committed:
            self._apply(entries)

    def _apply(self, entries: Iterable[Entry]) -> None:
        for key, value, _ in entries:
            self.entries.pop(key, None)
            if value is not None:
                self.entries[key] = value


def batch_of(records: Mapping[bytes, bytes | None], now_ms: int) -> bytearray:
    """A batch of these records, for `PeerAppender.append` or a transaction."""
    from leafcuttr_sdk.batches import BatchBuilder

    builder = BatchBuilder()
    builder.extend_records([(value, key, (), now_ms) for key, value in records.items()])
    return builder.finish()


def _is_commit(batch: "Batch") -> bool:
    # The key of a marker: version int16, type int16 (0 abort, 1 commit).
    for record in batch.records():
        return record.key is not None and int.from_bytes(record.key[2:4], "big") == _COMMIT
    return False


def _is_number(value: object) -> bool:
    return type(value) is int


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
