"""Broker settings of classic groups and of committed offsets."""

from typing import Final

from leafcuttr.config.checks import with_classic
from leafcuttr.config.setting import INT, INT_MAX, LIST, LONG, SHORT, ConfigKey, Effect

NONE: Final = Effect.NONE

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    ConfigKey(
        "group.coordinator.append.linger.ms",
        INT,
        -1,
        (
            "How long the records of several requests about groups are gathered into one write; with -1 and 0 each is "
            "written as it comes."
        ),
        unit="ms",
        minimum=-1,
    ),
    ConfigKey(
        "group.coordinator.background.threads",
        INT,
        2,
        "The coordinator's threads for regular expressions.",
        minimum=1,
        effect=NONE,
        reason="the coordinator runs on the event loop",
    ),
    ConfigKey(
        "group.coordinator.cached.buffer.max.bytes",
        INT,
        1_048_588,
        "The largest write buffer that the coordinator keeps for the next write.",
        unit="bytes",
        minimum=524_288,
        dynamic=True,
        effect=NONE,
        reason="it keeps none",
    ),
    ConfigKey(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        "The group protocols that clients may use.",
        choices=("consumer", "classic", "share", "streams"),
        check=with_classic,
        effect=NONE,
        reason="only the classic protocol is supported yet, and as in Kafka it cannot be left out",
    ),
    ConfigKey(
        "group.coordinator.threads",
        INT,
        4,
        "How many partitions of __consumer_offsets are read at once at start.",
        unit="partitions",
        minimum=1,
    ),
    ConfigKey(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        "How long the first rebalance of an empty group waits for more members; 0 serves the first one at once.",
        unit="ms",
    ),
    ConfigKey(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        "The longest session timeout that a member may request.",
        unit="ms",
    ),
    ConfigKey("group.max.size", INT, INT_MAX, "The most members of one group.", unit="members", minimum=1),
    ConfigKey(
        "group.min.session.timeout.ms",
        INT,
        6000,
        "The shortest session timeout that a member may request.",
        unit="ms",
    ),
    ConfigKey(
        "offset.metadata.max.bytes",
        INT,
        4096,
        "The longest text that may be committed with an offset.",
        unit="bytes",
    ),
    ConfigKey(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "How long a commit waits for its write before it is answered with a retriable error.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "offsets.load.buffer.size",
        INT,
        5_242_880,
        "How much is read at once when offsets are loaded at start.",
        unit="bytes",
        minimum=1,
    ),
    ConfigKey(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        "How often expired offsets are deleted.",
        unit="ms",
        minimum=1,
    ),
    ConfigKey(
        "offsets.retention.minutes",
        INT,
        10_080,
        "How long offsets are kept after a group became empty.",
        unit="minutes",
        minimum=1,
    ),
    ConfigKey(
        "offsets.topic.compression.codec",
        INT,
        0,
        "The codec of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        minimum=0,
        maximum=4,
    ),
    ConfigKey(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of __consumer_offsets; fixed once it exists.",
        unit="partitions",
        minimum=1,
    ),
    ConfigKey(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "Replicas of __consumer_offsets.",
        unit="replicas",
        minimum=1,
        effect=NONE,
        reason="there is no replication: above 1 prints a warning and 1 is used",
    ),
    ConfigKey(
        "offsets.topic.segment.bytes",
        INT,
        104_857_600,
        "The size of a segment of __consumer_offsets.",
        unit="bytes",
        minimum=1,
    ),
)
