"""OffsetForLeaderEpoch, versions 2 to 4: where an epoch ended, so that a consumer notices truncation (KIP-320).

Version 3 added the replica id, 4 is flexible. An epoch that this log never had is answered with epoch and offset -1.
"""

from leafcuttr.errors import BrokerError, FencedLeaderEpoch, UnknownLeaderEpoch
from leafcuttr.handlers.access import CLUSTER_ACTION, DESCRIBE_TOPIC, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from leafcuttr_sdk import TopicPartition


async def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    pace = Pace()
    every = may(broker, context, CLUSTER_ACTION, quietly=True)
    topics: list[OffsetForLeaderTopicResult] = []
    unseen: list[OffsetForLeaderTopicResult] = []
    for topic in request.topics:
        name = topic.topic
        if every or may(broker, context, DESCRIBE_TOPIC, name):
            ends = [_end(broker, name, item) async for item in pace.over(topic.partitions)]
            topics.append(OffsetForLeaderTopicResult(topic=name, partitions=ends))
        else:
            ends = [
                EpochEndOffset(error_code=DESCRIBE_TOPIC.error, partition=item.partition)
                async for item in pace.over(topic.partitions)
            ]
            unseen.append(OffsetForLeaderTopicResult(topic=name, partitions=ends))
    return OffsetForLeaderEpochResponse(topics=topics + unseen)


def _end(broker: Broker, topic: str, item: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = broker.topics.partition(TopicPartition(topic, item.partition))
        if 0 <= item.current_leader_epoch < partition.leader_epoch:
            raise FencedLeaderEpoch
        if item.current_leader_epoch > partition.leader_epoch:
            raise UnknownLeaderEpoch
        epoch, end_offset = partition.log.offset_for_leader_epoch(item.leader_epoch)
    except BrokerError as error:
        return EpochEndOffset(error_code=error.code, partition=item.partition)
    return EpochEndOffset(partition=item.partition, leader_epoch=epoch, end_offset=end_offset)
