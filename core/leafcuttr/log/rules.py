"""What a topic's settings ask of an append, worked out once and shared by all partitions with the same settings."""

from functools import lru_cache
from typing import Final, NamedTuple

from leafcuttr.config.topic import TopicConfig

LONG_MAX: Final = 2**63 - 1


class AppendRules(NamedTuple):
    """Sizes in bytes, times in ms."""

    max_message_bytes: int
    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    timestamp_after_max_ms: int
    always_convert: bool
    flush_messages: int
    sync: bool


@lru_cache(maxsize=1024)
def append_rules(config: TopicConfig) -> AppendRules:
    """The rules of these settings."""
    from leafcuttr.log.convert import needs_conversion

    return AppendRules(
        config.max_message_bytes,
        config.segment_bytes,
        config.segment_ms,
        config.segment_index_bytes,
        config.index_interval_bytes,
        LONG_MAX if config.log_append_time else config.message_timestamp_after_max_ms,
        needs_conversion(config),
        config.flush_messages,
        config.lc_log_sync_always,
    )
