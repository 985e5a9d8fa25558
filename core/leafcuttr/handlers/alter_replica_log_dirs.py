"""AlterReplicaLogDirs, versions 1 and 2: move partitions to another data directory (KIP-113).

There is one data directory, so a move is a LOG_DIR_NOT_FOUND or, for a partition that is where it should go,
done. Versions differ in encoding only.
"""

from leafcuttr.errors import ErrorCode, UnknownTopicOrPartition
from leafcuttr.handlers.access import ALTER_CLUSTER, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from leafcuttr_sdk import TopicPartition


async def handle(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    own = str(broker.logs.directory)
    pace = Pace()
    refused = refusal(broker, context, ALTER_CLUSTER)
    codes: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            async for index in pace.over(topic.partitions):
                code = (
                    _move(broker, TopicPartition(topic.name, index), directory.path == own)
                    if refused is None
                    else refused.code
                )
                codes.setdefault(topic.name, {})[index] = code
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    async for index, code in pace.over(of_topic.items())
                ],
            )
            async for name, of_topic in pace.over(codes.items())
        ]
    )


def _move(broker: Broker, topic_partition: TopicPartition, here: bool) -> ErrorCode:
    if not here:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        broker.topics.partition(topic_partition)
    except UnknownTopicOrPartition as error:
        return error.code
    return ErrorCode.NONE
