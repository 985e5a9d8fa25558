"""What a broker has to keep after the power was cut, looked at through its sockets. A broken promise is an
AssertionError that says what was expected.

docs/explanation/durability.md says these promises to people.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from crash.powerloss.told import Partition, Told, Topic
from crash.powerloss.traffic import (
    GROUP,
    TRANSACTIONAL,
    TRANSACTIONAL_GROUP,
    TRANSACTIONS,
    init_producer,
    send,
)
from leafcuttr.log.layout.checkpoints import PARTITION_METADATA, read_topic_id
from leafcuttr.log.layout.folders import partition_of
from leafcuttr.wire.batch import BatchHeader, parse
from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from leafcuttr.wire.records import Record, control_record, decode_records, encode_batch
from support.waiting import until
from support.wire_client import WireClient

# What a witness itself leaves behind.
_OURS: Final = ("later", "-1")
_TOPIC: Final = 2
_COMMIT: Final = 1


class Found(NamedTuple):
    """What is in a partition: data records by offset (key, value), and of the transactional ones what became of it."""

    start: int
    end: int
    stable: int
    records: dict[int, tuple[str | None, str]]
    markers: set[int]
    aborted: set[int]  # offsets of records that read_committed leaves out
    open: set[int]  # offsets of records of transactions that have not ended


class Witness:
    """Compares a broker with what its clients `told` before the cut, and `later`: all that they were told in the whole
    recording. `synced`: internal topics are in topic sync mode."""

    def __init__(self, told: Told, later: Told, *, synced: bool) -> None:
        self.told = told
        self.later = later
        self.synced = synced
        self.left_behind: set[Path] = set()
        """Folders with records that no topic has, and that do not say whose they were."""
        self._ends: dict[tuple[str, int], int] = {}  # at the first look; what comes behind is new

    def judge(self, address: str, data: Path) -> None:
        """Everything, reading first, then whether the broker goes on."""
        with WireClient(address) as client:
            there = self._topics(client, data)
            for name in sorted(there):
                for index in range(len(self.told.topics[name].partitions)):
                    self._partition(client, name, index)
            if "sync" in there:
                self._offsets(client, GROUP, *self.told.offsets.get(GROUP, (-1, -1)))
                self._sent_again(client)
                self._goes_on(client, there)
            if TRANSACTIONS in there:
                self._transactions(client)

    def end_of(self, topic: str, partition: int) -> int:
        """Where the partition ended at the first look."""
        return self._ends.get((topic, partition), 0)

    # Topics

    def _topics(self, client: WireClient, data: Path) -> set[str]:
        answer = client.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 8)
        found = {topic.name: topic for topic in answer.topics if not topic.is_internal}
        for name, told in self.told.topics.items():
            if told.there:
                assert name in found, f"topic {name} was acknowledged as created and is not there"
            if told.there is False:
                assert name not in found, f"topic {name} was acknowledged as deleted and is there"
        unknown = found.keys() - self.told.topics.keys()
        assert not unknown, f"nobody has ever created {sorted(unknown)}"
        for topic in answer.topics:
            for part in topic.partitions:
                assert part.error_code == 0, f"{topic.name}-{part.partition_index} is offline"
        for name, topic in found.items():
            told = self.told.topics[name]
            if told.there is not None:
                assert len(topic.partitions) == len(told.partitions), f"partitions of {name}"
                self._settings(client, name, told)
        self._no_strays(data, {topic.name: len(topic.partitions) for topic in answer.topics})
        # Of one that is being deleted and made again nobody knows which it is.
        return {name for name in found if self.told.topics[name].there}

    def _no_strays(self, data: Path, partitions: dict[str, int]) -> None:
        """Folders of deleted topics have gone, unless nothing says any more whose records are in them. `partitions`:
        how many each topic has; one that came back may have fewer than before."""
        folders = {partition_of(path.name) for path in data.iterdir() if path.is_dir()} - {None}
        for folder in folders:
            assert folder is not None
            if folder.partition >= partitions.get(folder.topic, 0):
                told = self.told.topics[folder.topic]
                lost = read_topic_id(data / str(folder) / PARTITION_METADATA) is None
                assert lost and not told.sync, f"the folder of {folder}, which is not there"
                self.left_behind.add(data / str(folder))

    def _settings(self, client: WireClient, name: str, told: Topic) -> None:
        resource = DescribeConfigsResource(resource_type=_TOPIC, resource_name=name, configuration_keys=None)
        answer = client.ask(DescribeConfigsRequest(resources=[resource]), 1).results[0]
        values = {config.name: config.value for config in answer.configs if config.config_source == 1}
        for setting, value in told.config.items():
            assert values.get(setting) == value, f"{name}: {setting} is {values.get(setting)}, not {value}"
        for setting, allowed in told.settings.items():
            found = values.get(setting, "")
            assert found in allowed, f"{name}: {setting} is {found or 'not set'}, not one of {allowed}"

    # Records

    def _partition(self, client: WireClient, name: str, index: int) -> None:
        topic = self.told.topics[name]
        told, where = topic.partitions[index], f"{name}-{index}"
        found = read(client, name, index)
        known = self.later.topics[name].partitions[index].acked if name in _kept(self.later) else told.acked
        end = self._ends.setdefault((name, index), found.end)
        history = {offset: value for offset, value in known.items() if offset < end}
        ours = {offset for offset, (_, value) in found.records.items() if value in _OURS}
        records = {offset: found.records[offset] for offset in found.records.keys() - ours}
        for offset, (_, value) in records.items():
            assert value in told.sent, f"{where}: offset {offset} is {value!r}, which nobody has sent"
            due = history.get(offset, value)
            assert value == due, f"{where}: offset {offset} is {value!r}, not {due!r}"
        values = [value for _, value in records.values()]
        assert len(set(values)) == len(values), f"{where}: a record is there twice"
        if topic.sync:
            assert found.end >= told.end, f"{where} ends at {found.end}, {told.end} was acknowledged"
        elif "flush.messages" in topic.config:
            least = told.end - int(topic.config["flush.messages"]) + 1
            assert found.end >= least, f"{where} ends at {found.end}, at least {least} was flushed"
        if topic.config.get("cleanup.policy") == "compact":
            self._latest(where, history, told, found)
        else:
            self._whole(where, told, found, history)

    def _whole(self, where: str, told: Partition, found: Found, history: dict[int, str]) -> None:
        """Nothing is missing between start and end, and nothing deleted is back."""
        assert told.low <= found.start, f"{where} begins at {found.start}, {told.low} was acknowledged"
        assert found.start <= max(told.lowest, told.low), (
            f"{where} begins at {found.start}: too much is deleted"
        )
        # The start itself may have ended transactions, behind what was left.
        there = found.records.keys() | found.markers
        missing = [n for n in range(found.start, found.end) if n in history and n not in there]
        assert not missing, f"{where}: {missing[:5]} are missing between {found.start} and {found.end}"

    def _latest(self, where: str, history: dict[int, str], told: Partition, found: Found) -> None:
        """Of each key the last record before the end is there."""
        last: dict[str | None, int] = {}
        for offset in sorted(history):
            if offset < found.end and history[offset] in told.sent:
                last[told.sent[history[offset]]] = offset
        for key, offset in last.items():
            assert offset in found.records, (
                f"{where}: the last record of key {key} (offset {offset}) is missing"
            )

    # Offsets, and what comes next

    def _offsets(self, client: WireClient, group: str, acked: int, tried: int) -> None:
        found = committed(client, group)
        least = acked if self.synced else -1
        assert least <= found <= tried, (
            f"group {group} is at {found}, {acked} was acknowledged, {tried} tried"
        )

    def _sent_again(self, client: WireClient) -> None:
        """A producer that has been told nothing sends its last batch again: it is there once."""
        if ("sync", "a") not in self.told.batches:
            return
        batch, acked = self.told.batches["sync", "a"]
        before = read(client, "sync", 0)
        offset = send(client, "sync", 0, bytearray.fromhex(batch), None)
        after = read(client, "sync", 0)
        values = [value for _, value in after.records.values()]
        assert len(values) == len(set(values)), "sync-0: a batch that was sent again is there twice"
        if acked >= 0:
            assert offset == acked, f"sync-0: sent again at {offset}, acknowledged at {acked}"
            assert after.end == before.end, "sync-0: a batch that was acknowledged was appended again"

    def _goes_on(self, client: WireClient, there: set[str]) -> None:
        producer = init_producer(client)
        assert producer.producer_id not in self.told.producers, f"producer id {producer.producer_id} again"
        for name in there - {TRANSACTIONS}:
            end = read(client, name, 0).end
            batch = encode_batch([Record(0, 1_000_000_000_000, b"later", b"later")])
            offset = send(client, name, 0, batch, None)
            assert offset == end, f"{name}-0 ends at {end}, the next record is at {offset}"
            assert read(client, name, 0).records[offset] == ("later", "later")

    # Transactions

    def _transactions(self, client: WireClient) -> None:
        """What was prepared is finished; then each transaction is there whole, or not at all."""
        producer = init_producer(client, TRANSACTIONAL)
        logs = until(lambda: self._decided(client), "every transaction has ended", seconds=60)
        ended = self.told.ended
        if self.synced:
            seen = [
                {int(value) for offset, (_, value) in log.records.items() if offset not in log.aborted}
                for log in logs
            ]
            assert seen[0] == seen[1], f"transactions in one partition only: {seen[0] ^ seen[1]}"
            committed_ones = {number for number, commit in ended.items() if commit}
            assert committed_ones <= seen[0], f"committed and missing: {sorted(committed_ones - seen[0])[:5]}"
            asked = {number for number, commit in self.told.ending.items() if commit}
            assert seen[0] <= asked, f"there, but nobody has committed them: {sorted(seen[0] - asked)[:5]}"
            offset = (
                until(lambda: committed(client, TRANSACTIONAL_GROUP, stable=True) + 2, "a stable offset") - 2
            )
            assert offset == max(seen[0], default=-1), (
                f"the group is at {offset}, not {max(seen[0], default=-1)}"
            )
        sequences = [log.end for log in logs]
        for partition, end in enumerate(sequences):
            batch = encode_batch(
                [Record(0, 1_000_000_000_000, None, b"-1")], producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch, base_sequence=0, transactional=True,
            )  # fmt: skip
            offset = send(client, TRANSACTIONS, partition, batch, TRANSACTIONAL)
            assert offset >= end, f"{TRANSACTIONS}-{partition}: a new record at {offset}, it ended at {end}"

    def _decided(self, client: WireClient) -> list[Found] | None:
        logs = [read(client, TRANSACTIONS, partition) for partition in range(2)]
        return logs if all(log.stable == log.end for log in logs) else None


def _kept(later: Told) -> set[str]:
    """Topics that are never deleted: what is at an offset of one of them is there for good."""
    return {name for name in later.topics if not name.startswith("passing-")}


def committed(client: WireClient, group: str, *, stable: bool = False) -> int:
    """The offset that a group has committed for sync-0; -1 if none; with `stable`, -2 while that is being decided."""
    topic = OffsetFetchRequestTopic(name="sync", partition_indexes=[0])
    request = OffsetFetchRequest(group_id=group, topics=[topic], require_stable=stable)

    def ask() -> Any:
        answer = client.ask(request, 7)
        return None if answer.error_code in (14, 15, 16) else answer

    part = until(ask, "the group's coordinator", seconds=60).topics[0].partitions[0]
    return -2 if part.error_code else int(part.committed_offset)


def read(client: WireClient, topic: str, partition: int) -> Found:
    """All of a partition, also what is not decided. What is aborted by the markers is so by what Fetch says to readers
    of read_committed. Read again if the coordinator has ended a transaction meanwhile."""
    while True:
        found, ranges = _read_once(client, topic, partition)
        named = _aborted(client, topic, partition, found.start) if ranges else ranges
        if client.list_offset(topic, -1, partition=partition).offset == found.end:
            where = f"{topic}-{partition}"
            assert named == ranges, f"{where}: aborted by Fetch {named}, by the markers {ranges}"
            return found


def _read_once(client: WireClient, topic: str, partition: int) -> tuple[Found, set[tuple[int, int]]]:
    """What is there, and producer and first offset of each transaction that a marker has aborted."""
    answer = client.list_offset(topic, -2, partition=partition)
    where, start = f"{topic}-{partition}", answer.offset
    assert answer.error_code == 0, f"{where}: error {answer.error_code}"
    records: dict[int, tuple[str | None, str]] = {}
    going: dict[int, set[int]] = {}
    markers: set[int] = set()
    aborted: set[int] = set()
    ranges: set[tuple[int, int]] = set()
    at = start
    while True:
        data = client.fetch(topic, at, partition=partition)
        assert data.error_code == 0, f"{where}: error {data.error_code} at offset {at}"
        before = at
        for header, batch in _batches(bytes(data.records or b"")):
            assert header.next_offset > at, f"{where}: offset {header.base_offset} after {at}"
            at = header.next_offset
            for record in decode_records(batch):
                if header.is_control:
                    markers.add(record.offset)
                    ended = going.pop(header.producer_id, set())
                    if control_record(record).type != _COMMIT:
                        aborted |= ended
                        ranges |= {(header.producer_id, min(ended))} if ended else set()
                elif record.offset >= start:
                    key = record.key.decode() if record.key is not None else None
                    records[record.offset] = key, (record.value or b"").decode().rstrip(".")
                    if header.is_transactional:
                        going.setdefault(header.producer_id, set()).add(record.offset)
        if at == before:
            break
    assert at == data.high_watermark, f"{where} ends at {data.high_watermark}, nothing comes after {at}"
    found = Found(start, at, data.last_stable_offset, records, markers, aborted, set().union(*going.values()))
    return found, ranges


def _batches(data: bytes) -> Iterator[tuple[BatchHeader, bytes]]:
    at = 0
    while at < len(data):
        header = parse(data, at)
        yield header, data[at : at + header.size]
        at += header.size


def _aborted(client: WireClient, topic: str, partition: int, at: int) -> set[tuple[int, int]]:
    """Producer and first offset of each aborted transaction, as readers of read_committed are told."""
    found: set[tuple[int, int]] = set()
    while True:
        item = FetchPartition(partition=partition, fetch_offset=at, partition_max_bytes=1 << 24)
        request = FetchRequest(
            max_bytes=1 << 24, isolation_level=1, topics=[FetchTopic(topic=topic, partitions=[item])]
        )
        data = client.ask(request, 11).responses[0].partitions[0]
        found |= {(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()}
        headers = [header for header, _ in _batches(bytes(data.records or b""))]
        if not headers:
            return found
        at = headers[-1].next_offset
