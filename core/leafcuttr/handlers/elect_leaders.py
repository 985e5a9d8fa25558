"""ElectLeaders, versions 0 to 2: make the preferred replica the leader (KIP-183), or any (version 1,
KIP-460).

The only replica leads already, so no election is needed; where its log is offline none can help. All
partitions, requested with null, are answered as Kafka does: every topic, and no partition that did not need
an election.
"""

from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import ALTER_CLUSTER, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

PREFERRED: Final = 0
UNCLEAN: Final = 1


async def handle(
    broker: Broker, context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    if (refused := refusal(broker, context, ALTER_CLUSTER)) is not None:
        return _all(request, refused.code, refused.message)
    if request.election_type not in (PREFERRED, UNCLEAN):
        return _all(request, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.timeout_ms <= 0:
        return _all(request, ErrorCode.REQUEST_TIMED_OUT, None)
    if request.topic_partitions is None:
        results = [ReplicaElectionResult(topic=name) for name in broker.topics.by_name]
    else:
        pace = Pace()
        results = [
            ReplicaElectionResult(
                topic=requested.topic,
                partition_result=[
                    _elect(broker, requested.topic, index, request.election_type)
                    async for index in pace.over(requested.partitions)
                ],
            )
            for requested in request.topic_partitions
        ]
    return ElectLeadersResponse(replica_election_results=results)


def _all(request: ElectLeadersRequest, code: ErrorCode, message: str | None) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=requested.topic,
                partition_result=[_result(index, code, message) for index in requested.partitions],
            )
            for requested in request.topic_partitions or ()
        ],
    )


def _elect(broker: Broker, name: str, index: int, election: int) -> PartitionResult:
    topic = broker.topics.find(name)
    if topic is None:
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if topic.partitions[index].log.offline is None:
        return _result(
            index, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
        )
    if election == PREFERRED:
        return _result(
            index, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
        )
    return _result(index, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No eligible leader is available.")


def _result(index: int, code: ErrorCode, message: str | None) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
