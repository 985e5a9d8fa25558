"""Data directories into which bytes are put that no client of ours would send: as a folder of another broker has them.

A directory is made once by a broker, and copied for each example. What is put into it is read at the next start, from
the first byte on: the checkpoints, which would spare that, are not copied.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.batch import BatchHeader, sealed, unpack
from leafcuttr.wire.codec import encode
from leafcuttr.wire.messages.delete_groups import DeleteGroupsRequest
from leafcuttr.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from leafcuttr.wire.messages.describe_groups import DescribeGroupsRequest
from leafcuttr.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from leafcuttr.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from leafcuttr.wire.messages.describe_transactions import DescribeTransactionsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.messages.internal.group_metadata import GroupMetadataKey, GroupMetadataValue
from leafcuttr.wire.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue
from leafcuttr.wire.messages.internal.transaction_log import TransactionLogKey, TransactionLogValue
from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from leafcuttr.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from leafcuttr.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from leafcuttr.wire.primitives import LONG_MAX, LONG_MIN, write_varlong
from leafcuttr.wire.records import Record, encode_records
from leafcuttr.wire.schema import INT16, INT32, INT64, FieldSpec
from leafcuttr_sdk import TopicPartition
from support.live_broker import LiveBroker
from support.logs import NOW
from support.wire_client import WireClient
from support.wire_strategies import messages

InternalRecords = tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]
_CHECKPOINTS = ("*checkpoint*", "leafcuttr.partitions", "*.snapshot")


def edged(bits: int, usual: Sequence[int]) -> st.SearchStrategy[int]:
    """Every value of a signed number, those at its ends more often."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    ends = [low, low + 1, -1, 0, 1, high - 1, high]
    return st.sampled_from([*usual, *usual, *ends]) | st.integers(low, high)


longs = edged(64, [NOW, NOW + 1])
ints = edged(32, [0, 1, 2])
shorts = edged(16, [0, 1])


@st.composite
def records(draw: Any, count: int) -> bytes:
    """`count` records of which only the deltas are odd."""
    out = bytearray()
    for number in range(count):
        one = bytearray(1)
        write_varlong(one, draw(longs | st.just(0)))
        write_varlong(one, draw(st.just(number) | ints))
        for content in draw(st.sampled_from([(b"k", b"v"), (b"k", None), (None, b"v")])):
            write_varlong(one, -1 if content is None else len(content))
            one += content or b""
        one.append(0)
        write_varlong(out, len(one))
        out += one
    return bytes(out)


@st.composite
def batches(draw: Any, *, stored: bool) -> list[bytearray]:
    """One to three batches, sound by their CRC. `stored`: with what only a file can say, else as a client sends it."""
    found: list[bytearray] = []
    due = 0
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 3))
        body = draw(records(count))
        attributes = draw(st.sampled_from([0, 0, 0, 8, 16, 64, 72]))
        delta, base, epoch, claimed = count - 1, 0, -1, count
        if stored:
            attributes = draw(st.just(attributes) | st.just(48) | shorts)
            delta = draw(st.just(delta) | ints)
            base = draw(st.just(due) | longs)
            epoch = draw(st.just(0) | ints)
            claimed = draw(st.just(count) | ints)
        if attributes == 48:
            body = bytes(_marker(draw(ints), draw(st.sampled_from([0, 1])), draw(longs)))
            claimed = 1
        header = BatchHeader(
            base, 0, epoch, 2, 0, attributes, delta, draw(longs), draw(longs),
            draw(st.sampled_from([-1, 5]) | longs), draw(shorts), draw(st.sampled_from([-1, 0]) | ints), claimed,
        )  # fmt: skip
        found.append(sealed(header, body))
        due += max(delta, 0) + 1
    return found


def _marker(coordinator_epoch: int, kind: int, stamp: int) -> bytearray:
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big", signed=True)
    record = Record(0, stamp, bytes([0, 0, 0, kind]), value)
    return encode_records([record], base_offset=0, base_timestamp=stamp)


