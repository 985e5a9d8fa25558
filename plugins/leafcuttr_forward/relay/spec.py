"""A relay's plan, and the options of the command, as a flow of the engine."""

import random
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_forward.flows.spec import FlowSpec, Guarantee, Start, TopicCreation, TopicRule
from leafcuttr_forward.relay.plan import ClusterPlan, RelayPlan, RetryPlan, TopicPair
from leafcuttr_forward.relay.properties import client_properties
from leafcuttr_forward.relay.running import EndPlan, RunPlan
from leafcuttr_forward.relay.takeover import TargetEnds

if TYPE_CHECKING:
    from collections.abc import Iterable

TARGET: Final = "target"
STARTS: Final = (TARGET, Start.EARLIEST.value, Start.LATEST.value)
BUFFER_BYTES: Final = 32 << 20


class RelayOptions(NamedTuple):
    """What only the command line says."""

    name: str | None = None
    at_least_once: bool = False
    start: str = TARGET
    """One of STARTS."""
    buffer_bytes: int = BUFFER_BYTES
    throttle_bytes_s: float | None = None
    dead_letter_topic: str | None = None


def relay_run(plan: RelayPlan, options: RelayOptions, filters: tuple[str, ...] = ()) -> RunPlan:
    """In mode `single` one source is left: the first, or one by chance."""
    first = random.randrange(len(plan.sources)) if plan.pool.randomize else 0
    sources = plan.sources
    if plan.mode == "single":
        sources, first = (plan.sources[first],), 0
    return RunPlan(
        spec=relay_spec(plan, options, filters),
        sources=[_end(each, plan.pool.backoff) for each in sources],
        target=_end(plan.target, plan.target_backoff),
        pool=plan.pool,
        max_failovers=plan.max_failovers,
        first=first,
        target_retry=plan.target_backoff,
        topics=[each.source for each in plan.topics],
        metrics_address=plan.metrics_address,
    )


def relay_spec(plan: RelayPlan, options: RelayOptions, filters: tuple[str, ...] = ()) -> FlowSpec:
    """The flow. Its name is that of the first source in the files, whichever is read: positions have to be found again
    after a switch, a change of mode, and a start at another source."""
    name = options.name or f"relay-{plan.sources[0].name}"
    taken_over = [] if filters or options.start != TARGET else list(_same_offsets(plan.topics))
    return FlowSpec(
        name=name,
        source_id=name,
        rules=[
            TopicRule(source=each.source, target=each.target, partition=each.partition)
            for each in plan.topics
        ],
        guarantee=Guarantee.AT_LEAST_ONCE if options.at_least_once else Guarantee.EXACTLY_ONCE,
        start=Start.LATEST if options.start == Start.LATEST.value else Start.EARLIEST,
        positions=TargetEnds(taken_over) if taken_over else None,
        # Settings of topics are the target's own affair: kaf-relay changes none.
        creation=TopicCreation(sync_settings=False),
        filters=filters,
        throttle_bytes_s=options.throttle_bytes_s,
        buffer_bytes=options.buffer_bytes,
        dead_letter_topic=options.dead_letter_topic,
        stop_at_end=plan.stop_at_end,
    )


def _same_offsets(pairs: "Iterable[TopicPair]") -> "Iterable[str]":
    """Source topics whose records have the same offsets at the target, as kaf-relay copies them."""
    pairs = tuple(pairs)
    targets = [each.target for each in pairs]
    for pair in pairs:
        if pair.partition is None and targets.count(pair.target) == 1:
            yield pair.source


def _end(cluster: ClusterPlan, retry: RetryPlan) -> EndPlan:
    return EndPlan(
        name=cluster.name,
        properties=client_properties(cluster, retry),
        connect_s=cluster.session_timeout_s,
    )
