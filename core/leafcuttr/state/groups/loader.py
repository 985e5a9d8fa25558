"""Reading the groups back from `__consumer_offsets` at start, one partition after the other.

Only the last record of each key counts, so the values are parsed when all keys of a partition have been seen.
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
from leafcuttr.wire.errors import WireError
from leafcuttr_sdk import Clock

logger = logging.getLogger(__name__)

# How many records are looked at between two looks at what else the loop has to do.
_STEP: Final = 500


def partitions_to_load(log: OffsetsLog) -> set[int]:
    """The partitions that hold anything."""
    topic = log.topic
    if topic is None:
        return set()
    return {
        partition.index
        for partition in topic.partitions
        if partition.log.offline is not None or partition.log.high_watermark > partition.log.log_start_offset
    }


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


async def _load_partition(table: GroupTable, log: OffsetsLog, partition: int) -> list[Entry]:
    latest: dict[bytes, tuple[int, bytes]] = {}
    async for record in log.replay(partition):
        if record.key is None:
            continue
        if record.value is None:
            latest.pop(record.key, None)
        else:
            latest[record.key] = (record.offset, record.value)
    entries: dict[str, Entry] = {}
    for number, (key, (offset, value)) in enumerate(latest.items()):
        if number % _STEP == 0:
            await trio.lowlevel.checkpoint()
        try:
            _apply(table, entries, partition, key, value, offset)
        except WireError as error:
            logger.warning("record %d of __consumer_offsets-%d is skipped: %s", offset, partition, error)
    return list(entries.values())


def _apply(
    table: GroupTable, entries: dict[str, Entry], partition: int, key: bytes, value: bytes, offset: int
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
        if table.log.knows(parsed.topic, committed.topic_id):
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
