"""The rules for an append: those of the topic's settings, worked out once and shared by all partitions with the same
ones, and those of the batch's origin."""

import random
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from leafcuttr.config.topic import TopicConfig

LONG_MAX: Final = 2**63 - 1
LARGE: Final = 8 * 1024 * 1024
"""Bytes of a batch, or of a write, that take milliseconds of the processor even in C: a worker thread's work."""


class AppendRules(NamedTuple):
    """Sizes in bytes, times in ms."""

    max_message_bytes: int
    checked_at_once_bytes: int  # above it a batch is too large, or long to check
    segment_bytes: int
    segment_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    timestamp_after_max_ms: int
    converts_all: bool  # the settings want each batch of a client converted
    always_convert: bool  # or a chain has to see it first
    recompresses: bool
    converts_own: bool  # also what this broker has encoded itself
    codecs_kept: frozenset[int]  # of such batches those with keys in all records are stored as they are
    sets_header_only: bool  # the conversion does not need the records
    checks_ends: bool  # of records in batches that no conversion looks into
    flush_messages: int
    sync: bool


@lru_cache(maxsize=1024)
def append_rules(config: TopicConfig) -> AppendRules:
    """The rules of these settings."""
    from leafcuttr.log.append.conversion import changes_batches, codecs_kept, needs_conversion, needs_decoding

    recompresses = config.compression_type != "producer"
    converts_all = needs_conversion(config)

    return AppendRules(
        config.max_message_bytes,
        min(config.max_message_bytes, LARGE),
        config.segment_bytes,
        # What is in the active segment is not compacted, so that must not stay active for longer than that.
        min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms,
        config.segment_index_bytes,
        config.index_interval_bytes,
        LONG_MAX if config.log_append_time else config.message_timestamp_after_max_ms,
        converts_all,
        converts_all,
        recompresses,
        changes_batches(config),
        codecs_kept(config),
        config.log_append_time and not recompresses and not needs_decoding(config),
        config.lc_records_check != "off" and not needs_decoding(config),
        config.flush_messages,
        config.lc_log_sync_always,
    )


def jitter_ms(segment_jitter_ms: int, segment_ms: int) -> int:
    """How much earlier than segment.ms this log rolls, so that not all roll at once."""
    most = min(segment_jitter_ms, segment_ms)  # either may be below 0, as in Kafka
    return random.randrange(most) if most > 0 else 0


@dataclass(frozen=True)
class _Traits:
    """See `Origin`."""

    deferrable: bool = False
    chained: bool = False
    whole: bool = False
    keyed: bool = False
    any_size: bool = False
    unsequenced: bool = False
    transaction_version: int = 0


class Origin(Enum):
    """The maker of a batch that is to be staged.

    `deferrable`: it is refused while free space is short, and LongWork is raised where a worker thread has to check
    it first. Others are the broker's own state, which is staged at once, whatever that takes.
    `chained`: the topic's chain of produce validators and record filters runs over it.
    `whole`: this broker has encoded it, so its records fill it; `lc.records.check` is for others' batches.
    `keyed`: all of its records have keys, as a compacted topic wants it.
    `any_size`: max.message.bytes does not hold for it.
    `unsequenced`: a producer's batch may have no sequence number.
    `transaction_version`: of a marker, 2 if its epoch is above that of the records (KIP-890); 0 if it is none. No
    other origin writes control batches.
    """

    CLIENT = _Traits(deferrable=True, chained=True)
    """A Produce request, or a plugin that hands over a batch as bytes."""

    ENCODER = _Traits(deferrable=True, chained=True, whole=True)
    """This broker, of the records that a plugin hands over."""

    COORDINATOR = _Traits(whole=True, keyed=True, unsequenced=True)
    """A coordinator that keeps its state in an internal topic; in a producer's name where offsets are committed in a
    transaction."""

    DEAD_LETTERS = _Traits(deferrable=True, whole=True, any_size=True)
    """Records that a filter has taken out of a batch. What the broker adds to a record may make it larger than its
    topic allows."""

    MARKER = _Traits(whole=True, keyed=True, any_size=True, unsequenced=True, transaction_version=1)
    """The end of a transaction."""

    MARKER_OF_NEXT_EPOCH = _Traits(
        whole=True, keyed=True, any_size=True, unsequenced=True, transaction_version=2
    )
    """The end of a transaction of version 2."""

    def __init__(self, traits: _Traits) -> None:
        self.deferrable = traits.deferrable
        self.chained = traits.chained
        self.whole = traits.whole
        self.keyed = traits.keyed
        self.any_size = traits.any_size
        self.unsequenced = traits.unsequenced
        self.transaction_version = traits.transaction_version
