"""The service that forwards what a file of MirrorMaker 2 says: flows, and what MirrorMaker writes beside the records.

Each flow runs by itself (`flows.flow.run_flow`), and so do heartbeats, offset syncs and checkpoints: what is wrong with
one of them is a line of health or of the log, and ends no other. The service ends with the broker only.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows.errors import FlowStopped, line_of
from leafcuttr_forward.flows.flow import run_flow
from leafcuttr_forward.flows.pace import Backoff
from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.mm2.emitting import CheckpointEmitter, SyncEmitter, beat, keep_up
from leafcuttr_forward.mm2.file import read_file
from leafcuttr_forward.mm2.leftovers import MirrorMakerPositions
from leafcuttr_forward.mm2.reaching import is_this_broker, listeners_bound, open_peer
from leafcuttr_forward.people.current import running_of
from leafcuttr_forward.settings import CONFIG
from leafcuttr_sdk.errors import BrokerError, PluginError
from leafcuttr_sdk.settings import FindingLevel

if TYPE_CHECKING:
    import trio

    from leafcuttr_forward.mm2.plan import FlowPlan, HeartbeatPlan, MirrorPlan
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.peers import Peer

_OWNED: Final = frozenset({FlowState.RUNNING, FlowState.PAUSED, FlowState.WAITING})
"""The states in which this process has the flow."""


class MirrorService:
    """The service `forward`."""

    def __init__(self, broker: "Broker") -> None:
        """Reads the file. Raises PluginError with its first fault."""
        plan, said = read_file(broker.settings.text(CONFIG))
        if plan is None:
            raise PluginError(next(each.line for each in said if each.level is FindingLevel.ERROR))
        self._broker: Final = broker
        self._plan: Final[MirrorPlan] = plan
        self._logger: Final = broker.logger
        self._running: Final = running_of(broker)
        self._running.notes = tuple(each.line for each in said if each.level is not FindingLevel.ERROR)

    async def run(self, *, task_status: "trio.TaskStatus[None]") -> None:
        import trio

        await self._check_clients()
        reports = {flow.name: FlowReport(flow.name) for flow in self._plan.flows}
        self._running.reports = dict(reports)
        task_status.started()
        try:
            await listeners_bound(self._broker)
            async with trio.open_nursery() as nursery:
                for flow in self._plan.flows:
                    nursery.start_soon(self._flow, flow, reports[flow.name])
                for heartbeats in self._plan.heartbeats:
                    nursery.start_soon(self._beat, heartbeats, reports)
                await trio.sleep_forever()
        finally:
            self._running.reports = {}

    async def _check_clients(self) -> None:
        """Raises PluginError for settings of a client that cannot be used; it ends the start. Nothing is connected."""
        for flow in self._plan.flows:
            for alias, properties in (
                (flow.source, flow.source_properties),
                (flow.target, flow.target_properties),
            ):
                try:
                    async with self._broker.peer(properties):
                        pass
                except PluginError as error:
                    path = self._broker.settings.text(CONFIG)
                    raise PluginError(f"{path}: of {alias} in {flow.name}: {line_of(error)}") from None

    # One flow

    async def _flow(self, flow: "FlowPlan", report: FlowReport) -> None:
        """Until it has stopped for good, which is a line of health."""
        try:
            async with (
                self._cluster(flow.source, flow.source_properties, report) as source,
                self._cluster(flow.target, flow.target_properties, report) as target,
            ):
                await self._between(flow, report, source, target)
        except* (FlowStopped, PluginError) as group:
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            report.state, report.trouble = FlowState.STOPPED, line_of(error)
            self._logger.error("flow %s has stopped: %s", flow.name, report.trouble)

    async def _between(self, flow: "FlowPlan", report: FlowReport, source: "Peer", target: "Peer") -> None:
        import trio

        source_id = await self._id_of(source, report)
        if source_id == await self._id_of(target, report):
            raise FlowStopped(f"{flow.source} and {flow.target} are the same cluster ({source_id})")
        report.trouble = None
        positions = MirrorMakerPositions(
            flow.offsets_topic, flow.source, partial(report.notes.__setitem__, "MirrorMaker")
        )
        spec = replace(flow.spec, positions=positions, instance=source_id)
        async with trio.open_nursery() as nursery:
            self._beside(nursery, flow, report, source, target)
            await run_flow(
                spec,
                source,
                target,
                report=report,
                logger=self._logger,
                clock=self._broker.clock,
                make_chain=self._broker.record_filters,
            )

    def _beside(
        self, nursery: "trio.Nursery", flow: "FlowPlan", report: FlowReport, source: "Peer", target: "Peer"
    ) -> None:
        """Offset syncs and checkpoints."""
        clock, logger = self._broker.clock, self._logger
        if flow.offset_syncs is None:
            return
        syncs = SyncEmitter(flow.offset_syncs, remote=flow.policy.remote, clock=clock, logger=logger)
        report.on_written.append(syncs.on_written)
        at = source if flow.offset_syncs.at_source else target
        nursery.start_soon(keep_up, partial(syncs.run, at), f"offset syncs of flow {flow.name}", logger)
        if flow.checkpoints is None:
            return

        def owned() -> bool:
            return report.state in _OWNED

        checkpoints = CheckpointEmitter(
            flow, flow.checkpoints, syncs.store, clock=clock, logger=logger, owned=owned
        )
        attempt = partial(checkpoints.run, source, target)
        nursery.start_soon(keep_up, attempt, f"checkpoints of flow {flow.name}", logger)

    # Heartbeats

    async def _beat(self, plan: "HeartbeatPlan", reports: Mapping[str, FlowReport]) -> None:
        what = f"heartbeats of {plan.source}->{plan.target}"
        names = (f"{plan.source}->{plan.target}", f"{plan.target}->{plan.source}")
        flows = [reports[name] for name in names if name in reports]

        try:
            async with self._cluster(plan.target, plan.properties, None) as peer:
                silent = partial(run_elsewhere, flows)
                attempt = partial(
                    beat, plan, peer, clock=self._broker.clock, logger=self._logger, silent=silent
                )
                await keep_up(attempt, what, self._logger)
        except PluginError as error:
            self._logger.error("%s: %s", what, line_of(error))

    # Clusters

    @asynccontextmanager
    async def _cluster(
        self, alias: str, properties: Mapping[str, str], report: FlowReport | None
    ) -> AsyncIterator["Peer"]:
        """The cluster, in process if it is this broker. Where that shows at its id only, it waits until the cluster
        answers. Raises PluginError."""
        async with open_peer(self._broker, properties) as peer:
            if report is None or peer.in_process:
                yield peer
                return
            await self._id_of(peer, report)
            if not await is_this_broker(self._broker, peer):
                yield peer
                return
        self._logger.info("%s is this broker, and is taken in process", alias)
        async with self._broker.peer() as peer:
            yield peer

    async def _id_of(self, peer: "Peer", report: FlowReport) -> str:
        """Of a cluster that is away once it is back."""
        import trio

        backoff = Backoff()
        report.cluster_trouble = lambda: peer.trouble
        while True:
            try:
                return await peer.cluster_id()
            except BrokerError as error:
                report.state, report.trouble = FlowState.WAITING, line_of(error)
            await trio.sleep(backoff.next_s())


def run_elsewhere(flows: Sequence[FlowReport]) -> bool:
    """Whether all flows between two clusters are another process's: so are the heartbeats then. Of a pair without flows
    each process writes them."""
    return bool(flows) and all(flow.state is FlowState.STANDING_BY for flow in flows)
