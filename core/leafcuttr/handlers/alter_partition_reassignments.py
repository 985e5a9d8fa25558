"""AlterPartitionReassignments, versions 0 and 1: move replicas to other brokers (KIP-455). There are none.

A partition that should be where it is, is done; one that should be elsewhere is an
INVALID_REPLICA_ASSIGNMENT; cancelling (null) finds NO_REASSIGNMENT_IN_PROGRESS. Version 1 added the choice
whether the number of replicas may change (KIP-860), which is repeated in the answer. Nothing is done if the
timeout is not positive.
"""

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import ALTER_CLUSTER, refusal
from leafcuttr.handlers.assignments import check_replicas
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


async def handle(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    pace = Pace()
    if (refused := refusal(broker, context, ALTER_CLUSTER)) is not None:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=refused.code,
            error_message=refused.message,
            responses=[
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=[
                        _response(partition.partition_index, refused.code, refused.message)
                        async for partition in pace.over(topic.partitions)
                    ],
                )
                for topic in request.topics
            ],
        )
    late = request.timeout_ms <= 0 and len(request.topics) > 0
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.REQUEST_TIMED_OUT if late else ErrorCode.NONE,
        error_message=None if request.topics else "",
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _late(partition.partition_index) if late else _reassign(broker, topic.name, partition)
                    async for partition in pace.over(topic.partitions)
                ],
            )
            for topic in request.topics
        ],
    )


def _late(index: int) -> ReassignablePartitionResponse:
    return _response(index, ErrorCode.REQUEST_TIMED_OUT, None)


def _reassign(broker: Broker, name: str, requested: ReassignablePartition) -> ReassignablePartitionResponse:
    index = requested.partition_index
    topic = broker.topics.find(name)
    if topic is None:
        message = f"Unable to find a topic named {name}."
        return _response(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if not 0 <= index < len(topic.partitions):
        message = f"Unable to find partition {name}:{index}."
        return _response(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if requested.replicas is None:
        return _response(index, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    try:
        check_replicas(broker.node_id, requested.replicas)
    except BrokerError as error:
        return _response(index, error.code, error.message)
    return _response(index, ErrorCode.NONE, None)


def _response(index: int, code: ErrorCode, message: str | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(partition_index=index, error_code=code, error_message=message)
