"""A topic's settings: what it overrides, laid over the broker's values, as one frozen typed object.

`log` and the produce path read the attributes; names are Kafka's with `_` for `.`. What a setting does is not
here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from leafcuttr.config.catalog import TOPIC, Catalog
from leafcuttr.config.setting import BadValueError, Value
from leafcuttr.config.settings import Settings
from leafcuttr.errors import InvalidConfig

_NOTHING: Final[Mapping[str, Value]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The effective settings of one topic. Times in milliseconds, sizes in bytes, -1 (or LONG_MAX) without
    limit. `extra` has those of plugins, by name; members of families only where the topic gives them.
    """

    cleanup_policy: tuple[str, ...]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool
    lc_log_sync_always: bool
    lc_records_check: str
    lc_filters: tuple[str, ...]
    lc_filters_dead_letter_topic: str | None
    lc_validators: tuple[str, ...]
    extra: Mapping[str, Value] = field(default_factory=lambda: _NOTHING, hash=False)

    @property
    def compact(self) -> bool:
        """Records with the same key replace each other; a record must have one."""
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Old segments go by time and size."""
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        """Timestamps are the broker's, not the producer's."""
        return self.message_timestamp_type == "LogAppendTime"


def topic_config(
    settings: Settings,
    overrides: Mapping[str, str] | None = None,
    *,
    topic: str = "",
    kept: Mapping[str, str] | None = None,
) -> TopicConfig:
    """The effective settings of a topic with this name and these overrides (Kafka's names, texts).

    Raises InvalidConfig: an unknown name, a bad value, values that contradict each other. What the topic has already
    (`kept`) may stay under a name that is not known any more: that of a plugin that is not installed now. Topics
    without overrides share one object.
    """
    if not overrides:
        return stored_topic_config(settings, {}, topic)
    catalog = settings.catalog
    known = {name: text for name, text in overrides.items() if catalog.topic_setting(name) is not None}
    for name, text in overrides.items():
        if name not in known and (kept or {}).get(name) != text:
            raise InvalidConfig(f"Unknown topic config name: {name}")
    values = dict(defaults_of(settings, topic))
    for name, text in known.items():
        values[name] = validate_override(catalog, name, text)
    _cross_check(values)
    return _build(values)


def stored_topic_config(settings: Settings, overrides: Mapping[str, str], topic: str = "") -> TopicConfig:
    """As `topic_config`, for overrides read back from the metadata: one that is no longer valid is left out.

    A start must not fail on what an earlier version accepted; DescribeConfigs shows the value in force.
    """
    if not overrides and not settings.given_to_topic(topic):
        return _default(settings.topic_defaults)
    values = dict(defaults_of(settings, topic))
    for name, text in overrides.items():
        try:
            values[name] = validate_override(settings.catalog, name, text)
        except InvalidConfig:
            continue
    return _build(values)


def validate_override(catalog: Catalog, name: str, text: str) -> Value:
    """The typed value of one override. Raises InvalidConfig with Kafka's words."""
    setting = catalog.topic_setting(name)
    if setting is None:
        raise InvalidConfig(f"Unknown topic config name: {name}")
    try:
        value = setting.parse(text)
    except BadValueError as error:
        raise InvalidConfig(setting.refusal(text, error)) from None
    if (refusal := setting.refuses(value)) is not None:
        raise InvalidConfig(refusal)
    return value


def validate_overrides(settings: Settings, overrides: Mapping[str, str | None], topic: str = "") -> None:
    """Check the overrides of a new topic, where null is a mistake. Raises InvalidConfig."""
    nulls = [name for name, text in overrides.items() if text is None]
    if nulls:
        raise InvalidConfig(f"Null value not supported for topic configs: {','.join(nulls)}")
    topic_config(settings, {name: text for name, text in overrides.items() if text is not None}, topic=topic)


def _cross_check(values: Mapping[str, Any]) -> None:
    if values["min.compaction.lag.ms"] > values["max.compaction.lag.ms"]:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({values['min.compaction.lag.ms']}) "
            f"> max.compaction.lag.ms ({values['max.compaction.lag.ms']})"
        )


def defaults_of(settings: Settings, topic: str) -> Mapping[str, Value]:
    """What a topic of this name has where it overrides nothing."""
    given = settings.given_to_topic(topic)
    if not given:
        return settings.topic_defaults
    return {**settings.topic_defaults, **{name: settings.value(member) for name, member in given.items()}}


class _Latest:
    """The last default built: all topics of a broker without overrides share it until a default changes."""

    defaults: Mapping[str, Value] | None = None
    config: TopicConfig


def _default(defaults: Mapping[str, Value]) -> TopicConfig:
    if _Latest.defaults is not defaults:
        _Latest.config = _build(defaults)
        _Latest.defaults = defaults
    return _Latest.config


def _build(values: Mapping[str, Any]) -> TopicConfig:
    own = {name.replace(".", "_"): values[name] for name in TOPIC}
    if len(values) == len(TOPIC):
        return TopicConfig(**own)
    return TopicConfig(**own, extra={name: value for name, value in values.items() if name not in TOPIC})
