"""A flow in the foreground of a command: its clusters, its sources watched, its address of metrics, signals.

`leafcuttr relay` and `leafcuttr mirror` make a `RunPlan`; a mirror is a relay with one source.
"""

import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from leafcuttr_forward.flows.errors import FlowStopped, line_of
from leafcuttr_forward.flows.report import FlowReport
from leafcuttr_forward.flows.spec import SAME_NAME
from leafcuttr_forward.flows.switching import SourceSwitch
from leafcuttr_forward.people.current import RunningFlows
from leafcuttr_forward.people.endpoint import FlowsEndpoint
from leafcuttr_forward.people.metrics import flow_readings
from leafcuttr_forward.relay.counters import RelayCounters
from leafcuttr_forward.relay.pool import Decision, GiveUp, Pauses, SourcePool, Switch
from leafcuttr_forward.relay.watching import Watch, WatchedPeer, answers, ranges_of
from leafcuttr_sdk.errors import BrokerError

if TYPE_CHECKING:
    from leafcuttr_forward.flows.making import MakeChain
    from leafcuttr_forward.flows.spec import FlowSpec
    from leafcuttr_forward.relay.plan import PoolPlan, RetryPlan
    from leafcuttr_sdk.peers import Peer
    from leafcuttr_sdk.types import TopicPartition

