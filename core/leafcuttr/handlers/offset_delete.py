"""OffsetDelete, version 0 (KIP-496): forget what a group has committed for some partitions.

GROUP_SUBSCRIBED_TO_TOPIC for topics that a member subscribes to. A group with members that are not consumers
is a NON_EMPTY_GROUP: which topics they use is not known.
"""

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import DELETE_GROUP, READ_TOPIC, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from leafcuttr_sdk import TopicPartition


async def handle(
    broker: Broker, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse:
    if not may(broker, context, DELETE_GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=DELETE_GROUP.error)
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    known: list[TopicPartition] = []
    answers: dict[str, dict[int, ErrorCode]] = {}
    for requested in request.topics:
        if not may(broker, context, READ_TOPIC, requested.name):
            refused = dict.fromkeys((each.partition_index for each in requested.partitions), READ_TOPIC.error)
            answers.setdefault(requested.name, {}).update(refused)
            continue
        topic = broker.topics.find(requested.name)
        count = 0 if topic is None else len(topic.partitions)
        # Partitions that do not exist come first in the answer, as in Kafka's.
        codes = answers.setdefault(requested.name, {})
        for each in requested.partitions:
            if 0 <= each.partition_index < count:
                known.append(TopicPartition(requested.name, each.partition_index))
            else:
                codes[each.partition_index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        coming = broker.groups.offsets.delete(request.group_id, known)
        errors = coming if isinstance(coming, list) else await coming
    except BrokerError as error:
        return OffsetDeleteResponse(error_code=error.code)
    for (name, partition), code in zip(known, errors, strict=True):
        answers[name][partition] = code
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=partition, error_code=code)
                    for partition, code in codes.items()
                ],
            )
            for name, codes in answers.items()
        ]
    )
