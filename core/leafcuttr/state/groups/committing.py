"""Committing, fetching, deleting and expiring offsets. Their places in memory follow the log, never lead it.

One module, a little longer than others, because each of them keeps the log and what is in memory in step.
"""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ErrorCode, GroupIdNotFound, IllegalGeneration, NonEmptyGroup
from leafcuttr.state.groups.offsets import NO_EXPIRY, OffsetAndMetadata
from leafcuttr.state.groups.records import group_key, group_value, offset_key, offset_value
from leafcuttr.state.groups.states import GroupState
from leafcuttr.state.groups.store import OffsetsLog
from leafcuttr.state.groups.subscription import CONSUMER, subscribed_topics
from leafcuttr.state.groups.table import Entry, GroupTable
from leafcuttr.state.internal_log import KeyValue, ProducerIdAndEpoch
from leafcuttr_sdk import Clock, TopicPartition

# Tombstones go out in batches of at most this many records, well below the largest batch a log takes.
_TOMBSTONES: Final = 1000

# Kafka's answer to a write that takes longer than offsets.commit.timeout.ms: the client tries again.
_TOO_SLOW: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE

_LAST_MS: Final = 2**63 - 1  # the last time that the record can say


class Committer(NamedTuple):
    """The sender of a commit. A simple consumer or an administrator has generation -1 and neither member nor instance
    id.
    """

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


