"""Broker settings of compaction."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import BOOLEAN, DOUBLE, DOUBLE_MAX, INT, LONG, LONG_MAX, Effect, Setting

unused: Final = partial(Setting, effect=Effect.NONE, reason="compaction comes in a later version")

SETTINGS: Final[tuple[Setting, ...]] = (
    unused(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        "How long the cleaner sleeps when there is nothing to clean.",
        unit="ms",
        minimum=0,
        dynamic=True,
    ),
    unused(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        "Memory for the cleaner's map of keys.",
        unit="bytes",
        dynamic=True,
    ),
    unused(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        "How long tombstones of a compacted topic stay.",
        unit="ms",
        minimum=0,
        dynamic=True,
    ),
    unused("log.cleaner.enable", BOOLEAN, True, "Run the cleaner."),
    unused(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        "How full the cleaner's map of keys may get.",
        dynamic=True,
    ),
    unused(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        "Memory for the cleaner's reads and writes.",
        unit="bytes",
        minimum=0,
        dynamic=True,
    ),
    unused(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        DOUBLE_MAX,
        "The most that the cleaner reads and writes.",
        unit="bytes/s",
        dynamic=True,
    ),
    unused(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "How long a record may stay out of compaction.",
        unit="ms",
        minimum=1,
        dynamic=True,
    ),
    unused(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "The share of a log that is not compacted yet at which the cleaner takes it.",
        minimum=0.0,
        maximum=1.0,
        dynamic=True,
    ),
    unused(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "How long a record is kept from compaction.",
        unit="ms",
        minimum=0,
        dynamic=True,
    ),
    unused("log.cleaner.threads", INT, 1, "The cleaner's threads.", minimum=0, dynamic=True),
)
