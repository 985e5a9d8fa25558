"""Broker settings of compaction."""

from typing import Final

from leafcuttr.config.setting import BOOLEAN, DOUBLE, DOUBLE_MAX, INT, LONG, LONG_MAX, ConfigKey, Override

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    ConfigKey(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        "How long the cleaner sleeps when there is nothing to clean.",
        unit="ms",
        minimum=0,
        dynamic=True,
    ),
    ConfigKey(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        134_217_728,
        (
            "Memory for the cleaner's map of keys, of all its processes, about 110 bytes a key; a log with "
            "more keys is compacted in several rounds."
        ),
        unit="bytes",
        dynamic=True,
    ),
    ConfigKey(
        "log.cleaner.delete.retention.ms",
        LONG,
        86_400_000,
        "How long tombstones of a compacted topic stay.",
        unit="ms",
        minimum=0,
        dynamic=True,
        overridden_by=Override("delete.retention.ms"),
    ),
    ConfigKey("log.cleaner.enable", BOOLEAN, True, "Run the cleaner."),
    ConfigKey(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        "How full the cleaner's map of keys may get.",
        dynamic=True,
    ),
    ConfigKey(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        "Memory for the cleaner's reads and writes.",
        unit="bytes",
        minimum=0,
        dynamic=True,
    ),
    ConfigKey(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        DOUBLE_MAX,
        "The most that the cleaner reads and writes, all its processes together.",
        unit="bytes/s",
        dynamic=True,
    ),
    ConfigKey(
        "log.cleaner.max.compaction.lag.ms",
        LONG,
        LONG_MAX,
        "How long a record may stay out of compaction.",
        unit="ms",
        minimum=1,
        dynamic=True,
        overridden_by=Override("max.compaction.lag.ms"),
    ),
    ConfigKey(
        "log.cleaner.min.cleanable.ratio",
        DOUBLE,
        0.5,
        "The dirty ratio of a log above which the cleaner compacts it.",
        minimum=0.0,
        maximum=1.0,
        dynamic=True,
        overridden_by=Override("min.cleanable.dirty.ratio"),
    ),
    ConfigKey(
        "log.cleaner.min.compaction.lag.ms",
        LONG,
        0,
        "How long a record is kept from compaction.",
        unit="ms",
        minimum=0,
        dynamic=True,
        overridden_by=Override("min.compaction.lag.ms"),
    ),
    ConfigKey(
        "log.cleaner.threads",
        INT,
        1,
        "How many logs may be compacted at a time, each by a process of its own; with 0 none is.",
        minimum=0,
        dynamic=True,
    ),
)
