"""The tables joined: every broker, topic and group setting by name, and the aliases of names.

Order is the order of the reference page: themes first, names within them.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Final

from leafcuttr.config import (
    cleaner_settings,
    cluster_settings,
    consumer_group_settings,
    group_resource_settings,
    group_settings,
    leafcuttr_settings,
    log_settings,
    metric_settings,
    network_settings,
    oauth_settings,
    replication_settings,
    sasl_settings,
    security_settings,
    share_group_settings,
    streams_group_settings,
    tiered_settings,
    tls_settings,
    topic_settings,
    transaction_settings,
)
from leafcuttr.config.setting import Setting

THEMES: Final[tuple[tuple[str, tuple[Setting, ...]], ...]] = (
    ("LeafCuttr's own", leafcuttr_settings.SETTINGS),
    ("Listeners, connections and requests", network_settings.SETTINGS),
    ("Log", log_settings.SETTINGS),
    ("Groups and offsets", group_settings.SETTINGS),
    ("Producers and transactions", transaction_settings.SETTINGS),
    ("Cluster", cluster_settings.SETTINGS),
    ("Compaction", cleaner_settings.SETTINGS),
    ("Consumer groups", consumer_group_settings.SETTINGS),
    ("Share groups", share_group_settings.SETTINGS),
    ("Streams groups", streams_group_settings.SETTINGS),
    ("Replication", replication_settings.SETTINGS),
    ("Tiered storage", tiered_settings.SETTINGS),
    ("Metrics", metric_settings.SETTINGS),
    ("Security", security_settings.SETTINGS),
    ("TLS", tls_settings.SETTINGS),
    ("SASL", sasl_settings.SETTINGS),
    ("OAuth", oauth_settings.SETTINGS),
)

BROKER: Final[dict[str, Setting]] = {s.name: s for _, table in THEMES for s in table}
TOPIC: Final[dict[str, Setting]] = {s.name: s for s in topic_settings.SETTINGS}
GROUP: Final[dict[str, Setting]] = {s.name: s for s in group_resource_settings.SETTINGS}

# Names that other manuals use for one of ours. The manual of LeafCuttr 0.5 says flush.interval.*.
ALIASES: Final[dict[str, str]] = {
    "flush.interval.messages": "log.flush.interval.messages",
    "flush.interval.ms": "log.flush.interval.ms",
}

# Kafka's own default where ours is another, as text; None where Kafka has none. The help of each says why.
KAFKA_DEFAULTS: Final[dict[str, str | None]] = {
    "controller.listener.names": None,
    "listeners": "PLAINTEXT://:9092",
    "log.dir": "/tmp/kafka-logs",
    "node.id": None,
    "process.roles": None,
}

# A broker setting whose value, when it has none, is that of another one in another unit. The topic settings'
# own synonyms start with the first name of such a chain.
BROKER_SYNONYMS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "log.retention.ms": (("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "log.roll.ms": (("log.roll.hours", 3_600_000),),
    "log.roll.jitter.ms": (("log.roll.jitter.hours", 3_600_000),),
    "log.flush.interval.ms": (("log.flush.scheduler.interval.ms", 1),),
}

# What can be given for one listener alone, as `listener.name.<listener in lower case>.<setting>`.
OF_LISTENERS: Final = ("max.connections", "max.connection.creation.rate")
LISTENER_PREFIX: Final = "listener.name."


def setting_of(name: str) -> Setting | None:
    """The broker setting of this name, which may be one listener's; None if there is none."""
    found = BROKER.get(name)
    return found or (_of_listener(name) if name.startswith(LISTENER_PREFIX) else None)


def base_of(name: str) -> str:
    """The broker setting that a setting of one listener is about; any other name is its own."""
    return name if name in BROKER else name.removeprefix(LISTENER_PREFIX).partition(".")[2]


@lru_cache(64)  # names come from clients too
def _of_listener(name: str) -> Setting | None:
    listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    if not listener or listener != listener.lower() or rest not in OF_LISTENERS:
        return None
    return replace(BROKER[rest], name=name)
