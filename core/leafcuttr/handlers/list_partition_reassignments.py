"""ListPartitionReassignments, version 0 (KIP-455): none is ever in progress, so none is listed, whatever is
requested."""

from leafcuttr.handlers.access import DESCRIBE_CLUSTER, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if (refused := refusal(broker, context, DESCRIBE_CLUSTER)) is None:
        return ListPartitionReassignmentsResponse(error_message=None)
    pace = Pace()
    return ListPartitionReassignmentsResponse(
        error_code=refused.code,
        error_message=refused.message,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[
                    OngoingPartitionReassignment(partition_index=index)
                    async for index in pace.over(topic.partition_indexes)
                ],
            )
            for topic in request.topics or ()
        ],
    )