class NewOffset(NamedTuple):
    """One partition of an OffsetCommit. The caller has checked that the partition exists."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class Offsets:
    """The committed offsets of all groups. `stable` is called with a group when one of its transactions has ended,
    `changed` when it may have become idle or be so no longer."""

    def __init__(
        self,
        *,
        table: GroupTable,
        log: OffsetsLog,
        settings: Settings,
        clock: Clock,
        stable: Callable[[str], None] = lambda _: None,
        changed: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._stable = stable
        self._changed = changed
        self._table = table
        self._log = log
        self._settings = settings
        self._clock = clock
        # The groups with offsets in open transactions, by partition of `__consumer_offsets` and producer id.
        self._open: dict[tuple[int, int], set[Entry]] = {}
        # Ends of transactions (producer id, commit, offset of the marker) in partitions that are being read.
        self._late: dict[int, list[tuple[int, bool, int]]] = {}
        # Topics that were deleted while partitions were being read.
        self._gone: set[str] = set()

    def commit(
        self,
        group_id: str,
        committer: Committer,
        offsets: Sequence[NewOffset],
        *,
        retention_ms: int = -1,
        knows_missing_groups: bool = True,
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """Commit offsets: one error code for each, in order, once those accepted are in the log.

        An awaitable comes back only if the disk is slow. `knows_missing_groups`: v9 and later (KIP-848) get
        GROUP_ID_NOT_FOUND where older clients expect ILLEGAL_GENERATION. Raises GroupIdNotFound,
        IllegalGeneration, CoordinatorLoadInProgress, CoordinatorNotAvailable.
        """
        entry = self._table.find(group_id)
        if entry is None:
            if committer.generation >= 0:
                raise GroupIdNotFound if knows_missing_groups else IllegalGeneration
            entry = self._table.find_or_create(group_id)
        error = entry.group.check_commit(
            committer.member_id, committer.instance_id, committer.generation, self._clock.monotonic()
        )
        if error:
            return [error] * len(offsets)
        return self._write(entry, offsets, retention_ms)

    def commit_in_transaction(
        self,
        group_id: str,
        committer: Committer,
        producer: ProducerIdAndEpoch,
        offsets: Sequence[NewOffset],
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """TxnOffsetCommit: as `commit`, but no client sees the offsets until `transaction_ended`. That the producer is
        in a transaction with this group has been checked.

        Raises IllegalGeneration, CoordinatorLoadInProgress, CoordinatorNotAvailable.
        """
        entry = self._table.find(group_id)
        if entry is None:
            if committer.generation >= 0:
                raise IllegalGeneration
            entry = self._table.find_or_create(group_id)
        error = entry.group.check_transactional_commit(
            committer.member_id, committer.instance_id, committer.generation
        )
        if error:
            return [error] * len(offsets)
        return self._write(entry, offsets, -1, producer)

    def transaction_ended(self, partition: int, producer_id: int, *, commit: bool, marker_at: int) -> None:
        """A marker of this producer is in this partition of `__consumer_offsets`, at this offset."""
        if partition in self._table.loading:
            self._late.setdefault(partition, []).append((producer_id, commit, marker_at))
            return
        for entry in self._open.pop((partition, producer_id), ()):
            entry.offsets.end(producer_id, commit=commit, marker_at=marker_at)
            self._changed(entry)
            self._stable(entry.group.group_id)

    def loaded(self, partition: int, entries: Iterable[Entry]) -> None:
        """The groups of a partition are known. What has happened since it was begun to read happens to them now."""
        for entry in entries:
            for name in self._gone:
                _forget(entry, name)
            for producer_id in entry.offsets.pending:
                self._opened(entry, producer_id)
        for producer_id, commit, marker_at in self._late.pop(partition, ()):
            self.transaction_ended(partition, producer_id, commit=commit, marker_at=marker_at)
        if not self._table.loading:
            self._gone.clear()

    def _opened(self, entry: Entry, producer_id: int) -> None:
        """This group has offsets in a transaction of this producer."""
        self._open.setdefault((entry.partition, producer_id), set()).add(entry)

    def unstable(self, group_id: str) -> frozenset[TopicPartition]:
        """The partitions whose offset an open transaction may change (KIP-447). Raises as `fetch`."""
        entry = self._table.find(group_id)
        return frozenset() if entry is None else entry.offsets.unstable()

    def _write(
        self,
        entry: Entry,
        offsets: Sequence[NewOffset],
        retention_ms: int,
        producer: ProducerIdAndEpoch | None = None,
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        now_ms = self._clock.now_ms()
        expiry = NO_EXPIRY if retention_ms < 0 else min(now_ms + retention_ms, _LAST_MS)
        longest = self._settings.int("offset.metadata.max.bytes")
        codes = [
            ErrorCode.OFFSET_METADATA_TOO_LARGE if len(new.metadata) > longest else ErrorCode.NONE
            for new in offsets
        ]
        group_id = entry.group.group_id
        accepted: list[tuple[NewOffset, OffsetAndMetadata]] = []
        records: list[KeyValue] = []
        for new, code in zip(offsets, codes, strict=True):
            if not code:
                committed = OffsetAndMetadata(
                    new.offset, new.leader_epoch, new.metadata, now_ms, expiry, new.topic_id
                )
                accepted.append((new, committed))
                key = offset_key(group_id, new.topic, new.partition)
                records.append((key, offset_value(committed)))
        if not records:
            self._changed(entry)
            return codes
        done: trio.Event | None = None
        outcome: ErrorCode | None = None

        def written(error: ErrorCode, base_offset: int) -> None:
            nonlocal outcome
            outcome = error
            entry.writing -= 1
            entry.in_log = entry.in_log or not error
            for number, (new, committed) in enumerate(accepted):
                kept = committed._replace(written_at=base_offset + number)
                if producer is not None:
                    _staged(entry, producer.producer_id, new, committed, None if error else kept)
                elif not error:
                    entry.offsets.put(new.topic, new.partition, kept)
            self._changed(entry)
            if not error:
                crashpoints.reach("group-commit.appended")
            if done is not None:
                done.set()

        def answer() -> list[ErrorCode]:
            return [code or outcome or ErrorCode.NONE for code in codes]

        entry.writing += 1
        if producer is not None:
            # Before the write: the marker may be reported first where a worker does both.
            self._opened(entry, producer.producer_id)
            for new, committed in accepted:
                entry.offsets.stage(producer.producer_id, TopicPartition(new.topic, new.partition), committed)
        self._log.write(entry.partition, records, written, producer=producer)
        if outcome is not None:
            return answer()
        event = done = trio.Event()

        async def wait() -> list[ErrorCode]:
            with trio.move_on_after(self._patience_s):
                await event.wait()
                return answer()
            return [code or _TOO_SLOW for code in codes]

        return wait()

    @property
    def _patience_s(self) -> float:
        """How long a client waits for the disk. What is under way goes on, and counts once it is written."""
        return self._settings.int("offsets.commit.timeout.ms") / 1000

    def fetch(self, group_id: str) -> Mapping[str, Mapping[int, OffsetAndMetadata]]:
        """All offsets of a group by topic and partition; none if there is no such group.

        Raises CoordinatorLoadInProgress, CoordinatorNotAvailable.
        """
        entry = self._table.find(group_id)
        return {} if entry is None else entry.offsets.by_topic

    def delete(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        """OffsetDelete: one error code for each partition, to be awaited where the disk holds the write up.

        Raises GroupIdNotFound, NonEmptyGroup (members that are no consumers may use anything),
        CoordinatorLoadInProgress, CoordinatorNotAvailable.
        """
        entry = self._table.find(group_id)
        if entry is None:
            raise GroupIdNotFound
        group = entry.group
        if not group.is_empty and group.protocol_type != CONSUMER:
            raise NonEmptyGroup
        used = _topics_in_use(entry)
        codes = [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if used is None or each.topic in used else ErrorCode.NONE
            for each in partitions
        ]
        free = [each for each, code in zip(partitions, codes, strict=True) if not code]
        coming = self.write_tombstones(entry, [each for each in free if entry.offsets.get(*each) is not None])
        if isinstance(coming, ErrorCode):
            return [code or coming for code in codes]
        later = coming

        async def wait() -> list[ErrorCode]:
            error = _TOO_SLOW
            with trio.move_on_after(self._patience_s):
                error = await later
            return [code or error for code in codes]

        return wait()

    def write_tombstones(
        self, entry: Entry, partitions: Sequence[TopicPartition], *, group_too: bool = False
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """Write tombstones for these offsets, and for the group itself if `group_too`; forget what was
        written.

        Returns the first error, or what will be it where the disk holds a write up: nothing may be answered before.
        """
        group_id = entry.group.group_id
        writes = _TombstoneWrites()
        for start in range(0, len(partitions), _TOMBSTONES):
            part = partitions[start : start + _TOMBSTONES]

            def written(error: ErrorCode, base_offset: int, part: Sequence[TopicPartition] = part) -> None:
                if not error:
                    for number, (topic, partition) in enumerate(part):
                        entry.offsets.remove(topic, partition, base_offset + number)
                    self._changed(entry)
                    crashpoints.reach("group-commit.tombstones-written")
                writes.wrote(error)

            writes.writing += 1
            self._log.write(entry.partition, [(offset_key(group_id, *each), None) for each in part], written)
        if group_too and not writes.error:

            def group_written(error: ErrorCode, _: int) -> None:
                if not error:
                    crashpoints.reach("group.tombstone-written")
                writes.wrote(error)

            writes.writing += 1
            self._log.write(entry.partition, [(group_key(group_id), None)], group_written)
        return writes if writes.writing else writes.error

    def forget_topic(self, name: str) -> list[tuple[Entry, list[int]]]:
        """A topic was deleted: delete what was committed for it. Returns the rest for `write_tombstones_of_topic`."""
        if self._table.loading:
            self._gone.add(name)
        found = []
        for entry in self._table:
            partitions = _forget(entry, name)
            if partitions:
                found.append((entry, sorted(partitions)))
        return found

    async def write_tombstones_of_topic(self, name: str, found: Sequence[tuple[Entry, list[int]]]) -> None:
        """Write the tombstones of a topic that is gone, but none over a commit for its successor.

        If the process dies in between, the loader sees from the topic's id that these offsets are of no use.
        """
        for entry, partitions in found:
            current = self._table.find(entry.group.group_id) or entry
            gone = [each for each in partitions if current.offsets.get(name, each) is None]
            self.write_tombstones(current, [TopicPartition(name, each) for each in gone])
            await trio.lowlevel.checkpoint()

    def expire(self, entry: Entry) -> None:
        """Write tombstones for what is past `offsets.retention.minutes` (KIP-211).

        An empty group's time counts from when it became empty; that of a simple group, and of topics that a
        consumer group in use no longer subscribes to, from the commit.
        """
        group = entry.group
        since: int | None = None
        used: Iterable[str] = ()
        if group.protocol_type is not None:
            if group.is_empty:
                since = entry.state_since_ms
            else:
                topics = _topics_in_use(entry)
                if group.state is not GroupState.STABLE or topics is None:
                    return
                used = topics
        now_ms = self._clock.now_ms()
        retention_ms = self._settings.int("offsets.retention.minutes") * 60_000
        unstable = entry.offsets.unstable()
        expired = [
            partition
            for partition, committed in entry.offsets
            if partition.topic not in used
            and partition not in unstable
            and committed.expired(now_ms, retention_ms, since)
        ]
        if expired:
            self.write_tombstones(entry, expired)


class _TombstoneWrites:
    """Tombstones on their way; awaited, the first error once all are written."""

    def __init__(self) -> None:
        self.writing = 0
        self.error = ErrorCode.NONE
        self._done: trio.Event | None = None

    def wrote(self, error: ErrorCode) -> None:
        self.writing -= 1
        self.error = self.error or error
        if self._done is not None and not self.writing:
            self._done.set()

    def __await__(self) -> Generator[Any, Any, ErrorCode]:
        if self.writing:
            self._done = self._done or trio.Event()
            yield from self._done.wait().__await__()
        return self.error


def _forget(entry: Entry, topic: str) -> set[int]:
    """Forget what was committed for a topic; the partitions there were."""
    partitions = set(entry.offsets.by_topic.pop(topic, ()))
    for producer_id, offsets in list(entry.offsets.pending.items()):
        for each in [each for each in offsets if each.topic == topic]:
            entry.offsets.unstage(producer_id, each)
            partitions.add(each.partition)
    return partitions


def _staged(
    entry: Entry,
    producer_id: int,
    new: NewOffset,
    committed: OffsetAndMetadata,
    kept: OffsetAndMetadata | None,
) -> None:
    """What was staged is in the log as `kept`, or not at all; unless its transaction has ended meanwhile, or it was
    committed again."""
    partition = TopicPartition(new.topic, new.partition)
    if entry.offsets.pending.get(producer_id, {}).get(partition) is not committed:
        return
    if kept is None:
        entry.offsets.unstage(producer_id, partition)
    else:
        entry.offsets.stage(producer_id, partition, kept)


def group_record(entry: Entry, assignments: Mapping[str, bytes], now_ms: int) -> KeyValue:
    """The record of the group's metadata as it is."""
    since = now_ms if entry.state_since_ms is None else entry.state_since_ms
    return group_key(entry.group.group_id), group_value(entry.group, assignments, since)


def _topics_in_use(entry: Entry) -> frozenset[str] | None:
    """What members subscribe to; none if there are no members, None if it cannot be known."""
    if entry.group.is_empty:
        return frozenset()
    return subscribed_topics(entry.group)
