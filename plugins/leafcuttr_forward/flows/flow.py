"""A flow, from its claim to its end: what the faces call.

One process of those with the flow's name has its claim; the others stand by. Requests (pause, resume, reset) are read
all the time. While it is not paused, one attempt follows another (`copying`), with pauses between them that grow. An
error of a cluster is a line of the report, and ends nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from leafcuttr_forward.flows import control
from leafcuttr_forward.flows.copying import Copying, Job
from leafcuttr_forward.flows.errors import FlowStopped, SourceDiffers, line_of, one_error
from leafcuttr_forward.flows.pace import Backoff
from leafcuttr_forward.flows.positions import POSITIONS, Position, batch_of, read_positions
from leafcuttr_forward.flows.progress import Progress
from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.flows.spec import FlowSpec
from leafcuttr_forward.flows.switching import SourceSwitch
from leafcuttr_forward.flows.topics import TopicPlan
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    import logging

    import trio

    from leafcuttr_forward.flows.making import MakeChain
    from leafcuttr_sdk.peers import Peer, PeerClaim
    from leafcuttr_sdk.types import Clock


STANDING_S: Final = 5.0
"""So long a process stands by before it says so: one that was stopped gives its claim back before that."""
REPEAT_S: Final = 300.0
"""How often the log says again why nobody can say who has the claim."""


class _Started(Protocol):
    def started(self) -> None: ...


async def run_flow(
    spec: FlowSpec,
    source: "Peer | SourceSwitch",
    target: "Peer",
    *,
    report: FlowReport,
    logger: "logging.Logger",
    clock: "Clock",
    make_chain: "MakeChain | None" = None,
    task_status: "_Started | Any" = None,
) -> None:
    """Run one flow until it is cancelled, or has copied everything (`stop_at_end`). `make_chain` makes the filters
    `spec.filters` of a topic: `Broker.record_filters`. `task_status.started()` is called at once: clusters may be away.

    Raises FlowStopped. Cancelled: what the target has not for good comes again at the next start; with exactly once
    nothing is doubled.
    """
    if spec.filters and make_chain is None:
        raise ValueError("a flow with filters needs what makes them")
    switch = source if isinstance(source, SourceSwitch) else SourceSwitch(source)
    job = Job(spec, target, report, make_chain, logger, clock)
    report.target = target.name
    report.cluster_trouble = lambda: switch.peer.trouble or target.trouble
    if task_status is not None:
        task_status.started()
    try:
        await _Flow(job, switch).run()
    except FlowStopped as stopped:
        report.state, report.trouble = FlowState.STOPPED, line_of(stopped)
        logger.error("flow %s stops: %s", spec.name, report.trouble)
        raise


class _Flow:
    def __init__(self, job: Job, switch: SourceSwitch) -> None:
        import trio

        self._job = job
        self._spec = job.spec
        self._report = job.report
        self._switch = switch
        self._requests = control.Requests(job.spec.name)
        self._requests_known = trio.Event()
        self._changed = trio.Event()
        self._copying: Copying | None = None
        self._is_complete = False
        self._said: str | None = None
        self._stands_by = trio.Event()
        self._wait_said_at: float | None = None

    async def run(self) -> None:
        import trio

        with one_error():
            async with trio.open_nursery() as nursery:
                await self._run(nursery)
                nursery.cancel_scope.cancel()

    async def _run(self, nursery: "trio.Nursery") -> None:
        import trio

        backoff = Backoff()
        while not self._is_complete:
            self._report.state, self._stands_by = FlowState.STARTING, trio.Event()
            waiting = trio.CancelScope()
            nursery.start_soon(self._say_that_it_stands_by, waiting)
            try:
                async with self._job.target.claim(self._spec.claim, on_wait=self._on_wait) as claim:
                    waiting.cancel()
                    self._report.trouble = self._wait_said_at = None
                    backoff.reset()
                    with one_error():
                        await self._owned(claim)
            except BrokerError as error:
                waiting.cancel()
                self._trouble(error)
                await trio.sleep(backoff.next_s())

    def _on_wait(self, trouble: str | None) -> None:
        """Another process has the flow, or the target does not say which one has it."""
        import trio

        if trouble is None:
            self._report.state, self._report.trouble = FlowState.STANDING_BY, None
            self._stands_by.set()
            return
        self._report.state, self._report.trouble = FlowState.WAITING, trouble
        if self._stands_by.is_set():  # else `_say_that_it_stands_by` waits for this one
            self._stands_by = trio.Event()
        now = self._job.clock.monotonic()
        if self._wait_said_at is None or now - self._wait_said_at >= REPEAT_S:
            self._wait_said_at = now
            self._job.logger.warning("flow %s: %s; it is tried again", self._spec.name, trouble)

    async def _say_that_it_stands_by(self, waiting: "trio.CancelScope") -> None:
        """Two flows that have one name by mistake: the second would wait without end."""
        import trio

        with waiting:
            while True:
                await self._stands_by.wait()
                await trio.sleep(STANDING_S)
                if self._stands_by.is_set():
                    break
            self._job.logger.warning(
                "flow %s: another process with a flow of this name has it; this one stands by",
                self._spec.name,
            )

    async def _owned(self, claim: "PeerClaim") -> None:
        """While the claim is held."""
        import trio

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._until_lost, claim, nursery.cancel_scope)
            nursery.start_soon(self._read_requests)
            nursery.start_soon(self._follow_switch)
            await self._requests_known.wait()
            await self._go_on()
            nursery.cancel_scope.cancel()

    async def _until_lost(self, claim: "PeerClaim", scope: "trio.CancelScope") -> None:
        await claim.lost()
        self._job.logger.warning("flow %s: another process may have it now", self._spec.name)
        scope.cancel()

    async def _go_on(self) -> None:
        """Attempts, until everything is copied."""
        backoff = Backoff()
        while not self._is_complete:
            if self._requests.holds:
                self._report.state = FlowState.PAUSED
                await self._paused()
                continue
            await self._attempt(backoff)

    async def _attempt(self, backoff: Backoff) -> None:
        source = self._switch.peer
        self._report.state, self._report.source = FlowState.STARTING, source.name
        copying = self._copying = Copying(self._job, source)
        number, changed = self._switch.number, self._changed
        try:
            with one_error(), copying.scope:
                await copying.run()
            self._said = None
            if copying.is_complete:
                self._is_complete = True
                self._report.state = FlowState.ENDED
            return
        except SourceDiffers as error:
            self._switch.refuse(source, line_of(error))
            self._trouble(error)
        except BrokerError as error:
            self._report.restarts += 1
            self._trouble(error)
        finally:
            self._copying = None
        if copying.has_moved:
            backoff.reset()
        if number == self._switch.number:
            await self._wait(changed, backoff.next_s())

    def _trouble(self, error: Exception) -> None:
        line = line_of(error)
        self._report.state, self._report.trouble = FlowState.WAITING, line
        if line != self._said:
            self._said = line
            self._job.logger.warning("flow %s: %s; it is tried again", self._spec.name, line)

    async def _wait(self, changed: "trio.Event", seconds: float) -> None:
        """For a pause to pass, a request, or another source."""
        import trio

        with trio.move_on_after(seconds):
            await changed.wait()

    # Another source

    async def _follow_switch(self) -> None:
        while True:
            await self._switch.changed(number := self._switch.number)
            self._report.switches += self._switch.number - number
            self._wake()

    # Requests

    async def _read_requests(self) -> None:
        """All the time. Where they cannot be read, what was read last counts."""
        import trio

        backoff = Backoff()
        while True:
            try:
                await self._follow_requests(backoff)
            except BrokerError as error:
                self._trouble(error)
                await trio.sleep(backoff.next_s())

    async def _follow_requests(self, backoff: Backoff) -> None:
        target = self._job.target
        partition = await control.requests_partition(target)
        ends = await target.offsets({partition: LATEST})
        position = (await target.offsets({partition: EARLIEST})).get(partition, 0)
        async with target.reader(committed=False, max_bytes=1 << 20) as reader:
            reader.assign({partition: position})
            while True:
                if position >= ends.get(partition, 0):
                    self._requests_known.set()
                for read in await reader.read():
                    if read.error is not None:
                        raise read.error
                    if self._requests.take(read.data, position):
                        self._wake()
                    position = max(position, read.next_offset)
                backoff.reset()

    def _wake(self) -> None:
        """Something was requested, or the source is another one: the attempt ends, the next one begins with it."""
        import trio

        event, self._changed = self._changed, trio.Event()
        event.set()
        if self._copying is not None:
            self._copying.close()

    async def _paused(self) -> None:
        changed = self._changed
        self._report.trouble = None
        if self._requests.reset is None:
            await changed.wait()
            return
        backoff = Backoff()
        try:
            await self._reset(self._requests.reset)
        except BrokerError as error:
            self._trouble(error)
            await self._wait(changed, backoff.next_s())

    async def _reset(self, to: control.ResetTo) -> None:
        """Store the positions that were requested, and take the request back. Raises BrokerError."""
        job, spec, source = self._job, self._spec, self._switch.peer
        source_id = await source.cluster_id()
        cluster = spec.source_id or source_id
        offsets = await self._requested(to)
        before = await read_positions(job.target, spec.name, cluster)
        progress = Progress(spec.name, cluster, source_id, before, self._report)
        stored = {one: Position(offset, source=source_id) for one, offset in offsets.items()}
        now = job.clock.now_ms()
        if stored:
            batch = batch_of(progress.records({**stored}), now)
            async with job.target.appender() as appender:
                (done,) = await appender.append([NewBatch(POSITIONS, batch)])
            if isinstance(done, BrokerError):
                raise done
        for partition, offset in offsets.items():
            if partition in self._report.partitions:
                self._report.partitions[partition].position = offset
        await control.request(job.target, self._requests.reset_key, None, now)
        self._requests.reset = None
        job.logger.info("flow %s: reset to %s", spec.name, _shown(offsets))

    async def _requested(self, to: control.ResetTo) -> Mapping[TopicPartition, int]:
        if isinstance(to, Mapping):
            return to
        job, source = self._job, self._switch.peer
        plan = TopicPlan(self._spec, source, job.target, self._report, job.logger)
        await plan.refresh()
        at = {"earliest": EARLIEST, "latest": LATEST}.get(to, LATEST) if isinstance(to, str) else to
        return await source.offsets(dict.fromkeys(plan.partitions, at))


def _shown(offsets: Mapping[TopicPartition, int]) -> str:
    shown: Sequence[str] = [f"{partition}: {offset}" for partition, offset in sorted(offsets.items())]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")
