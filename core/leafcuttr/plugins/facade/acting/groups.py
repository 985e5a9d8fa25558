"""`leafcuttr_sdk.Groups` for a client: as DescribeGroups, OffsetFetch, OffsetCommit and DeleteGroups decide."""

from collections.abc import Mapping
from typing import TypeVar

from leafcuttr.handlers.access import (
    DELETE_GROUP,
    DESCRIBE_CLUSTER,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
)
from leafcuttr.plugins.facade.acting.rights import Rights
from leafcuttr.plugins.facade.groups import GroupsView
from leafcuttr.state.broker import Broker
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.groups import CommittedOffset, GroupInfo

T = TypeVar("T")


class ActingGroups(GroupsView):
    """Each call may raise AuthorizationFailed, but for `names`, which leaves out what the client may not see. Offsets
    in topics that it may not see are left out too."""

    def __init__(self, core: Broker, rights: Rights) -> None:
        super().__init__(core)
        self._rights = rights

    def names(self) -> list[str]:
        found = super().names()
        if self._rights.may(DESCRIBE_CLUSTER):
            return found
        return [name for name in found if self._rights.may(DESCRIBE_GROUP, name)]

    def get(self, group: str) -> GroupInfo | None:
        self._rights.need(DESCRIBE_GROUP, group)
        return super().get(group)

    def committed(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        self._rights.need(DESCRIBE_GROUP, group)
        return self._seen(super().committed(group))

    def lag(self, group: str) -> Mapping[TopicPartition, int]:
        self._rights.need(DESCRIBE_GROUP, group)
        return self._seen(super().lag(group))

    def _seen(self, of_partitions: Mapping[TopicPartition, T]) -> Mapping[TopicPartition, T]:
        return {
            partition: value
            for partition, value in of_partitions.items()
            if self._rights.may(DESCRIBE_TOPIC, partition.topic)
        }

    async def commit(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._rights.need_to_commit(group, (partition.topic for partition in offsets))
        await super().commit(group, offsets)

    async def delete(self, group: str) -> None:
        self._rights.need(DELETE_GROUP, group)
        await super().delete(group)
