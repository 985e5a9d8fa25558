"""One attempt of a flow: from its position until it is told to end, everything is copied, or something fails.

What it reads goes through an `Intake` to a writer; beside them run the comparison of topics, the reactions to changes
of the source, and the commits of the position as a group. Whatever fails ends the attempt, and the next one begins with
the position that the target has: nothing that is in memory is needed for it.

Longer than other modules because the tasks of an attempt end together, and how each of them does has to be seen beside
the others.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from leafcuttr_forward.flows import points
from leafcuttr_forward.flows.acknowledging import AcknowledgedWriter
from leafcuttr_forward.flows.changes import SourceCheck, Starts
from leafcuttr_forward.flows.errors import FlowStopped, PoisonRecord, line_of
from leafcuttr_forward.flows.intake import Intake
from leafcuttr_forward.flows.making import MakeChain, Maker, Portion, RecordsRefused
from leafcuttr_forward.flows.pace import Throttle
from leafcuttr_forward.flows.positions import Position, ensure_topic, read_positions
from leafcuttr_forward.flows.progress import Progress
from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.flows.spec import FLOWS_TOPIC, FlowSpec, Guarantee, Reaction
from leafcuttr_forward.flows.topics import TopicPlan
from leafcuttr_forward.flows.transacting import TransactionalWriter
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.errors import BrokerError, MessageTooLarge, TopicAuthorizationFailed
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    import logging

    from leafcuttr_sdk.peers import Peer, PeerRead
    from leafcuttr_sdk.types import Clock

COMMIT_S: Final = 1.0
"""How often the position is committed as a group while it moves."""
RETRY_S: Final = 2.0
"""How often partitions are checked that wait for their source."""
GRACE_S: Final = 5.0
"""How long the writer may take to finish what it has begun."""
REACT_S: Final = 0.1
"""Between two reactions to errors of partitions."""
_SMALLEST_LIMIT: Final = 1024
_SMALLEST_READ: Final = 128 << 10
_LARGEST_READ: Final = 1 << 20


@dataclass(slots=True)
class Job:
    """What a flow is given, and what it keeps from attempt to attempt."""

    spec: FlowSpec
    target: "Peer"
    report: FlowReport
    make_chain: MakeChain | None
    logger: "logging.Logger"
    clock: "Clock"
    ends: dict[TopicPartition, int] | None = None
    """Where the partitions ended when the flow began, for `stop_at_end`."""
    known: Mapping[TopicPartition, Position] = field(default_factory=dict[TopicPartition, Position])
    """The positions that the target had last, for a target that has lost them."""
    broken: set[tuple[TopicPartition, int]] = field(default_factory=set[tuple[TopicPartition, int]])
    """Batches that were broken when they were read, by their offsets."""


class Writer(Protocol):
    """`TransactionalWriter` or `AcknowledgedWriter`."""

    async def run(self) -> None:
        """Until the intake is closed. Raises RecordsRefused, BrokerError."""
        ...

    async def store(self, records: dict[bytes, bytes | None]) -> None:
        """Positions without records. Raises BrokerError."""
        ...


class Copying:
    """One attempt, with one source."""

    def __init__(self, job: Job, source: "Peer") -> None:
        import trio

        self._job = job
        self._spec = job.spec
        self._source = source
        self._target = job.target
        self._report = job.report
        self._is_writing = False
        self.scope = trio.CancelScope()
        """What `run` is to be run in; `close` ends it."""
        self._failed: deque[tuple[TopicPartition, BrokerError]] = deque()
        self._wake = trio.Event()
        self._moved = trio.Event()
        self._waiting: set[TopicPartition] = set()
        self._changing = trio.Lock()
        self._filter_waits = False
        self.is_complete = False
        """Whether it ended because everything was copied."""
        self.has_moved = False
        """Whether anything came to the target."""
        self._intake: Intake
        self._writer: Writer
        self._plan: TopicPlan
        self._check: SourceCheck
        self._progress: Progress

    def close(self) -> None:
        """End soon: what the writer has begun is finished, if that takes no longer than some seconds."""
        import trio

        if self._is_writing:
            self._intake.close()
            self.scope.deadline = min(self.scope.deadline, trio.current_time() + GRACE_S)
        else:
            self.scope.cancel()

    async def run(self) -> None:
        """Raises BrokerError, FlowStopped, SourceDiffers, or a group with some of these (`errors.one_error`).
        Cancelled: what was not committed comes again."""
        import trio

        spec, report = self._spec, self._report
        source_id = await self._source.cluster_id()
        cluster = spec.source_id or source_id
        await ensure_topic(self._target)
        self._plan = TopicPlan(spec, self._source, self._target, report, self._job.logger)
        await self._plan.refresh()
        self._check = SourceCheck(spec, self._source, source_id, report, self._job.logger)
        exactly = spec.guarantee is Guarantee.EXACTLY_ONCE
        if exactly and not await self._target.has_transactions():
            exactly = False
            report.notes["guarantee"] = "the target has no transactions: at least once"
        report.exactly_once = exactly
        async with AsyncExitStack() as stack:
            producer = appender = None
            if exactly:
                producer = await stack.enter_async_context(self._target.transaction(spec.transactional_id))
            else:
                appender = await stack.enter_async_context(self._target.appender())
            # Behind the transaction's context: no transaction of the flow is open any more.
            positions = await read_positions(self._target, spec.name, cluster)
            lost = {} if positions else dict(self._job.known)
            self._progress = Progress(spec.name, cluster, source_id, positions or lost, report)
            self._progress.on_settled = self._on_settled
            reader = await stack.enter_async_context(
                self._source.reader(
                    committed=spec.read_committed,
                    max_bytes=max(spec.buffer_bytes // 4, 1),
                    partition_bytes=self._partition_bytes(),
                )
            )
            maker = self._maker()
            stack.callback(maker.close)
            self._intake = Intake(
                reader,
                maker,
                limit=max(spec.buffer_bytes // 2, 1),
                throttle=Throttle(spec.throttle_bytes_s, self._job.clock),
                on_read=self._on_read,
                on_error=self._on_error,
                on_wait=self._on_wait,
                on_held=self._on_held,
                on_epoch=self._on_epoch,
                broken=self._job.broken,
            )
            clock = self._job.clock
            if producer is not None:
                self._writer = TransactionalWriter(
                    spec, producer, self._intake, self._progress, report, clock
                )
            elif appender is not None:
                self._writer = AcknowledgedWriter(spec, appender, self._intake, self._progress, clock)
            if lost:
                await self._restore(lost)
            if self._progress.positions:
                self._job.known = self._progress.positions
            await self._begin(is_first=not self._progress.positions)
            async with trio.open_nursery() as nursery:
                self._is_writing = True
                nursery.start_soon(self._intake.run)
                nursery.start_soon(self._refresh_often)
                nursery.start_soon(self._react)
                if spec.commits_to_group:
                    nursery.start_soon(self._commit_often)
                report.state, report.trouble = FlowState.RUNNING, None
                await self._write()
                nursery.cancel_scope.cancel()
            await self._commit_at_end()

    def _maker(self) -> Maker:
        spec = self._spec
        return Maker(
            self._plan,
            compression=spec.compression,
            filters=spec.filters,
            make_chain=self._job.make_chain,
            dead_letter_topic=spec.dead_letter_topic,
            with_digest=spec.source_id is not None,
        )

    def _partition_bytes(self) -> int:
        """So much that every partition has its share of each read: a Produce request has a batch of each."""
        share = self._spec.buffer_bytes // 8 // max(len(self._plan.partitions), 1)
        return min(max(share, _SMALLEST_READ), _LARGEST_READ)

    # Where to begin

    async def _restore(self, lost: Mapping[TopicPartition, Position]) -> None:
        """Somebody has deleted the topic of positions while this process had the flow: to begin anew would double all.
        Raises BrokerError."""
        self._job.logger.warning(
            "flow %s: %s has lost its positions, and gets those that this process knows",
            self._spec.name,
            FLOWS_TOPIC,
        )
        await self._writer.store(self._progress.records({**lost}))

    async def _begin(self, *, is_first: bool) -> None:
        spec, plan = self._spec, self._plan
        gone = {
            one
            for one in self._progress.positions
            if spec.rule_of(one.topic) is not None and one.topic not in plan.sources
        }
        for partition in self._report.partitions.keys() - set(plan.partitions):
            self._progress.hide(partition)
        await self._see_ends()
        await self._start(plan.partitions, is_first=is_first)
        starts = Starts()
        for partition in gone:
            self._check.deleted(starts, partition)
        await self._apply(starts)
        self._check_end()

    async def _see_ends(self) -> None:
        """Where everything ends now, for `stop_at_end`; once all topics of the rules are there, but for those that the
        source has no longer, if the flow goes on without them."""
        goes_on = not self._plan.unmet and self._spec.changes.deleted is Reaction.CONTINUE
        if self._spec.stop_at_end and self._job.ends is None and (goes_on or self._plan.is_complete):
            self._job.ends = await self._source.offsets(
                dict.fromkeys(self._plan.partitions, LATEST), committed=self._spec.read_committed
            )

    async def _start(self, partitions: Sequence[TopicPartition], *, is_first: bool = False) -> None:
        """Begin, or begin again, with these, which the plan has."""
        plan, progress = self._plan, self._progress
        await self._intake.settled(partitions)
        ids = {name: topic.topic_id.hex() for name, topic in plan.sources.items() if any(topic.topic_id)}
        progress.topic_ids = ids
        new = [one for one in partitions if one not in progress.positions]
        taken_over: Mapping[TopicPartition, int] = {}
        if new and self._spec.positions is not None:
            targets = {one: self._target_of(one) for one in new}
            known = {one: target for one, target in targets.items() if target is not None}
            taken_over = await self._spec.positions.positions(self._source, self._target, known)
        starts = await self._check.starts(partitions, progress.positions, ids, taken_over, is_first=is_first)
        before = {one: progress.positions[one].offset for one in partitions if one in progress.positions}
        await self._apply(starts)
        # A position that was chosen, not reached, is stored at once: after a restart the choice would be another one.
        chosen = {
            one: progress.positions[one]
            for one, offset in starts.offsets.items()
            if offset != before.get(one, 0)
        }
        if chosen:
            await self._writer.store(progress.records({**chosen}))

    def _target_of(self, partition: TopicPartition) -> TopicPartition | None:
        route = self._plan.route(partition.topic)
        number = route.partition(partition.partition)
        return None if number is None else TopicPartition(route.topic, number)

    async def _apply(self, starts: Starts) -> None:
        progress, plan = self._progress, self._plan
        for partition, offset in starts.offsets.items():
            goes = plan.route(partition.topic)
            progress.start(partition, offset, goes.topic, goes.partition(partition.partition))
            self._waiting.discard(partition)
        for partition, why in starts.waiting.items():
            route = plan.route(partition.topic) if partition.topic in plan.sources else None
            progress.wait(partition, why, route.topic if route else partition.topic)
            self._waiting.add(partition)
        self._intake.unassign(*starts.waiting, *starts.forgotten)
        if starts.offsets:
            epochs = {one: progress.positions[one].epoch for one in starts.offsets}
            self._intake.assign(starts.offsets, epochs)
        if starts.forgotten:
            for partition in starts.forgotten:
                progress.forget(partition)
                self._waiting.discard(partition)
            await self._writer.store(progress.records(dict.fromkeys(starts.forgotten)))

    # Writing

    async def _write(self) -> None:
        """Until the intake is closed."""
        while True:
            try:
                await self._writer.run()
            except RecordsRefused as refused:
                self._go_carefully(refused)
            else:
                return

    def _go_carefully(self, refused: RecordsRefused) -> None:
        """Find the record at fault: smaller and smaller portions stand alone, until it is one of a single record."""
        # What is not read any more, because its topic was deleted meanwhile, is not written either.
        portions = [each for each in refused.portions if each.source in self._intake.positions]
        error = refused.error
        alone = portions[0] if len(portions) == 1 and portions[0].alone else None
        if alone is None:
            for source in {portion.source for portion in portions}:
                own = [portion for portion in portions if portion.source == source]
                step = max(portion.next - portion.first for portion in own)
                self._intake.go_carefully(source, max(step, 1), max(portion.next for portion in own))
        elif alone.is_letter:
            raise FlowStopped(
                f"{alone.source}, offset {alone.first}: the target refuses its dead letter too: {line_of(error)}"
            )
        else:
            self._divide(alone, error)
        again = {portion.source: self._progress.positions[portion.source] for portion in portions}
        self._intake.make_again(
            {partition: position.offset for partition, position in again.items()},
            {partition: position.epoch for partition, position in again.items()},
        )

    def _divide(self, portion: Portion, error: BrokerError) -> None:
        largest = max((piece.size for piece in portion.pieces if piece.records > 1), default=0)
        if isinstance(error, MessageTooLarge) and largest // 2 >= _SMALLEST_LIMIT:
            self._plan.lower_limit(portion.source.topic, largest // 2)
        elif portion.read_records == 1:
            self._job.logger.warning(
                "flow %s: the target refuses the record at offset %d of %s: %s",
                self._spec.name,
                portion.last,
                portion.source,
                line_of(error),
            )
            self._intake.set_aside(PoisonRecord(portion.source, portion.last, line_of(error)))
        else:
            # Behind this portion nothing is known to be wrong: it goes on as usual there.
            step = max((portion.next - portion.first) // 2, 1)
            self._intake.go_carefully(portion.source, step, portion.next)

    # What comes up meanwhile

    async def _refresh_often(self) -> None:
        import trio

        while True:
            waits = bool(self._waiting or not self._plan.is_complete)
            pause = min(RETRY_S, self._spec.refresh_s) if waits else self._spec.refresh_s
            await trio.sleep(pause)
            await self._refresh()

    async def _refresh(self) -> None:
        ids = {name: topic.topic_id for name, topic in self._plan.sources.items()}
        async with self._changing:
            await self._plan.refresh()
            await self._see_ends()
            sources, reading = self._plan.sources, self._intake.positions.keys()
            anew = {
                name for name, topic in sources.items() if ids.get(name, topic.topic_id) != topic.topic_id
            }
            there = set(self._plan.partitions)
            again = {one for one in there if one in self._waiting or one.topic in anew or one not in reading}
            gone = reading - there
            if gone:
                await self._intake.settled(gone)
                starts = Starts()
                for partition in gone:
                    self._check.deleted(starts, partition)
                await self._apply(starts)
            if again:
                await self._start(sorted(again))
        self._report.notes.pop("missing", None)
        if self._plan.missing:
            self._report.notes["missing"] = (
                f"the source does not have {', '.join(sorted(self._plan.missing))}"
            )
        self._check_end()

    async def _react(self) -> None:
        """To what the reader says of partitions."""
        import trio

        while True:
            while not self._failed:
                await self._wake.wait()
            self._wake = trio.Event()
            failed, self._failed = dict(self._failed), deque()
            async with self._changing:
                await self._plan.refresh()
                await self._after(failed)
            await trio.sleep(REACT_S)

    async def _after(self, failed: Mapping[TopicPartition, BrokerError]) -> None:
        there = set(self._plan.partitions)
        await self._intake.settled(failed)
        starts = Starts()
        for partition, error in failed.items():
            if partition not in there:
                self._check.deleted(starts, partition)
            elif isinstance(error, TopicAuthorizationFailed):
                starts.waiting[partition] = f"the source does not allow it to be read: {line_of(error)}"
        await self._apply(starts)
        again = [one for one in failed if one in there and one not in starts.waiting]
        if again:
            await self._start(again)

    def _on_error(self, partition: TopicPartition, error: BrokerError) -> None:
        self._failed.append((partition, error))
        self._wake.set()

    async def _on_epoch(self, partition: TopicPartition, epoch: int, offset: int) -> bool:
        if not await self._check.is_truncated(partition, epoch, offset):
            return False
        self._on_error(partition, BrokerError("the log was truncated"))
        return True

    def _on_read(self, read: "PeerRead") -> None:
        report = self._report.partitions.get(read.partition)
        if report is not None:
            report.end = read.high_watermark

    def _on_held(self, size: int) -> None:
        self._report.buffered_bytes = size

    def _on_wait(self, why: str | None) -> None:
        """A filter cannot judge yet, or again."""
        if why is not None or self._filter_waits:
            self._report.trouble = why
        self._filter_waits = why is not None

    def _on_settled(self) -> None:
        self.has_moved = True
        self._job.known = self._progress.positions
        self._moved.set()
        self._check_end()

    def _check_end(self) -> None:
        ends = self._job.ends
        if ends is None:
            return
        positions = self._progress.positions
        if all(one in positions and positions[one].offset >= end for one, end in ends.items()):
            self.is_complete = True
            self.close()

    # The group at the source

    async def _commit_often(self) -> None:
        import trio

        while True:
            await self._moved.wait()
            await self._commit()
            await trio.sleep(COMMIT_S)

    async def _commit(self) -> None:
        """The position as a group's: for tools only, so that what refuses it is a note."""
        import trio

        self._moved = trio.Event()
        offsets = {
            partition: CommittedOffset(position.offset)
            for partition, position in self._progress.positions.items()
            if partition in self._report.partitions
        }
        try:
            if offsets:
                await self._source.commit(self._spec.group, offsets)
                points.reach("group-committed")
        except BrokerError as error:
            self._report.notes["group"] = f"the group {self._spec.group} is not committed: {line_of(error)}"
            self._moved.set()
        except BaseException:
            self._moved.set()
            raise
        else:
            self._report.notes.pop("group", None)

    async def _commit_at_end(self) -> None:
        import trio

        # A source that is away would hold up the switch to the next one.
        if self._spec.commits_to_group and self._moved.is_set() and self._source.trouble is None:
            with trio.move_on_after(1):
                await self._commit()
