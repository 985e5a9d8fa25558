"""DeleteTopics, versions 1 to 6.

Version 5 added messages and may refuse what is above a quota (KIP-599), 6 topics named by id (KIP-516): each is named
by exactly one of the two.
With `delete.topic.enable=false` all are refused, with a code that clients before version 3 know. A topic that
is named twice, by whatever means, fails. When the answer leaves, the topics are gone and their names are
free; their files go in the background. Nothing is done if the timeout is not positive.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode, UnknownTopicId, UnknownTopicOrPartition
from leafcuttr.handlers.access import DELETE_ON_CLUSTER, DELETE_TOPIC, DESCRIBE_TOPIC, denied, may
from leafcuttr.handlers.answers import words
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.mutation_quota import MutationQuota
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.topics import ZERO_ID, Topic
from leafcuttr.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

_DENIED: Final = denied(DELETE_TOPIC, DELETE_TOPIC.words)


async def handle(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    requested: Sequence[DeleteTopicState] = request.topics
    if context.api_version < 6:
        requested = [DeleteTopicState(name=name) for name in request.topic_names]
    if not broker.settings.bool("delete.topic.enable"):
        known = context.api_version >= 3
        code = ErrorCode.TOPIC_DELETION_DISABLED if known else ErrorCode.INVALID_REQUEST
        return _all(requested, code)
    if request.timeout_ms <= 0:
        return _all(requested, ErrorCode.REQUEST_TIMED_OUT)
    refused, ids, names = _sort(requested)
    responses = list(refused)
    every = may(broker, context, DELETE_ON_CLUSTER, quietly=True)
    pace = Pace()
    quota = MutationQuota(broker, context, strict_from=5)
    async for topic_id in pace.over(ids):
        topic = broker.topics.by_id.get(topic_id)
        if topic is not None and not (every or may(broker, context, DELETE_TOPIC, topic.name)):
            seen = may(broker, context, DESCRIBE_TOPIC, topic.name, quietly=True)
            responses.append(_failed(topic.name if seen else None, topic_id, _DENIED))
        elif topic is not None and topic.name in names:
            names.remove(topic.name)
            message = "The provided topic name maps to an ID that was already supplied."
            responses.append(_invalid(topic.name, topic_id, message))
        else:
            responses.append(await _delete_by_id(broker, topic_id, quota))
    async for name in pace.over(names):
        if every or _may_delete(broker, context, name):
            responses.append(await _delete_by_name(broker, name, quota))
        else:
            responses.append(_failed(name, ZERO_ID, _DENIED))
    return DeleteTopicsResponse(throttle_time_ms=quota.throttle_time_ms, responses=responses)


def _may_delete(broker: Broker, context: RequestContext, name: str) -> bool:
    """Of a topic that does not exist a client that may describe it learns that; another learns nothing."""
    if broker.topics.find(name) is None:
        return may(broker, context, DESCRIBE_TOPIC, name)
    return may(broker, context, DELETE_TOPIC, name) and may(broker, context, DESCRIBE_TOPIC, name)


def _all(requested: Iterable[DeleteTopicState], code: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in requested
        ]
    )


def _invalid(name: str | None, topic_id: bytes, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message
    )


def _sort(requested: Iterable[DeleteTopicState]) -> tuple[list[DeletableTopicResult], list[bytes], list[str]]:
    """What cannot be meant, the ids and the names: each of those once in the request."""
    refused: list[DeletableTopicResult] = []
    ids: dict[bytes, int] = {}
    names: dict[str, int] = {}
    for topic in requested:
        if topic.name is None and topic.topic_id == ZERO_ID:
            refused.append(_invalid(None, ZERO_ID, "Neither topic name nor id were specified."))
        elif topic.name is None:
            ids[topic.topic_id] = ids.get(topic.topic_id, 0) + 1
        elif topic.topic_id != ZERO_ID:
            refused.append(
                _invalid(topic.name, topic.topic_id, "You may not specify both topic name and topic id.")
            )
        else:
            names[topic.name] = names.get(topic.name, 0) + 1
    refused += [_invalid(None, each, "Duplicate topic id.") for each, times in ids.items() if times > 1]
    refused += [
        _invalid(each, ZERO_ID, "Duplicate topic name.") for each, times in names.items() if times > 1
    ]
    return (
        refused,
        [each for each, times in ids.items() if times == 1],
        [each for each, times in names.items() if times == 1],
    )


async def _delete_by_id(broker: Broker, topic_id: bytes, quota: MutationQuota) -> DeletableTopicResult:
    topic = broker.topics.by_id.get(topic_id)
    if topic is None:
        return _failed(None, topic_id, UnknownTopicId())
    return await _delete(broker, topic, topic_id, quota)


async def _delete_by_name(broker: Broker, name: str, quota: MutationQuota) -> DeletableTopicResult:
    topic = broker.topics.find(name)
    if topic is None:
        return _failed(name, ZERO_ID, UnknownTopicOrPartition())
    return await _delete(broker, topic, topic.id, quota)


async def _delete(
    broker: Broker, topic: Topic, topic_id: bytes, quota: MutationQuota
) -> DeletableTopicResult:
    try:
        quota.take(len(topic.partitions))
        await broker.topics.delete(topic.name, topic_id=topic_id)
    except BrokerError as error:
        return _failed(topic.name, topic_id, error)
    return DeletableTopicResult(name=topic.name, topic_id=topic_id)


def _failed(name: str | None, topic_id: bytes, error: BrokerError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=words(error)
    )
