"""The internal topics: their names and settings, and that they are there."""

from collections.abc import Collection, Iterable
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


class Identities:
    """Which topics this start has written to: one that was deleted, or made anew by others, has lost what was in it."""

    def __init__(self, broker: "Broker") -> None:
        self._topics = broker.topics
        self._ids: dict[str, object] = {}
        self.gone: Final[set[str]] = set()
        """The names of those that are not there any more, or are others."""

    def remember(self) -> None:
        """Those that there are now are meant from now on."""
        self._ids = {name: self._id(name) for name in CONFIGS}
        self.gone.clear()

    def look(self, name: str) -> None:
        """The topic may have changed."""
        if name in self._ids and self._id(name) != self._ids[name]:
            self.gone.add(name)

    def look_at_all(self) -> None:
        for name in self._ids:
            self.look(name)

    def _id(self, name: str) -> object:
        info = self._topics.get(name)
        return None if info is None else info.topic_id


async def ensure(broker: "Broker", *, sync: bool, gone: Collection[str] = ()) -> None:
    """Create those that are missing, with `sync` in sync mode. That is not taken back. Of those that are `gone` another
    one may be there, as a consumer that is subscribed to the name creates it: it is deleted, since it belongs to
    nobody. Raises BrokerError."""
    for name in gone:
        if broker.topics.get(name) is not None:
            await broker.topics.delete(name)
    for name, configs in CONFIGS.items():
        if broker.topics.get(name) is None:
            wanted = {**configs, _SYNC: "true"} if sync else configs
            await broker.topics.create(name, partitions=1, configs=wanted, internal=True, owned=True)
        elif sync and broker.topics.configs(name).get(_SYNC) != "true":
            await broker.topics.alter(name, {_SYNC: "true"})
