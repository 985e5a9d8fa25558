"""Offsets of groups, committed and read: what a consumer and `Groups` share."""

from collections.abc import Mapping
from typing import Final

import trio

from leafcuttr.errors import InvalidGroupId, UnknownTopicOrPartition
from leafcuttr.plugins.facade.group_errors import error_of
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.groups import CommittedOffset

_AT_ONCE: Final = 500
_NO_EPOCH: Final = -1


async def new_offsets(broker: Broker, offsets: Mapping[TopicPartition, CommittedOffset]) -> list[NewOffset]:
    """The offsets as the coordinator takes them. Raises UnknownTopicOrPartition."""
    new: list[NewOffset] = []
    pace = Pace()
    for partition, (offset, metadata) in offsets.items():
        await pace.turn()
        topic = broker.topics.by_name.get(partition.topic)
        if topic is None or not 0 <= partition.partition < len(topic.partitions):
            raise UnknownTopicOrPartition(f"There is no partition {partition}.")
        new.append(NewOffset(topic.name, topic.id, partition.partition, offset, _NO_EPOCH, metadata))
    return new


async def commit_offsets(
    broker: Broker, group: str, committer: Committer, offsets: Mapping[TopicPartition, CommittedOffset]
) -> None:
    """Commit, some hundred at a time. Raises BrokerError: those before may have been committed. Offsets of partitions
    that do not exist are refused before any is written."""
    if not group:
        raise InvalidGroupId("A group has a name.")
    new = await new_offsets(broker, offsets)
    if not new:
        return
    await broker.groups.ready()
    for at in range(0, len(new), _AT_ONCE):
        some = new[at : at + _AT_ONCE]
        answer = broker.groups.offsets.commit(group, committer, some)
        codes = answer if isinstance(answer, list) else await answer
        for code, each in zip(codes, some, strict=True):
            if code:
                raise error_of(code, f"committing {each.topic}-{each.partition}: {code.name}")
        if len(new) > _AT_ONCE:
            await trio.lowlevel.checkpoint()


def committed_offsets(broker: Broker, group: str) -> dict[TopicPartition, CommittedOffset]:
    """What a group has committed. Raises CoordinatorLoadInProgress, CoordinatorNotAvailable."""
    return {
        TopicPartition(topic, number): CommittedOffset(each.offset, each.metadata)
        for topic, partitions in broker.groups.offsets.fetch(group).items()
        for number, each in partitions.items()
    }
