"""The group coordinator: hands requests to the groups' machines, carries out their effects, keeps their time.

One task (`run`) serves all groups: it loads them, ticks those that are due and lets offsets expire. Requests
run on their connections' tasks; one that waits does so in `WaitingRequest`, and when it is cancelled the machine does
not notice: the member stays until its session or the rebalance ends.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import trio

from leafcuttr import crashpoints
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ErrorCode, GroupIdNotFound, GroupMaxSizeReached, UnknownMemberId
from leafcuttr.runtime.pacing import Pace
from leafcuttr.runtime.standstill import wait_for_peers
from leafcuttr.state.groups.committing import Offsets, group_record
from leafcuttr.state.groups.events import (
    NO_MEMBER,
    Answer,
    GroupLimits,
    Join,
    JoinAnswer,
    Leaver,
    Store,
    Sync,
    SyncAnswer,
)
from leafcuttr.state.groups.idle import HandedOut, IdleGroups
from leafcuttr.state.groups.loader import load
from leafcuttr.state.groups.machine import Group
from leafcuttr.state.groups.members import size_of
from leafcuttr.state.groups.store import OffsetsLog
from leafcuttr.state.groups.table import Entry, GroupTable
from leafcuttr.state.groups.timers import Timers
from leafcuttr.state.topic_names import CONSUMER_OFFSETS
from leafcuttr.state.topics import Topic, Topics
from leafcuttr_sdk import Clock, TopicPartition

logger = logging.getLogger(__name__)

# Members may offer so many protocols, all of whose metadata is kept, while one of them is stored.
_PROTOCOLS: Final = 4


class WaitingRequest:
    """A request that waits for its group's answer; the token that its machine keeps."""

    __slots__ = ("_event", "_gave_up", "answer")

    def __init__(self) -> None:
        self.answer: JoinAnswer | SyncAnswer | None = None
        self._event: trio.Event | None = None
        self._gave_up = False

    def resolve(self, answer: JoinAnswer | SyncAnswer) -> None:
        self.answer = answer
        if self._event is not None:
            self._event.set()

    def give_up(self) -> None:
        """End the wait without an answer: the broker stops."""
        self._gave_up = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Return once there is an answer, or none will come."""
        if self.answer is None and not self._gave_up:
            self._event = trio.Event()
            await self._event.wait()


class GroupCoordinator:
    """All groups of this broker. `offsets` are theirs."""

    def __init__(self, *, settings: Settings, topics: Topics, clock: Clock) -> None:
        limits = GroupLimits(
            max_size=settings.int("group.max.size"),
            initial_rebalance_delay_ms=settings.int("group.initial.rebalance.delay.ms"),
        )
        self._settings = settings
        self._clock = clock
        self._log = OffsetsLog(topics=topics, settings=settings, clock=clock)
        self._table = GroupTable(self._log, limits)
        self._table.loading = self._log.partitions_to_load()
        self._timers = Timers(clock)
        self._idle = IdleGroups(self._table, self._delete)
        self._handed_out = HandedOut(self._give_up)
        self._trimming = False
        self._nursery: trio.Nursery | None = None
        self.rebalances = 0  # generations begun
        self._watchers: dict[str, set[Callable[[], None]]] = {}
        self.offsets = Offsets(
            table=self._table,
            log=self._log,
            settings=settings,
            clock=clock,
            stable=self._tell,
            changed=self._note_idle,
        )
        topics.on_deleted.append(self._topic_deleted)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Load, then keep the groups' time until cancelled."""
        async with trio.open_nursery() as nursery:
            self._log.use(nursery)
            self._nursery = nursery
            try:
                task_status.started()
                at_once = self._settings.int("group.coordinator.threads")
                await load(self._table, self._log, self._clock, self._loaded, at_once)
                nursery.start_soon(self._expire_now_and_then)
                while True:
                    await wait_for_peers(self._timers.late_s)
                    async for entry in Pace().over(self._timers.due()):
                        self._tick(entry)
                    await self._timers.wait()
            finally:
                self._log.use(None)
                self._nursery = None

    async def ready(self) -> None:
        """Make sure that groups can be stored. Raises CoordinatorNotAvailable."""
        await self._log.ready()

    def partition_of(self, group_id: str) -> TopicPartition:
        """The partition that keeps this group."""
        return TopicPartition(CONSUMER_OFFSETS, self._log.partition_of(group_id))

    # --- requests ---------------------------------------------------------------------------------------

    def join(self, group_id: str, join: Join) -> WaitingRequest:
        """JoinGroup; the waiter may have its answer already.

        Raises UnknownMemberId (a member of a group that does not exist), GroupMaxSizeReached,
        CoordinatorLoadInProgress, CoordinatorNotAvailable.
        """
        entry = self._table.find(group_id)
        self._check_size(entry, join)
        if entry is None:
            if join.member_id != NO_MEMBER:
                raise UnknownMemberId
            entry = self._table.find_or_create(group_id)
            entry.state_since_ms = self._clock.now_ms()
        waiter = WaitingRequest()
        entry.group.join(join, waiter, self._clock.monotonic())
        self._settle(entry)
        answer = waiter.answer
        if isinstance(answer, JoinAnswer) and answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._handed_out.add(group_id, answer.member_id)
        self._idle.trim()
        return waiter

    def _check_size(self, entry: Entry | None, join: Join) -> None:
        """Refuse a member with which the group could not be stored: one request may carry 100 MB, and stay as long as
        its session."""
        size = size_of(join.protocols)
        if entry is not None:
            former = entry.group.members.by_id.get(join.member_id)
            size += entry.group.members.size - (size_of(former.protocols) if former else 0)
        most = _PROTOCOLS * self._log.largest_batch()
        if size > most:
            raise GroupMaxSizeReached(f"The metadata of the group's members is more than {most} bytes.")

    def sync(self, group_id: str, sync: Sync) -> WaitingRequest:
        """SyncGroup; raises as `join`."""
        entry = self._table.find(group_id)
        if entry is None:
            raise UnknownMemberId
        waiter = WaitingRequest()
        entry.group.sync(sync, waiter, self._clock.monotonic())
        self._settle(entry)
        return waiter

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Heartbeat. Raises CoordinatorLoadInProgress, CoordinatorNotAvailable."""
        entry = self._table.find(group_id)
        if entry is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return entry.group.heartbeat(member_id, instance_id, generation, self._clock.monotonic())

    def leave(self, group_id: str, leavers: Sequence[Leaver]) -> list[ErrorCode]:
        """LeaveGroup: one error code for each leaver. Raises as `heartbeat`."""
        entry = self._table.find(group_id)
        if entry is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)
        errors = entry.group.leave(leavers, self._clock.monotonic())
        self._settle(entry)
        self._idle.trim()
        return errors

    def find(self, group_id: str) -> Group:
        """The group, for reading. Raises GroupIdNotFound, and as `heartbeat`."""
        entry = self._table.find(group_id)
        if entry is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return entry.group

    def all(self) -> list[Group]:
        """Every group that has been loaded, for reading."""
        return [entry.group for entry in self._table]

    def entries(self) -> list[Entry]:
        """Every group that has been loaded with its offsets, for reading."""
        return list(self._table)

    @property
    def failed(self) -> int:
        """How many partitions of `__consumer_offsets` cannot be read: their groups are not available."""
        return len(self._table.failed)

    @property
    def loading(self) -> bool:
        return bool(self._table.loading)

    @contextmanager
    def watch(self, group_id: str, call: Callable[[], None]) -> Iterator[None]:
        """Call the function, for as long as the context lasts, whenever the group may answer otherwise than before: it
        has another state, its offsets have been loaded, one that was held back by a transaction is decided, it is gone.
        There need be no such group. So members in this process are told of a rebalance, long before their next
        heartbeat."""
        watchers = self._watchers.setdefault(group_id, set())
        watchers.add(call)
        try:
            yield
        finally:
            watchers.discard(call)
            if not watchers and self._watchers.get(group_id) is watchers:
                del self._watchers[group_id]

    def _tell(self, group_id: str) -> None:
        for call in tuple(self._watchers.get(group_id, ())):
            call()

    def delete(self, group_id: str) -> ErrorCode | Awaitable[ErrorCode]:
        """DeleteGroups: the group and its offsets. To be awaited where the disk holds the write up. Raises as
        `heartbeat`."""
        entry = self._table.find(group_id)
        if entry is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return self._delete(entry) if entry.group.is_empty else ErrorCode.NON_EMPTY_GROUP

    # --- effects ----------------------------------------------------------------------------------------

    def _loaded(self, partition: int, entries: list[Entry]) -> None:
        self.offsets.loaded(partition, entries)
        for entry in entries:
            entry.generation_seen = entry.group.generation
            self._settle(entry)
        if not self._table.loading:
            self._idle.sort()
            self._trim_soon()
        for group_id in tuple(self._watchers):
            if self._log.partition_of(group_id) == partition:
                self._tell(group_id)

    def _settle(self, entry: Entry) -> None:
        """Carry out the effects of the machine, until there are no more."""
        group = entry.group
        while effects := group.take_effects():
            for effect in effects:
                if isinstance(effect, Answer):
                    assert isinstance(effect.token, WaitingRequest)
                    effect.token.resolve(effect.value)
                else:
                    self._store(entry, effect)
        self._note_change(entry)
        if group.generation > entry.generation_seen:
            self.rebalances += group.generation - entry.generation_seen
            entry.generation_seen = group.generation
        if self._table.known(group.group_id) is entry:
            self._timers.want(entry)
        self._idle.note(entry)

    def _note_change(self, entry: Entry) -> None:
        if entry.group.changes != entry.changes_seen:
            entry.changes_seen = entry.group.changes
            entry.state_since_ms = self._clock.now_ms()
            self._tell(entry.group.group_id)

    def _store(self, entry: Entry, store: Store) -> None:
        group = entry.group
        self._note_change(entry)
        at_once = True

        def written(error: ErrorCode, _: int) -> None:
            entry.writing -= 1
            entry.in_log = entry.in_log or not error
            if not error:
                crashpoints.reach("group.stored")
            group.stored(store, error, self._clock.monotonic())
            if not at_once:
                self._settle(entry)
                self._trim_soon()

        entry.writing += 1
        size = sum(len(each.metadata(group.protocol_name)) for each in group.members)
        refused = self._log.refuses(entry.partition, size + sum(map(len, store.assignments.values())))
        if refused:
            written(refused, -1)
            return
        record = group_record(entry, store.assignments, self._clock.now_ms())
        self._log.write(entry.partition, [record], written)
        at_once = False

    def _delete(self, entry: Entry) -> ErrorCode | Awaitable[ErrorCode]:
        partitions = list({partition for partition, _ in entry.offsets} | entry.offsets.unstable())
        error = self.offsets.write_tombstones(entry, partitions, group_too=entry.in_log or entry.writing > 0)
        if error is ErrorCode.NONE or not isinstance(error, ErrorCode):
            # The answer waits for a write that is held up. A group that uses the id meanwhile begins behind it in the
            # log.
            entry.group.delete()
            self._forget(entry)
        return error

    def _forget(self, entry: Entry) -> None:
        self._table.forget(entry.group.group_id)
        self._timers.drop(entry)
        self._idle.discard(entry)

    def _tick(self, entry: Entry) -> None:
        try:
            entry.group.tick(self._clock.monotonic())
            self._settle(entry)
            self._idle.trim()
        except Exception:
            # One group must not take the others with it; its members join anew.
            logger.exception("group %r is given up after an error in this broker", entry.group.group_id)
            if self._table.find(entry.group.group_id) is entry:
                self._forget(entry)
            _release(entry.group)

    # --- what clients leave behind ----------------------------------------------------------------------

    def _give_up(self, group_id: str, member_id: str) -> None:
        entry = self._table.known(group_id)
        if entry is not None:
            entry.group.give_up(member_id, self._clock.monotonic())
            self._settle(entry)

    def _note_idle(self, entry: Entry) -> None:
        """An offset has come or gone. Nothing is written at once: this may be said in the middle of a write."""
        self._idle.note(entry)
        self._trim_soon()

    def _trim_soon(self) -> None:
        if self._idle.too_many and not self._trimming and self._nursery is not None:
            self._trimming = True
            self._nursery.start_soon(self._trim_all)

    async def _trim_all(self) -> None:
        try:
            await self._idle.trim_all()
        finally:
            self._trimming = False

    # --- on a timer --------------------------------------------------------------------------------------

    async def _expire_now_and_then(self) -> None:
        while True:
            await trio.sleep(self._settings.int("offsets.retention.check.interval.ms") / 1000)
            for entry in self._table:
                self.expire(entry)
                await trio.lowlevel.checkpoint()

    def expire(self, entry: Entry) -> None:
        """Let old offsets go, and the group with its last one."""
        group = entry.group
        if self._table.find(group.group_id) is not entry:
            return
        self.offsets.expire(entry)
        if entry.is_idle:
            self._delete(entry)

    def _topic_deleted(self, topic: Topic) -> None:
        if topic.name != CONSUMER_OFFSETS:
            found = self.offsets.forget_topic(topic.name)
            if found and self._nursery is not None:
                self._nursery.start_soon(self.offsets.write_tombstones_of_topic, topic.name, found)
            return
        # To delete this topic is to delete the groups. Waiting members are told to find the coordinator again.
        self._table.loading.clear()
        self._table.failed.clear()
        for entry in self._table.clear():
            self._timers.drop(entry)
            self._idle.discard(entry)
            _release(entry.group)
            self._tell(entry.group.group_id)


def _release(group: Group) -> None:
    """End the requests that wait for a deleted group."""
    for member in group.members:
        for token in (member.joining, member.syncing):
            if isinstance(token, WaitingRequest):
                token.give_up()
