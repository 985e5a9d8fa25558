"""Broker settings of replication, accepted so that a Kafka file starts us, without effect."""

from functools import partial
from typing import Final

from leafcuttr.config.setting import BOOLEAN, INT, LONG, STRING, ConfigKey, Effect

unused: Final = partial(ConfigKey, effect=Effect.NONE, reason="there is no replication")

SETTINGS: Final[tuple[ConfigKey, ...]] = (
    unused(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "Windows of the quota on moves between directories.",
        unit="windows",
        minimum=1,
    ),
    unused(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        "Length of a window of the quota on moves between directories.",
        unit="seconds",
        minimum=1,
    ),
    unused(
        "auto.leader.rebalance.enable", BOOLEAN, True, "Give leadership back to preferred replicas by itself."
    ),
    unused(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "How often the balance of leaders is checked.",
        unit="seconds",
        minimum=1,
    ),
    unused(
        "num.replica.alter.log.dirs.threads", INT, None, "Threads that move replicas between directories."
    ),
    unused("num.replica.fetchers", INT, 1, "Threads that fetch from other brokers.", minimum=1, dynamic=True),
    unused(
        "replica.fetch.backoff.ms", INT, 1000, "The pause of a follower after an error.", unit="ms", minimum=0
    ),
    unused(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        "The most that a follower fetches of one partition.",
        unit="bytes",
        minimum=0,
    ),
    unused("replica.fetch.min.bytes", INT, 1, "The least that a follower waits for.", unit="bytes"),
    unused(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        "The most that one fetch of a follower answers.",
        unit="bytes",
        minimum=0,
    ),
    unused("replica.fetch.wait.max.ms", INT, 500, "How long a follower's fetch may wait.", unit="ms"),
    unused(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often high watermarks are written.",
        unit="ms",
    ),
    unused("replica.lag.time.max.ms", LONG, 30_000, "When a follower that lags is out of sync.", unit="ms"),
    unused("replica.selector.class", STRING, None, "The class that chooses which replica a consumer reads."),
    unused(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        "The receive buffer of a follower's connection.",
        unit="bytes",
    ),
    unused("replica.socket.timeout.ms", INT, 30_000, "How long a follower's request may take.", unit="ms"),
    unused(
        "replication.quota.window.num",
        INT,
        11,
        "Windows of the quota on replication.",
        unit="windows",
        minimum=1,
    ),
    unused(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "Length of a window of the quota on replication.",
        unit="seconds",
        minimum=1,
    ),
)