OpenPeer: TypeAlias = "Callable[[Mapping[str, str]], AbstractAsyncContextManager[Peer]]"
_PROGRESS_S: Final = 10.0
_AGAIN_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPlan:
    """A cluster of a run."""

    name: str
    properties: Mapping[str, str] = field(repr=False)
    connect_s: float
    """How long a request may take that may have to connect first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """All that a run needs to know. With one source there is nothing to switch to."""

    spec: "FlowSpec"
    sources: Sequence[EndPlan]
    target: EndPlan
    pool: "PoolPlan"
    max_failovers: int = -1
    first: int = 0
    """The source to begin with."""
    target_retry: "RetryPlan"
    topics: Sequence[str] | None
    """All source topics, whose offsets sources are compared by; None where they are not known by name."""
    metrics_address: tuple[str | None, int] | None = None


class CommandClock:
    """A `leafcuttr_sdk.types.Clock`."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class Run:
    """One run. `status` is the exit status once `run` has returned, `why` its line if that is not 0."""

    def __init__(
        self,
        plan: RunPlan,
        open_peer: OpenPeer,
        logger: logging.Logger,
        make_chain: "MakeChain | None" = None,
    ) -> None:
        self._plan = plan
        self._open_peer = open_peer
        self._logger = logger
        self._make_chain = make_chain
        self._clock = CommandClock()
        self.report = FlowReport(plan.spec.name)
        self.pool = SourcePool(
            [each.name for each in plan.sources],
            lag_threshold=plan.pool.lag_threshold,
            max_retries=plan.pool.backoff.max_retries,
            max_failovers=plan.max_failovers,
            first=plan.first,
        )
        self.counters = RelayCounters(self.report, self.pool)
        self.status = 0
        self.why: str | None = None
        self.addresses: list[tuple[str, int]] = []
        """Where metrics are served."""
        self._peers: list[Peer] = []
        self._switch: SourceSwitch | None = None
        self._chosen = trio.Event()
        self._scope = trio.CancelScope()
        self._watch: Watch | None = None

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """Until the flow ends, a signal comes, or what the plan allows is used up. Raises PluginError where it cannot
        begin: settings of a client are wrong, the address of metrics is taken."""
        async with AsyncExitStack() as stack:
            for each in self._plan.sources:
                self._peers.append(await stack.enter_async_context(self._open_peer(each.properties)))
            target = await stack.enter_async_context(self._open_peer(self._plan.target.properties))
            # Within the peers' contexts: what ends the flow gives its claim back over their connections.
            with self._scope:
                async with trio.open_nursery() as nursery:
                    await self._serve(nursery)
                    nursery.start_soon(self._end_on_signals)
                    nursery.start_soon(self._watch_sources)
                    nursery.start_soon(self._watch_target, target)
                    nursery.start_soon(self._tell_progress)
                    task_status.started()
                    await self._chosen.wait()
                    await self._flow(target)
                    nursery.cancel_scope.cancel()

    def stop(self) -> None:
        """End in good order: what is under way at the target is completed or aborted."""
        self._scope.cancel()

    def status_now(self) -> Mapping[str, Any]:
        """For the address of the run."""
        return {
            "sources": [
                {
                    "name": each.name,
                    "read": index == self.pool.current,
                    "health": each.health.value,
                    "end_offsets": each.weight,
                    "trouble": self.pool.why_not(index, self._position()),
                }
                for index, each in enumerate(self.pool.sources)
            ],
            "target": self._plan.target.name,
            "switches": self.pool.switches,
        }

    # Tasks

    async def _flow(self, target: "Peer") -> None:
        from leafcuttr_forward.flows.flow import run_flow

        assert self._switch is not None
        if await self._goes_in_a_circle(self._switch.peer, target):
            return
        try:
            await run_flow(
                self._plan.spec,
                self._switch,
                target,
                report=self.report,
                make_chain=self._make_chain,
                logger=self._logger,
                clock=self._clock,
            )
        except FlowStopped as error:
            self._end(line_of(error))

    async def _goes_in_a_circle(self, source: "Peer", target: "Peer") -> bool:
        """Whether source and target are one cluster, and a topic would be copied to itself: that ends the run."""
        if await self._cluster_id(source) != await self._cluster_id(target):
            return False
        rule = next((each for each in self._plan.spec.rules if each.target in (each.source, SAME_NAME)), None)
        if rule is None:
            return False
        what = "topics" if rule.is_pattern else rule.source
        self._end(f"source and target are the same cluster: {what} would be copied to itself")
        return True

    async def _cluster_id(self, peer: "Peer") -> str:
        while True:
            try:
                found = await peer.cluster_id()
            except BrokerError as error:
                self.report.trouble = line_of(error)
                await trio.sleep(_AGAIN_S)
            else:
                self.report.trouble = None
                return found

    async def _serve(self, nursery: trio.Nursery) -> None:
        if self._plan.metrics_address is None:
            return
        running = RunningFlows({self.report.name: self.report})
        readings = flow_readings(running.all, self._clock.now_ms)
        endpoint = FlowsEndpoint(
            running, readings, self.counters.metrics, now_ms=self._clock.now_ms, status=self.status_now
        )
        self.addresses = await nursery.start(endpoint.serve, *self._plan.metrics_address)
        shown = ", ".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.addresses
        )
        self._logger.info("metrics and status are at %s", shown)

    async def _end_on_signals(self) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
            async for each in received:
                self._logger.info("%s: the flow ends", signal.Signals(each).name)
                self._scope.cancel()
                return

    async def _watch_sources(self) -> None:
        plan = self._plan
        peers = [
            WatchedPeer(peer, each.connect_s) for peer, each in zip(self._peers, plan.sources, strict=True)
        ]
        watch = self._watch = Watch(
            self.pool,
            peers,
            answers if plan.topics is None else ranges_of(plan.topics),
            interval_s=plan.pool.interval_s,
            request_s=plan.pool.request_timeout_s,
            pauses=_pauses(plan.pool.backoff),
            position=self._position,
            act=self._act,
            in_vain=self._tell_vain,
        )
        await watch.run()

    async def _watch_target(self, target: "Peer") -> None:
        """Only where tries in vain are counted: the flow itself waits for its target."""
        retry = self._plan.target_retry
        if retry.max_retries < 0:
            return
        end = self._plan.target
        pool = SourcePool([end.name], lag_threshold=0, max_retries=retry.max_retries)
        watch = Watch(
            pool,
            [WatchedPeer(target, end.connect_s)],
            answers,
            interval_s=self._plan.pool.interval_s,
            request_s=end.connect_s,
            pauses=_pauses(retry),
            position=dict,
            act=self._act_on_target,
        )
        await watch.run()

    async def _tell_progress(self) -> None:
        before = 0
        while True:
            await trio.sleep(_PROGRESS_S)
            total = self.counters.total
            if total != before:
                rate = (total - before) / _PROGRESS_S
                self._logger.info("%d records relayed, %.0f a second, lag %d", total, rate, self.report.lag)
            before = total

    # Decisions

    def _position(self) -> "Mapping[TopicPartition, int]":
        return {
            partition: each.position
            for partition, each in self.report.partitions.items()
            if each.position >= 0
        }

    def _act(self, decision: Decision) -> None:
        if isinstance(decision, GiveUp):
            self._end(decision.why)
        elif isinstance(decision, Switch):
            self._take(decision)

    def _take(self, decision: Switch) -> None:
        peer, name = self._peers[decision.to], self.pool.sources[decision.to].name
        self.counters.connections[decision.to] += 1
        if self._switch is None:
            self._logger.info("reading from %s", name)
            self._switch = SourceSwitch(peer)
            self.report.trouble = None
            self._switch.on_refused.append(self._on_refused)
            self._chosen.set()
        else:
            self._logger.warning("switching to %s: %s", name, decision.why)
            if decision.lagging is not None:
                self.counters.lagging[decision.lagging] += 1
            self._switch.switch(peer)

    def _on_refused(self, peer: "Peer", why: str) -> None:
        index = next(index for index, each in enumerate(self._peers) if each is peer)
        source = self.pool.sources[index]
        if source.refused != why:
            self._logger.error("%s is not read: %s", source.name, why)
        self.pool.refuse(index, why)
        if self._watch is not None:
            self._watch.decide()

    def _act_on_target(self, decision: Decision) -> None:
        if isinstance(decision, GiveUp):
            self._end(decision.why.replace("no source answers", "the target does not answer"))

    def _tell_vain(self) -> None:
        self.counters.unhealthy += 1
        line = f"no source answers: {self.pool.why_down}"
        if self._switch is None:  # the flow has not begun, and says nothing yet
            self.report.trouble = line
        self._logger.warning("%s", line)

    def _end(self, why: str) -> None:
        if self.why is None:
            self.status, self.why = 1, why
        self._scope.cancel()


def _pauses(retry: "RetryPlan") -> Pauses:
    return Pauses(retry.enabled, retry.min_s, retry.max_s)


def first_error(error: BaseException) -> BaseException:
    """Of a group the first one that is none."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return error
