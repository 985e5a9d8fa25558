"""Reading the groups back from `__consumer_offsets` at start, one partition after the other.

Only the last record of each key counts, so the values are parsed when all keys of a partition have been seen. Offsets
that were committed in a transaction count if its commit marker follows, by their place and not by the marker's; those
whose transaction has not ended are handed to their groups as pending.
A record that cannot be read is skipped with a warning; a log that cannot be read makes its groups
unavailable.
"""

import logging
from typing import Final

import trio

from leafcuttr.errors import BrokerError
from leafcuttr.state.groups.machine import Group
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
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.markers import COMMIT
from leafcuttr.wire.records import control_record, decode_records
from leafcuttr_sdk import Clock, TopicPartition

logger = logging.getLogger(__name__)

# How many records are looked at between two looks at what else the loop has to do.
_STEP: Final = 500

NO_PRODUCER: Final = -1

_Value = tuple[int, bytes | None]


async def load(table: GroupTable, log: OffsetsLog, clock: Clock) -> list[Entry]:
    """Load every partition in `table.loading`, publishing each as it is done. Returns the groups."""
    loaded: list[Entry] = []
    for partition in sorted(table.loading):
        try:
            entries = await _load_partition(table, log, partition)
        except (BrokerError, WireError) as error:
            logger.error(
                "__consumer_offsets-%d cannot be read, its groups are not available: %s", partition, error
            )
            table.failed.add(partition)
        else:
            for entry in entries:
                entry.group.resume(clock.monotonic())
                table.adopt(entry)
            loaded += entries
        table.loading.discard(partition)
    return loaded


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
        for record in decode_records(batch):
            if record.key is not None:
                into[record.key] = record.offset, record.value
                if record.value is None:
                    # Whoever deletes an offset also means the one that is not decided yet.
                    for pending in self.open.values():
                        pending.pop(record.key, None)

    def _end(self, producer_id: int, batch: memoryview) -> None:
        record = next(decode_records(batch), None)
        pending = self.open.pop(producer_id, {})
        if record is not None and control_record(record).type == COMMIT:
            for key, value in pending.items():
                if key not in self.records or self.records[key][0] < value[0]:
                    self.records[key] = value


async def _load_partition(table: GroupTable, log: OffsetsLog, partition: int) -> list[Entry]:
    latest = _Latest()
    async for header, batch in log.batches(partition):
        latest.take(header, batch)
    entries: dict[str, Entry] = {}
    number = 0
    for producer_id, records in (NO_PRODUCER, latest.records), *latest.open.items():
        for key, (offset, value) in records.items():
            number += 1
            if number % _STEP == 0:
                await trio.lowlevel.checkpoint()
            try:
                if value is not None:
                    _apply(table, entries, partition, key, value, offset, producer_id)
            except WireError as error:
                logger.warning("record %d of __consumer_offsets-%d is skipped: %s", offset, partition, error)
    return list(entries.values())


def _apply(
    table: GroupTable,
    entries: dict[str, Entry],
    partition: int,
    key: bytes,
    value: bytes,
    offset: int,
    producer_id: int,
) -> None:
    parsed = parse_key(key)
    if parsed is None:
        return
    entry = entries.get(parsed.group)
    if entry is None:
        entry = entries[parsed.group] = Entry(Group(parsed.group, table.limits), partition)
    if isinstance(parsed, OffsetKey):
        committed = parse_offset(value)._replace(written_at=offset)
        # A topic may have been deleted, and made anew, without time for its tombstones.
        if not table.log.knows(parsed.topic, committed.topic_id):
            return
        if producer_id != NO_PRODUCER:
            entry.offsets.stage(producer_id, TopicPartition(parsed.topic, parsed.partition), committed)
        else:
            entry.offsets.put(parsed.topic, parsed.partition, committed)
    elif isinstance(parsed, GroupKey):
        found = parse_group(value)
        entry.group.restore(
            generation=found.generation,
            protocol_type=found.protocol_type or None,
            protocol_name=found.protocol,
            leader=found.leader,
            members=members_of(found),
        )
        since = found.current_state_timestamp
        entry.state_since_ms = None if since < 0 else since
