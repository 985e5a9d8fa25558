"""What filters and validators may read of the broker, in any thread: topics, the cluster, settings, metrics, the time.

The whole of it, which also writes, is `leafcuttr_sdk.Broker`, and belongs to the loop's thread.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from leafcuttr_sdk.types import Clock

if TYPE_CHECKING:
    from leafcuttr_sdk.cluster import Cluster
    from leafcuttr_sdk.metrics import Metrics
    from leafcuttr_sdk.schemas import SchemaProvider
    from leafcuttr_sdk.settings import Settings
    from leafcuttr_sdk.topics import TopicInfo


class ReadOnlyTopics(Protocol):
    """The reading part of `Topics`. Any thread. What it returns is a copy, true at that moment."""

    def names(self, *, internal: bool = False) -> list[str]:
        """Sorted; with the broker's internal ones only if requested."""
        ...

    def get(self, name: str) -> "TopicInfo | None":
        """None for a topic that does not exist."""
        ...

    def partition_count(self, name: str) -> int:
        """0 for a topic that does not exist. Cheap."""
        ...

    def configs(self, name: str) -> Mapping[str, str | None]:
        """Every setting of the topic with its effective value as text, without secrets. Raises
        UnknownTopicOrPartition."""
        ...


class ReadOnlyBroker(Protocol):
    """The part of `Broker` that a filter or validator may use, in any thread and without waiting. None of it is a call
    for every record: an instance reads what it needs when it is made, and keeps it."""

    @property
    def topics(self) -> ReadOnlyTopics:
        """Names, partitions and settings of topics."""
        ...

    @property
    def cluster(self) -> "Cluster":
        """This broker's id, and where it listens."""
        ...

    @property
    def settings(self) -> "Settings":
        """This plugin's settings: those of `TopicContext.settings`. What `on_change` registers here stays until the
        broker stops; there it ends with the instance."""
        ...

    @property
    def schemas(self) -> "SchemaProvider | None":
        """The schema registry that a plugin brings: what it has in memory. None without one."""
        ...

    @property
    def metrics(self) -> "Metrics":
        """Counters, gauges and histograms that this plugin adds to `/metrics`. They may be made and counted in any
        thread, for every record too."""
        ...

    @property
    def clock(self) -> Clock:
        """The time of day and the monotonic one. Tests move them by hand."""
        ...

    @property
    def logger(self) -> logging.Logger:
        """`leafcuttr.plugin.<name>`."""
        ...
