"""Topics, as a plugin sees them."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from leafcuttr_sdk._described import described


@described
class PartitionInfo(NamedTuple):
    """A partition as it is now."""

    partition: int
    log_start_offset: int
    high_watermark: int
    offline: str | None = None
    """Why it cannot be read or written, if so."""


@described
class TopicInfo(NamedTuple):
    """A topic as it is now."""

    name: str
    topic_id: bytes
    partitions: Sequence[PartitionInfo]
    overrides: Mapping[str, str]
    """Its settings as far as they were given for it, as texts, without secrets."""
    internal: bool
    owner: str | None = None
    """The plugin to which it belongs, if it is one's own."""


class Topics(Protocol):
    """All topics. Names, partition counts and settings are checked as for clients, with the same errors."""

    def names(self, *, internal: bool = False) -> list[str]:
        """Sorted; with the broker's internal ones only if requested."""
        ...

    def get(self, name: str) -> TopicInfo | None:
        """None for a topic that does not exist."""
        ...

    def partition_count(self, name: str) -> int:
        """0 for a topic that does not exist. Cheap."""
        ...

    async def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
        internal: bool = False,
        owned: bool = False,
    ) -> TopicInfo:
        """Without `partitions` as many as `num.partitions`. An internal one is marked so for clients that list topics
        (they hide it by themselves), and written to by the broker's plugins only. An internal one that is `owned`
        belongs to this plugin, for as long as there is that topic: records are put into it and deleted from it by a
        plugin of this name only. Others, Kafka clients among them, get TopicAuthorizationFailed; they may read it,
        and Kafka clients and plugins may set it, enlarge it and delete it like any other.

        Raises TopicAlreadyExists, InvalidTopic, InvalidPartitions, InvalidConfig, PolicyViolation, StorageError, and
        ValueError for an owned one that is not internal. Cancelled: it may have been created."""
        ...

    async def ensure(self, name: str) -> TopicInfo:
        """The topic, created as for a producer if `auto.create.topics.enable` allows it, else raises
        UnknownTopicOrPartition. InvalidTopic for a name that no topic can have."""
        ...

    async def alter(self, name: str, configs: Mapping[str, str | None]) -> None:
        """Set these settings of the topic; None takes the override away. Raises UnknownTopicOrPartition, InvalidConfig.
        Cancelled: they may have been set, all or none."""
        ...

    async def add_partitions(self, name: str, total: int) -> None:
        """Enlarge the topic to so many. Raises UnknownTopicOrPartition, InvalidPartitions."""
        ...

    async def delete(self, name: str) -> None:
        """Delete the topic; its files go in the background. Raises UnknownTopicOrPartition, TopicDeletionDisabled.
        Cancelled: it may have been deleted."""
        ...

    async def delete_records(self, name: str, partition: int, before_offset: int) -> int:
        """Returns the new log start offset. A negative offset stands for the high watermark. Raises
        UnknownTopicOrPartition, TopicAuthorizationFailed (the topic belongs to another plugin), OffsetOutOfRange,
        PolicyViolation (a topic that is compacted only), StorageError."""
        ...

    def configs(self, name: str) -> Mapping[str, str | None]:
        """Every setting of the topic with its effective value as text, without secrets. Raises
        UnknownTopicOrPartition."""
        ...

    def on_change(self, call: Callable[[str], None]) -> Callable[[], None]:
        """Register a function that is called with the name of each topic that is created, altered, enlarged or deleted.
        Returns a function that ends this."""
        ...
