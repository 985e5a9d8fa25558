"""The internal topics: their names and settings, and that they are there."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker

SESSIONS: Final = TopicPartition("__mqtt_sessions", 0)
RETAINED: Final = TopicPartition("__mqtt_retained", 0)
QUEUE: Final = TopicPartition("__mqtt_queue", 0)

_LARGEST: Final = 300 * 1024 * 1024
"""The largest packet has 256 MiB (2.2.3), and a record its key beside."""
_COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(64 * 1024 * 1024),
    "min.cleanable.dirty.ratio": "0.5",
}
_DELETED: Final = {
    "cleanup.policy": "delete",
    # Files are deleted as whole segments.
    "segment.bytes": str(64 * 1024 * 1024),
    "retention.ms": "-1",
    "retention.bytes": "-1",
}
CONFIGS: Final = {
    name: {
        **configs,
        "max.message.bytes": str(_LARGEST),
        "compression.type": "producer",
        # Times are those of arrival, which a client may see; the clock may have been set since.
        "message.timestamp.type": "CreateTime",
        "message.timestamp.after.max.ms": str((1 << 63) - 1),
    }
    for name, configs in (
        (SESSIONS.topic, _COMPACTED),
        (RETAINED.topic, _COMPACTED),
        (QUEUE.topic, _DELETED),
    )
}

_SYNC: Final = "lc.log.sync.always"


def wants_sync(broker: "Broker", mapped: Iterable[str]) -> bool:
    """Whether one of these topics is in sync mode: an acknowledgement of a message for it promises the queue too."""
    return any(
        broker.topics.configs(name).get(_SYNC) == "true"
        for name in mapped
        if broker.topics.get(name) is not None
    )


async def ensure(broker: "Broker", *, sync: bool) -> None:
    """Create those that are missing, with `sync` in sync mode. That is not taken back. Raises BrokerError."""
    for name, configs in CONFIGS.items():
        if broker.topics.get(name) is None:
            wanted = {**configs, _SYNC: "true"} if sync else configs
            await broker.topics.create(name, partitions=1, configs=wanted, internal=True, owned=True)
        elif sync and broker.topics.configs(name).get(_SYNC) != "true":
            await broker.topics.alter(name, {_SYNC: "true"})
