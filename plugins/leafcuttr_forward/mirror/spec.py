"""A mirror as a flow of the engine."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from leafcuttr_forward.flows.spec import SAME_NAME, FlowSpec, Guarantee, Start, TopicCreation, TopicRule
from leafcuttr_forward.mirror.ends import MirrorEnd
from leafcuttr_forward.relay.plan import PoolPlan, RetryPlan
from leafcuttr_forward.relay.running import EndPlan, RunPlan
from leafcuttr_sdk.errors import PluginError

_FOREVER: Final = RetryPlan(-1, True, 0.5, 10.0)
_POOL: Final = PoolPlan(3.0, 0, 5.0, False, _FOREVER)
_CONNECT_S: Final = 10.0
NEVER: Final = (r"__.*", r"leafcuttr-flows", r"mm2.*\.internal", r".*\.checkpoints\.internal")
"""Topics that belong to a cluster, and to no other one."""


class MirrorOptions(NamedTuple):
    """What the command line says beside the two ends."""

    topics: Sequence[str] = ()
    """Regular expressions; none: all topics."""
    exclude: Sequence[str] = ()
    name: str | None = None
    at_least_once: bool = False
    start: str = Start.EARLIEST.value
    stop_at_end: bool = False
    sync_settings: bool = False
    buffer_bytes: int = 32 << 20
    throttle_bytes_s: float | None = None
    dead_letter_topic: str | None = None
    metrics_address: tuple[str | None, int] | None = None


def mirror_run(
    source: MirrorEnd,
    target: MirrorEnd,
    properties: tuple[Mapping[str, str], Mapping[str, str]],
    options: MirrorOptions,
    filters: tuple[str, ...] = (),
) -> RunPlan:
    """Raises PluginError for two ends that do not go together."""
    ends = [
        EndPlan(name=end.servers, properties=given, connect_s=_CONNECT_S)
        for end, given in zip((source, target), properties, strict=True)
    ]
    return RunPlan(
        spec=mirror_spec(source, target, options, filters),
        sources=ends[:1],
        target=ends[1],
        pool=_POOL,
        target_retry=_FOREVER,
        topics=None if source.topic is None else [source.topic],
        metrics_address=options.metrics_address,
    )


def mirror_spec(
    source: MirrorEnd, target: MirrorEnd, options: MirrorOptions, filters: tuple[str, ...] = ()
) -> FlowSpec:
    """Raises PluginError."""
    return FlowSpec(
        name=options.name or _name(source, target),
        rules=_rules(source, target, options),
        guarantee=Guarantee.AT_LEAST_ONCE if options.at_least_once else Guarantee.EXACTLY_ONCE,
        start=Start(options.start),
        creation=TopicCreation(sync_settings=options.sync_settings),
        filters=filters,
        throttle_bytes_s=options.throttle_bytes_s,
        buffer_bytes=options.buffer_bytes,
        dead_letter_topic=options.dead_letter_topic,
        stop_at_end=options.stop_at_end,
    )


def _rules(source: MirrorEnd, target: MirrorEnd, options: MirrorOptions) -> list[TopicRule]:
    if source.topic is not None:
        if options.topics or options.exclude:
            raise PluginError(
                f"--topics and --exclude choose among all topics, and {source.topic} is one topic"
            )
        return [TopicRule(source=source.topic, target=target.topic or source.topic)]
    if target.topic is not None:
        raise PluginError(
            f"the target names the topic {target.topic}, and the source none: write {source.first}/TOPIC"
        )
    exclude = (*NEVER, *options.exclude)
    patterns = options.topics or (".*",)
    return [TopicRule(source=each, is_pattern=True, exclude=exclude, target=SAME_NAME) for each in patterns]


def _name(source: MirrorEnd, target: MirrorEnd) -> str:
    """The same at every start with the same ends; another one for other topics."""
    parts = ["mirror", source.first]
    if source.topic is not None:
        parts += [source.topic, target.topic or source.topic]
    return "-".join(parts)
