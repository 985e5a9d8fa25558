"""Reading the groups back from `__consumer_offsets` at start, some partitions at once.

Only the last record of each key counts, so the values are parsed when all keys of a partition have been seen. Offsets
that were committed in a transaction count if its commit marker follows, by their place and not by the marker's; those
whose transaction has not ended are handed to their groups as pending. A marker may be written while a partition is
read, too late to be seen here: `published` is called with the groups before anything else can happen.
A record that cannot be read is skipped with a warning; a log that cannot be read makes its groups
unavailable.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final

import trio

from leafcuttr.errors import BrokerError
from leafcuttr.state.groups.machine import Group
from leafcuttr.state.groups.offsets import OffsetAndMetadata
from leafcuttr.state.groups.records import (
    GroupKey,
    OffsetKey,
    members_of,
    parse_group,
    parse_key,
    parse_offset,
)
from leafcuttr.state.groups.store import OffsetsLog
from leafcuttr.state.groups.table import Entry, GroupTable
from leafcuttr.wire.batch import BatchHeader
from leafcuttr.wire.entries import decode_entries
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.markers import COMMIT
from leafcuttr.wire.messages.internal.group_metadata import GroupMetadataValue
from leafcuttr.wire.records import control_record, decode_records
from leafcuttr_sdk import Clock, TopicPartition

logger = logging.getLogger(__name__)

# How many records are read between two checkpoints of the loop.
_STEP: Final = 500

NO_PRODUCER: Final = -1

_Value = tuple[int, bytes | None]


async def load(
    table: GroupTable,
    log: OffsetsLog,
    clock: Clock,
    published: Callable[[int, list[Entry]], None],
    at_once: int = 1,
) -> None:
    """Load every partition in `table.loading`, `at_once` of them at a time, publishing each as it is done."""
    partitions = iter(sorted(table.loading))
    async with trio.open_nursery() as nursery:
        for _ in range(min(at_once, len(table.loading))):
            nursery.start_soon(_load_each, partitions, table, log, clock, published)


async def _load_each(
    partitions: Iterator[int],
    table: GroupTable,
    log: OffsetsLog,
    clock: Clock,
    published: Callable[[int, list[Entry]], None],
) -> None:
    """The next of `partitions` until there is none."""
    for partition in partitions:
        try:
            entries = await _load_partition(table, log, partition)
        except (BrokerError, WireError) as error:
            logger.error(
                "__consumer_offsets-%d cannot be read, its groups are not available: %s", partition, error
            )
            table.failed.add(partition)
            entries = []
        if partition not in table.loading:
            continue  # the topic has been deleted meanwhile
        table.loading.discard(partition)
        for entry in entries:
            entry.group.resume(clock.monotonic())
            table.adopt(entry)
        published(partition, entries)


class _Latest:
    """The last record of each key (offset, value; None for a tombstone), and those of open transactions by producer."""

    def __init__(self) -> None:
        self.records: dict[bytes, _Value] = {}
        self.open: dict[int, dict[bytes, _Value]] = {}

    def take(self, header: BatchHeader, batch: memoryview) -> None:
        """One more batch. Raises WireError."""
        if header.is_control:
            self._end(header.producer_id, batch)
            return
        into = self.records
        if header.is_transactional:
            into = self.open.setdefault(header.producer_id, {})
        for offset, key, value in decode_entries(header, batch):
            if key is not None:
                into[key] = offset, value
                if value is None:
                    # To delete an offset is also to delete the one that is not decided yet.
                    for pending in self.open.values():
                        pending.pop(key, None)

    def _end(self, producer_id: int, batch: memoryview) -> None:
        record = next(decode_records(batch), None)
        pending = self.open.pop(producer_id, {})
        if record is not None and control_record(record).type == COMMIT:
            for key, value in pending.items():
                if key not in self.records or self.records[key][0] < value[0]:
                    self.records[key] = value


async def _load_partition(table: GroupTable, log: OffsetsLog, partition: int) -> list[Entry]:
    latest = _Latest()
    async for batches in log.batches(partition):
        for header, batch in batches:
            latest.take(header, batch)
    found = _Found(table, partition)
    number = 0
    for producer_id, records in (NO_PRODUCER, latest.records), *latest.open.items():
        for key, (offset, value) in records.items():
            number += 1
            if number % _STEP == 0:
                await trio.lowlevel.checkpoint()
            try:
                if value is not None:
                    found.apply(key, value, offset, producer_id)
            except WireError as error:
                logger.warning("record %d of __consumer_offsets-%d is skipped: %s", offset, partition, error)
    return list(found.entries.values())


class _Found:
    """The groups of a partition, made of its latest records."""

    def __init__(self, table: GroupTable, partition: int) -> None:
        self.entries: dict[str, Entry] = {}
        self._table = table
        self._partition = partition
        # By the key without its number of a partition: a group's offsets of one topic, and the ids it may have had.
        self._places: dict[bytes, tuple[dict[int, OffsetAndMetadata], tuple[bytes, ...]]] = {}

    def apply(self, key: bytes, value: bytes, offset: int, producer_id: int) -> None:
        """Raises WireError."""
        if producer_id == NO_PRODUCER:
            known = self._places.get(key[:-4])
            if known is not None:
                partitions, ids = known
                committed = parse_offset(value, offset)
                number = int.from_bytes(key[-4:], "big", signed=True)
                if committed.topic_id in ids:
                    partitions[number] = committed
                return
        parsed = parse_key(key)
        if isinstance(parsed, OffsetKey):
            self._offset(parsed, key, parse_offset(value, offset), producer_id)
        elif isinstance(parsed, GroupKey):
            _restore(self._entry(parsed.group), parse_group(value))

    def _entry(self, group_id: str) -> Entry:
        entry = self.entries.get(group_id)
        if entry is None:
            entry = self.entries[group_id] = Entry(
                Group(group_id, self._table.limits), self._partition, in_log=True
            )
        return entry

    def _offset(self, parsed: OffsetKey, key: bytes, committed: OffsetAndMetadata, producer_id: int) -> None:
        entry = self._entry(parsed.group)
        # A topic may have been deleted, and made anew, without time for its tombstones.
        if not self._table.log.knows(parsed.topic, committed.topic_id):
            return
        if producer_id != NO_PRODUCER:
            entry.offsets.stage(producer_id, TopicPartition(parsed.topic, parsed.partition), committed)
            return
        entry.offsets.put(parsed.topic, parsed.partition, committed)
        self._places[key[:-4]] = entry.offsets.by_topic[parsed.topic], self._table.log.ids(parsed.topic)


def _restore(entry: Entry, found: GroupMetadataValue) -> None:
    entry.group.restore(
        generation=found.generation,
        protocol_type=found.protocol_type or None,
        protocol_name=found.protocol,
        leader=found.leader,
        members=members_of(found),
    )
    since = found.current_state_timestamp
    entry.state_since_ms = None if since < 0 else since
