"""`leafcuttr_sdk.Topics` for a client: as Metadata, CreateTopics, IncrementalAlterConfigs and so on decide."""

from collections.abc import Callable, Mapping

from leafcuttr.handlers.access import (
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    DELETE_ON_CLUSTER,
    DELETE_TOPIC,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
)
from leafcuttr.plugins.facade.acting.rights import Rights
from leafcuttr.plugins.facade.topics import TopicsView
from leafcuttr.state.broker import Broker
from leafcuttr_sdk import TopicInfo


class ActingTopics(TopicsView):
    """Each call may raise AuthorizationFailed, but for `names`, which leaves out what the client may not see."""

    def __init__(self, core: Broker, plugin: str, rights: Rights) -> None:
        super().__init__(core, plugin)
        self._rights = rights

    def names(self, *, internal: bool = False) -> list[str]:
        return [name for name in super().names(internal=internal) if self._rights.may(DESCRIBE_TOPIC, name)]

    def get(self, name: str) -> TopicInfo | None:
        self._rights.need(DESCRIBE_TOPIC, name)
        return super().get(name)

    def partition_count(self, name: str) -> int:
        self._rights.need(DESCRIBE_TOPIC, name)
        return super().partition_count(name)

    async def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        configs: Mapping[str, str] | None = None,
        internal: bool = False,
        owned: bool = False,
    ) -> TopicInfo:
        self._rights.need_to_create(name)
        return await super().create(
            name, partitions=partitions, configs=configs, internal=internal, owned=owned
        )

    async def ensure(self, name: str) -> TopicInfo:
        self._rights.need(DESCRIBE_TOPIC, name)
        if name not in self._topics.by_name:
            self._rights.need_to_create(name)
        return await super().ensure(name)

    async def alter(self, name: str, configs: Mapping[str, str | None]) -> None:
        self._rights.need(ALTER_TOPIC_CONFIGS, name)
        await super().alter(name, configs)

    async def add_partitions(self, name: str, total: int) -> None:
        self._rights.need(ALTER_TOPIC, name)
        await super().add_partitions(name, total)

    async def delete(self, name: str) -> None:
        self._rights.need_on_cluster_or(DELETE_ON_CLUSTER, DELETE_TOPIC, name)
        await super().delete(name)

    async def delete_records(self, name: str, partition: int, before_offset: int) -> int:
        self._rights.need(DELETE_TOPIC, name)
        return await super().delete_records(name, partition, before_offset)

    def configs(self, name: str) -> Mapping[str, str | None]:
        self._rights.need(DESCRIBE_TOPIC_CONFIGS, name)
        return super().configs(name)

    def on_change(self, call: Callable[[str], None]) -> Callable[[], None]:
        def told(name: str) -> None:
            if self._rights.may(DESCRIBE_TOPIC, name):
                call(name)

        return super().on_change(told)
