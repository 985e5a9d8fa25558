"""What a filter or validator reads of a broker where there is none: one topic, and metrics of its own."""

import logging
from collections.abc import Mapping, Sequence

from leafcuttr_sdk.cluster import Endpoint
from leafcuttr_sdk.errors import UnknownTopicOrPartition
from leafcuttr_sdk.metrics import Metrics
from leafcuttr_sdk.schemas import SchemaProvider
from leafcuttr_sdk.settings import Settings
from leafcuttr_sdk.topics import PartitionInfo, TopicInfo
from leafcuttr_sdk.types import Clock


class FixedBroker:
    """A `ReadOnlyBroker`. Its counters are the broker's own, of no broker."""

    def __init__(
        self,
        topic: str,
        settings: Settings,
        clock: Clock,
        logger: logging.Logger,
        plugin: str,
        schemas: SchemaProvider | None = None,
    ) -> None:
        self.topics = FixedTopics(topic)
        self.cluster = FixedCluster()
        self.settings = settings
        self.clock = clock
        self.logger = logger
        self.schemas = schemas
        self._plugin = plugin
        self._metrics: Metrics | None = None

    @property
    def metrics(self) -> Metrics:
        from leafcuttr.metrics.added import AddedMetrics

        if self._metrics is None:
            self._metrics = AddedMetrics().of(self._plugin)
        return self._metrics


class FixedTopics:
    """A `ReadOnlyTopics` of one topic with one partition and nothing of its own."""

    def __init__(self, topic: str) -> None:
        self._topic = TopicInfo(topic, bytes(16), [PartitionInfo(0, 0, 0)], {}, False)

    def names(self, *, internal: bool = False) -> list[str]:
        return [self._topic.name]

    def get(self, name: str) -> TopicInfo | None:
        return self._topic if name == self._topic.name else None

    def partition_count(self, name: str) -> int:
        return 1 if name == self._topic.name else 0

    def configs(self, name: str) -> Mapping[str, str | None]:
        if name != self._topic.name:
            raise UnknownTopicOrPartition(f"There is no topic '{name}'.")
        return {}


class FixedCluster:
    """A `Cluster` of one broker that listens nowhere."""

    cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
    node_id = 1
    version = "0"

    @property
    def listeners(self) -> Sequence[Endpoint]:
        return ()