def copied(origin: Path, target: Path) -> Path:
    """A copy of a data directory, without what spares reading it."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(origin, target, ignore=shutil.ignore_patterns(*_CHECKPOINTS))
    return target


def put(folder: Path, data: Iterable[bytes | bytearray], base: int = 0) -> None:
    """Make these batches the only segment of a partition."""
    for path in folder.glob("0*.*"):
        path.unlink()
    (folder / f"{base:020d}.log").write_bytes(b"".join(map(bytes, data)))


def versions(key: ApiKey) -> range:
    api = APIS[key]
    return range(api.min_version, api.max_version + 1)


def _questions(topic: str, topic_id: bytes, headers: Sequence[BatchHeader]) -> Iterator[tuple[ApiKey, Any]]:
    times = {-1, -2, -3, 0, NOW, LONG_MAX, *(t for h in headers for t in (h.base_timestamp, h.max_timestamp))}
    for time in sorted(time for time in times if time >= -3):
        for committed in (0, 1):
            asked = ListOffsetsPartition(partition_index=0, timestamp=time)
            named = ListOffsetsTopic(name=topic, partitions=[asked])
            yield ApiKey.LIST_OFFSETS, ListOffsetsRequest(topics=[named], isolation_level=committed)
    for offset in sorted({0, 1, LONG_MAX, LONG_MIN, *(h.base_offset for h in headers)}):
        for committed in (0, 1):
            part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            wanted = FetchTopic(topic=topic, topic_id=topic_id, partitions=[part])
            yield ApiKey.FETCH, FetchRequest(topics=[wanted], max_bytes=1 << 20, isolation_level=committed)
    for epoch in sorted({0, 1, -1, 2**31 - 1, *(h.leader_epoch for h in headers)}):
        led = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        leading = OffsetForLeaderTopic(topic=topic, partitions=[led])
        yield ApiKey.OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest(topics=[leading])
    produced = TopicRequest(name=topic, partition_indexes=[0])
    yield ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest(topics=[produced])
    yield ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(topics=None)
    yield ApiKey.METADATA, MetadataRequest(topics=None)
    yield ApiKey.DESCRIBE_TOPIC_PARTITIONS, DescribeTopicPartitionsRequest()


def ask_everything(
    broker: LiveBroker, client: WireClient, topic: str, stored: Sequence[bytes | bytearray]
) -> None:
    """Every API that says something of a partition's batches, in all versions. Each answer has come and was read."""
    headers = [BatchHeader._make(unpack(batch)) for batch in stored]
    topic_id = broker.broker.topics.by_name[topic].id
    for key, request in _questions(topic, topic_id, headers):
        for version in versions(key):
            if key == ApiKey.METADATA and version == 0:
                continue  # which cannot ask for all
            client.ask(request, version)


def do_everything(broker: LiveBroker, client: WireClient, topic: str) -> None:
    """What the broker does by itself with what is stored, and DeleteRecords half-way."""
    logs = broker.broker.logs
    log = logs.logs[TopicPartition(topic, 0)]
    half = (log.log_start_offset + log.log_end_offset) // 2
    for offset in (half, LONG_MAX, -2):
        item = DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [DeleteRecordsTopic(name=topic, partitions=[item])]
        for version in versions(ApiKey.DELETE_RECORDS):
            client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), version)
    if log.offline is None:
        broker.call(log.roll)
    for step in (logs.soft_checkpoint, logs.checkpoint, logs.cleaner.clean_due, logs.expire_producers):
        broker.run(step)


def limits(_: type[Any], spec: FieldSpec) -> st.SearchStrategy[Any] | None:
    """Numbers at their ends; names that mean something here."""
    if spec.type in (INT64, INT32, INT16):
        return edged(spec.type.size * 8, [0, 1])
    if spec.name == "topic":
        return st.sampled_from(["t", "none", ""])
    if spec.name == "partition_ids":
        return ints
    return None


@st.composite
def internal_records(draw: Any) -> InternalRecords:
    """Keys and values of `__consumer_offsets` (group g) and of `__transaction_state` (id x)."""
    offsets: list[tuple[bytes, bytes]] = []
    for _ in range(draw(st.integers(1, 3))):
        version = draw(st.integers(0, 4))
        value = draw(messages(OffsetCommitValue, version, limits))
        key = OffsetCommitKey(group="g", topic="t", partition=draw(st.just(0) | ints))
        offsets.append((stored_record(1, key), stored_record(version, value)))
    version = draw(st.integers(0, 4))
    group = draw(messages(GroupMetadataValue, version, limits))
    offsets.append((stored_record(2, GroupMetadataKey(group="g")), stored_record(version, group)))
    version = draw(st.integers(0, 1))
    state = draw(messages(TransactionLogValue, version, limits))
    key_of = stored_record(0, TransactionLogKey(transactional_id="x"))
    return offsets, [(key_of, stored_record(version, state))]


def stored_record(version: int, message: Any) -> bytes:
    """A key or a value of an internal topic."""
    return version.to_bytes(2, "big") + encode(message, version)


def ask_coordinators(client: WireClient) -> None:
    """All that is said of a group and of a transactional id, in all versions; then what changes them."""
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
    first = [
        (ApiKey.OFFSET_FETCH, OffsetFetchRequest(group_id="g", topics=topics, groups=groups)),
        (ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["g"])),
        (ApiKey.LIST_GROUPS, ListGroupsRequest()),
        (ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(transactional_ids=["x"])),
        (ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest(duration_filter=0)),
    ]
    commits = [OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition()])]
    then = [
        (ApiKey.OFFSET_COMMIT, OffsetCommitRequest(group_id="g", topics=commits, retention_time_ms=LONG_MAX)),
        (ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)),
        (ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=["g"])),
    ]
    for key, request in (*first, *then, *first):
        for version in versions(key):
            client.ask(request, version)
