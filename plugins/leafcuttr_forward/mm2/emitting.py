"""What MirrorMaker writes beside the records: heartbeats, offset syncs, checkpoints. Each is a task that runs until it
is cancelled; a cluster that is away is tried again with pauses that grow, and is one line in the log.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows.errors import line_of
from leafcuttr_forward.flows.pace import Backoff
from leafcuttr_forward.flows.report import Written
from leafcuttr_forward.mm2.internal import Writer, records_of, writing
from leafcuttr_forward.mm2.records import Checkpoint, Heartbeat, OffsetSync
from leafcuttr_forward.mm2.syncs import DueSyncs, SyncStore
from leafcuttr_forward.mm2.translating import Checkpoints
from leafcuttr_sdk.errors import BrokerError, UnknownMemberId

if TYPE_CHECKING:
    import logging

    from leafcuttr_forward.mm2.plan import CheckpointPlan, FlowPlan, HeartbeatPlan, OffsetSyncPlan
    from leafcuttr_sdk.groups import CommittedOffset
    from leafcuttr_sdk.peers import Peer
    from leafcuttr_sdk.types import Clock, TopicPartition

SYNC_PAUSE_S: Final = 1.0
"""How long an offset sync waits that is not due by the number of records."""
_MOST_BYTES: Final = 512 * 1024
"""Of records in one batch; topics take 1 MiB by default."""


async def keep_up(attempt: Callable[[], Awaitable[None]], what: str, logger: "logging.Logger") -> None:
    """Run it again and again: it ends with an error of a cluster only. The same line is logged once."""
    import trio

    backoff, said = Backoff(), ""
    while True:
        began = trio.current_time()
        try:
            await attempt()
        except* BrokerError as group:
            error = _first(group)
            if (line := line_of(error)) != said:
                said = line
                logger.warning("%s: %s; it is tried again", what, line)
        if trio.current_time() - began > 60:
            backoff.reset()
            said = ""
        await trio.sleep(backoff.next_s())


def _first(group: BaseExceptionGroup[BrokerError]) -> BrokerError:
    one: BaseException = group
    while isinstance(one, BaseExceptionGroup):
        one = one.exceptions[0]
    assert isinstance(one, BrokerError)
    return one


async def beat(
    plan: "HeartbeatPlan",
    peer: "Peer",
    *,
    clock: "Clock",
    logger: "logging.Logger",
    silent: Callable[[], bool] = lambda: False,
) -> None:
    """Write a heartbeat at every interval, but for those at which another process has the flows. Raises BrokerError."""
    import trio

    async with writing(peer, plan.topic, plan.replication_factor, logger) as writer:
        while True:
            if not silent():
                now = clock.now_ms()
                one = Heartbeat(plan.source, plan.target, now)
                await writer.write([(one.key(), one.value())], now)
            await trio.sleep(plan.interval_s)


class SyncEmitter:
    """Writes the offset syncs of one flow, and keeps what can be translated."""

    def __init__(
        self,
        plan: "OffsetSyncPlan",
        *,
        remote: Callable[[str], str],
        clock: "Clock",
        logger: "logging.Logger",
    ) -> None:
        """`remote` says what a topic of the source is called at the target."""
        import trio

        self._remote: Final = remote
        self._plan: Final = plan
        self._clock: Final = clock
        self._logger: Final = logger
        self._due = DueSyncs(plan.lag_max)
        self._came = trio.Event()
        """There is something to write, now or in a while."""
        self._urgent = trio.Event()
        """It is due."""
        self._early: list[OffsetSync] | None = []
        """What came before the topic was read; None from then on."""
        self.store: Final = SyncStore()

    def on_written(self, written: Sequence[Written]) -> None:
        """Records of the flow are at the target: for `FlowReport.on_written`."""
        for each in written:
            if each.target.partition != each.source.partition:
                continue  # such a position has no partition at the target to go on in
            if each.target.topic != self._remote(each.source.topic):
                continue  # a dead letter, or a record that a filter has sent elsewhere
            for sync in self._due.take(each):
                self._came.set()
                if self._early is None:
                    self.store.add(sync)
                else:
                    self._early.append(sync)
        if self._due:
            self._urgent.set()

    async def load(self, peer: "Peer") -> None:
        """Read what was written before. Raises BrokerError."""
        if self._early is None:
            return
        for key, value in await records_of(peer, self._plan.topic):
            try:
                self.store.add(OffsetSync.parse(key, value))
            except ValueError as error:
                self._logger.debug("%s: %s", self._plan.topic, error)
        for sync in self._early:
            self.store.add(sync)
        self._early = None

    async def run(self, peer: "Peer") -> None:
        """Write them as they become due. Raises BrokerError; what was not written is then written by the next call."""
        import trio

        plan = self._plan
        async with writing(peer, plan.topic, plan.replication_factor, self._logger) as writer:
            await self.load(peer)
            while True:
                await self._came.wait()
                with trio.move_on_after(SYNC_PAUSE_S):
                    await self._urgent.wait()
                self._came, self._urgent = trio.Event(), trio.Event()
                self._due.promote()
                if self._due:
                    await self._write(writer)

    async def _write(self, writer: Writer) -> None:
        syncs = self._due.pop()
        try:
            await _in_batches(writer, [(sync.key(), sync.value()) for sync in syncs], self._clock)
        except BrokerError:
            self._due.put_back(syncs)
            self._came.set()
            self._urgent.set()
            raise


class CheckpointEmitter:
    """Writes the checkpoints of one flow, and commits them at the target."""

    def __init__(
        self,
        flow: "FlowPlan",
        plan: "CheckpointPlan",
        store: SyncStore,
        *,
        clock: "Clock",
        logger: "logging.Logger",
        owned: Callable[[], bool],
    ) -> None:
        """`owned` says whether this process has the flow now: another one writes them otherwise."""
        self._plan: Final = plan
        self._clock: Final = clock
        self._logger: Final = logger
        self._owned: Final = owned
        self._name: Final = flow.name
        self._checkpoints: Final = Checkpoints(flow, store)
        self._groups: Sequence[str] = ()

    async def run(self, source: "Peer", target: "Peer") -> None:
        """Raises BrokerError."""
        import trio

        plan = self._plan
        async with writing(target, plan.topic, plan.replication_factor, self._logger) as writer:
            for key, value in await records_of(target, plan.topic):
                if value is not None:
                    self._take(key, value)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._emit, source, writer)
                if plan.sync_s is not None:
                    nursery.start_soon(self._commit, target, plan.sync_s)

    def _take(self, key: bytes | None, value: bytes) -> None:
        try:
            self._checkpoints.loaded(Checkpoint.parse(key, value))
        except ValueError as error:
            self._logger.debug("%s: %s", self._plan.topic, error)

    async def _emit(self, source: "Peer", writer: Writer) -> None:
        import trio

        refreshed = -float("inf")
        while True:
            await trio.sleep(self._plan.emit_s)
            if not self._owned():
                continue
            if not self._groups or trio.current_time() - refreshed >= (self._plan.refresh_s or float("inf")):
                await self._refresh(source)
                refreshed = trio.current_time()
            for group in self._groups:
                found = self._checkpoints.due(group, await source.committed(group))
                if found:
                    await _in_batches(writer, [(each.key(), each.value()) for each in found], self._clock)
                for each in found:
                    self._checkpoints.written(each)

    async def _refresh(self, source: "Peer") -> None:
        groups = [group for group in await source.groups() if self._plan.groups.fit(group)]
        self._groups = [
            group for group in groups if self._checkpoints.is_relevant(await source.committed(group))
        ]

    async def _commit(self, target: "Peer", every_s: float) -> None:
        import trio

        while True:
            await trio.sleep(every_s)
            for group in self._checkpoints.groups() if self._owned() else ():
                if not self._plan.groups.fit(group) or await target.group_is_active(group):
                    continue
                behind = self._checkpoints.to_commit(group, await target.committed(group))
                if behind:
                    await self._commit_for(target, group, behind)

    async def _commit_for(
        self, target: "Peer", group: str, behind: "dict[TopicPartition, CommittedOffset]"
    ) -> None:
        try:
            await target.commit(group, behind)
        except UnknownMemberId:
            self._logger.info("flow %s: group %s has members at %s", self._name, group, target.name)


async def _in_batches(writer: Writer, records: Sequence[tuple[bytes, bytes]], clock: "Clock") -> None:
    some: list[tuple[bytes, bytes]] = []
    size = 0
    for record in records:
        some.append(record)
        size += len(record[0]) + len(record[1]) + 32
        if size >= _MOST_BYTES:
            await writer.write(some, clock.now_ms())
            some, size = [], 0
    if some:
        await writer.write(some, clock.now_ms())
