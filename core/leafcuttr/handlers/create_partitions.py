"""CreatePartitions, versions 0 to 3: more partitions for topics that exist (KIP-195). Version 2 is flexible,
3 may refuse what is above a quota (KIP-599).

Each topic succeeds or fails by itself; one that is named twice fails. Assignments may name this broker only.
Nothing is done if the timeout is not positive. Where Kafka answers a growth that its controller cannot hold
in one batch with UNKNOWN_SERVER_ERROR, the answer here is POLICY_VIOLATION, as for the creation of a topic.
"""

from collections import Counter

from leafcuttr.errors import (
    BrokerError,
    ErrorCode,
    InvalidReplicaAssignment,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from leafcuttr.handlers.access import ALTER_TOPIC, denied, may
from leafcuttr.handlers.assignments import check_replicas
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.create_topics import MAX_PARTITIONS
from leafcuttr.handlers.mutation_quota import MutationQuota
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    if request.timeout_ms <= 0:
        late = [
            CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.REQUEST_TIMED_OUT)
            for topic in request.topics
        ]
        return CreatePartitionsResponse(results=late)
    times = Counter(topic.name for topic in request.topics)
    results = [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name in times
        if times[name] > 1
    ]
    quota = MutationQuota(broker, context, strict_from=3)
    async for topic in Pace().over(request.topics):
        if times[topic.name] == 1:
            try:
                if not may(broker, context, ALTER_TOPIC, topic.name):
                    raise denied(ALTER_TOPIC)
                await _enlarge(broker, topic, quota, validate_only=request.validate_only)
            except BrokerError as error:
                results.append(
                    CreatePartitionsTopicResult(
                        name=topic.name, error_code=error.code, error_message=error.message
                    )
                )
            else:
                results.append(CreatePartitionsTopicResult(name=topic.name))
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_time_ms, results=results)


async def _enlarge(
    broker: Broker, requested: CreatePartitionsTopic, quota: MutationQuota, *, validate_only: bool
) -> None:
    topic = broker.topics.find(requested.name)
    if topic is None:
        raise UnknownTopicOrPartition
    broker.topics.check_growth(topic, requested.count)
    more = requested.count - len(topic.partitions)
    assignments = requested.assignments
    if assignments is not None and len(assignments) != more:
        raise InvalidReplicaAssignment(
            f"Attempted to add {more} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified."
        )
    quota.take(more)
    for assignment in assignments or ():
        check_replicas(broker.node_id, assignment.broker_ids)
    if more > MAX_PARTITIONS:
        raise PolicyViolation("Excessively large number of partitions per request.")
    if not validate_only:
        await broker.topics.add_partitions(requested.name, requested.count)
