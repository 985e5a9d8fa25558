"""DescribeTopicPartitions, version 0 (KIP-966): topics in order of name, a page of partitions at a time.

A page ends after `response_partition_limit` partitions (at least one, at most
`max.request.partition.size.limit`) with a cursor that names the next one. Of topics that are requested by
name the cursor's must be one; of all topics it may have been deleted meanwhile. There is one replica, so the
lists of eligible and last known leaders are empty.
"""

from collections.abc import Iterator
from typing import NamedTuple

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import DESCRIBE_TOPIC, may, operations
from leafcuttr.handlers.answers import operations_on
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.acl import AclResourceType
from leafcuttr.state.topics import Topic
from leafcuttr.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


class _Start(NamedTuple):
    topic: str
    partition: int


async def handle(
    broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    names = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
                for topic in request.topics
            ]
        )
    start = _Start(cursor.topic_name, cursor.partition_index) if cursor else _Start("", 0)
    wanted: list[str] = []
    unseen: list[DescribeTopicPartitionsResponseTopic] = []
    for name in sorted(name for name in names or broker.topics.by_name if name >= start.topic):
        if may(broker, context, DESCRIBE_TOPIC, name, quietly=not names):
            wanted.append(name)
        elif names:
            unseen.append(DescribeTopicPartitionsResponseTopic(error_code=DESCRIBE_TOPIC.error, name=name))
    limit = min(request.response_partition_limit, broker.settings.int("max.request.partition.size.limit"))
    topics, following = await _page(broker, context, wanted, start, max(limit, 1))
    return DescribeTopicPartitionsResponse(topics=topics + unseen, next_cursor=following)


async def _page(
    broker: Broker, context: RequestContext, names: list[str], start: _Start, limit: int
) -> tuple[list[DescribeTopicPartitionsResponseTopic], Cursor | None]:
    pace = Pace()
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    left = limit
    following: Cursor | None = None
    for name in names:
        await pace.turn()
        if not left:
            following = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.topics.find(name)
        if topic is None:
            topics.append(_unknown(broker, context, name))
            continue
        first = start.partition if name == start.topic else 0
        end = min(first + left, len(topic.partitions))
        topics.append(await _found(broker, context, topic, first, end, pace))
        left -= max(end - first, 0)
        if end < len(topic.partitions):
            following = Cursor(topic_name=name, partition_index=end)
            break
    return topics, following


def _unknown(broker: Broker, context: RequestContext, name: str) -> DescribeTopicPartitionsResponseTopic:
    valid = topic_names.is_valid(name)
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in topic_names.INTERNAL,
        topic_authorized_operations=operations(broker, context, AclResourceType.TOPIC, name),
    )


async def _found(
    broker: Broker, context: RequestContext, topic: Topic, first: int, end: int, pace: Pace
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[each async for each in pace.over(_partitions(broker.node_id, topic, first, end))],
        topic_authorized_operations=operations_on(broker, context, topic),
    )


def _partitions(
    node_id: int, topic: Topic, first: int, end: int
) -> Iterator[DescribeTopicPartitionsResponsePartition]:
    for part in topic.partitions[first:end]:
        offline = part.log.offline is not None
        yield DescribeTopicPartitionsResponsePartition(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE if offline else ErrorCode.NONE,
            partition_index=part.index,
            leader_id=-1 if offline else node_id,
            leader_epoch=part.leader_epoch,
            replica_nodes=(node_id,),
            isr_nodes=() if offline else (node_id,),
            eligible_leader_replicas=(),
            last_known_elr=(),
            offline_replicas=(node_id,) if offline else (),
        )
