"""How far groups are behind: in records, and in seconds by the timestamps of what they have not committed.

The age of a group's first uncommitted record has to be read from the log: in turns, and by a worker thread if it is not
in the page cache. The timestamp is kept until the group commits again, so that a group that does not move costs
nothing. One scrape spends a bounded time on the disk; an age that is not known by then has no series in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import trio

from leafcuttr.config.settings import Settings
from leafcuttr.errors import BrokerError
from leafcuttr.log.log import Log, NotCached
from leafcuttr.runtime.pacing import Pace
from leafcuttr.server.admin.names import nameable
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.table import Entry

_DISK_S: Final = 3.0

_Place = tuple[str, int, int]  # topic, partition, offset


@dataclass(slots=True)
class PartitionLag:
    """One partition of one group. `seconds` is None where it is not known."""

    group: str
    topic: str
    partition: int
    committed: int
    records: int
    seconds: float | None


@dataclass(slots=True)
class Lags:
    """All of them, and what they come to for the groups that are not named."""

    partitions: list[PartitionLag] = field(default_factory=list)
    members: list[tuple[str, int]] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)
    offsets: int = 0
    unnamed: int = 0
    other_records: int = 0
    other_members: int = 0


class LagMeter:
    """Measures all groups of a broker, one scrape after the other."""

    def __init__(self, broker: Broker, settings: Settings) -> None:
        self._broker = broker
        self._most = settings.int("lc.metrics.max.group.partitions")
        self._timestamps: dict[_Place, int] = {}

    async def measure(self) -> Lags:
        found, pace = Lags(), Pace()
        before, self._timestamps = self._timestamps, {}
        until = trio.current_time() + _DISK_S
        taken = 0
        for entry in self._broker.groups.entries():
            await pace.turn()
            group = entry.group
            found.states[group.state.value] = found.states.get(group.state.value, 0) + 1
            parts = list(self._parts(entry))
            found.offsets += len(parts)
            taken += max(len(parts), 1)
            if taken > self._most or not nameable(group.group_id):
                taken -= max(len(parts), 1)
                found.unnamed += 1
                found.other_members += len(group.members)
                found.other_records += sum(records for *_, records in parts)
                continue
            found.members.append((group.group_id, len(group.members)))
            for topic, partition, log, committed, records in parts:
                await pace.turn()
                seconds: float | None = 0.0
                if records:
                    place = topic, partition, committed
                    timestamp = before.get(place)
                    if timestamp is None:
                        timestamp = await self._timestamp(log, committed, until)
                    if timestamp is not None:
                        self._timestamps[place] = timestamp
                    seconds = self._age(timestamp)
                found.partitions.append(
                    PartitionLag(group.group_id, topic, partition, committed, records, seconds)
                )
        return found

    def _parts(self, entry: Entry) -> Iterator[tuple[str, int, Log, int, int]]:
        for name, committed in entry.offsets:
            topic = self._broker.topics.by_name.get(name.topic)
            if topic is not None and 0 <= name.partition < len(topic.partitions):
                log = topic.partitions[name.partition].log
                records = max(log.log_end_offset - committed.offset, 0)
                yield name.topic, name.partition, log, committed.offset, records

    def _age(self, timestamp: int | None) -> float | None:
        if timestamp is None or timestamp < 0:
            return None
        return max(self._broker.clock.now_ms() - timestamp, 0) / 1000

    async def _timestamp(self, log: Log, offset: int, until: float) -> int | None:
        """Of the batch that holds the offset; -1 if it has none, None if it cannot be known now."""
        while True:
            try:
                return log.batch_timestamp(offset)
            except NotCached as cold:
                if trio.current_time() > until:
                    return None
                try:
                    await trio.to_thread.run_sync(cold.warm)
                except OSError:
                    return None
            except BrokerError:
                return None
