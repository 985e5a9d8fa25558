"""OffsetFetch, versions 1 to 10: how far a group has come.

Version 2 allowed all partitions at once (null) and an error for the whole group, 5 added leader epochs
(KIP-320), 6 is flexible, 7 `require_stable` (KIP-447), 8 many groups at once (KIP-709), 9 member epochs
(KIP-848), 10 topic ids.

A client need not be a member, and a group or partition that nothing was committed for is no error: its offset is -1.
With `require_stable` a partition whose offset an open transaction may change gets UNSTABLE_OFFSET_COMMIT: the client
repeats the request. Unlike in Kafka, of a group whose offsets are all requested again and again only the first few are
answered.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import DESCRIBE_GROUP, DESCRIBE_TOPIC, denied, may
from leafcuttr.handlers.answers import FewRepeated
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.offsets import OffsetAndMetadata
from leafcuttr.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from leafcuttr.wire.primitives import ZERO_UUID

_GROUP_ERROR: Final = 2
_MANY_GROUPS: Final = 8
_TOPIC_IDS: Final = 10

_NOTHING: Final = OffsetAndMetadata(-1)
_UNSTABLE: Final = OffsetAndMetadata(-1)  # stands for itself: this very object
_Offsets = Mapping[str, Mapping[int, OffsetAndMetadata]]


class _Topic(NamedTuple):
    name: str
    topic_id: bytes
    offsets: Sequence[tuple[int, OffsetAndMetadata]]
    error: ErrorCode = ErrorCode.NONE


async def handle(broker: Broker, context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    pace = Pace()
    if context.api_version >= _MANY_GROUPS:
        few = FewRepeated()
        return OffsetFetchResponse(
            groups=[
                await _group(broker, context, requested, request.require_stable, pace)
                async for requested in pace.over(request.groups)
                # All offsets of a group are an answer of any length; others have as many elements as their question.
                if requested.topics is not None or few.answers(requested.group_id)
            ]
        )
    requested = request.topics
    try:
        offsets = _offsets(
            broker, context, request.group_id, request.require_stable, everything=requested is None
        )
    except BrokerError as error:
        topics = [
            _Topic(each.name, ZERO_UUID, [(index, _NOTHING) for index in each.partition_indexes], error.code)
            for each in requested or ()
        ]
        return OffsetFetchResponse(
            error_code=error.code,
            topics=await _old_topics(topics, pace) if context.api_version < _GROUP_ERROR else (),
        )
    if requested is None:
        return OffsetFetchResponse(topics=await _old_topics(_all(broker, context, offsets, ids=False), pace))
    named = _seen_first(
        _named_if_seen(broker, context, offsets, each.name, each.partition_indexes) for each in requested
    )
    return OffsetFetchResponse(topics=await _old_topics(named, pace))


def _offsets(
    broker: Broker, context: RequestContext, group_id: str, require_stable: bool, *, everything: bool
) -> _Offsets:
    """What was committed, with `_UNSTABLE` where that may change, as the client wants to know. Raises as `fetch`, and
    GroupAccessDenied."""
    if not may(broker, context, DESCRIBE_GROUP, group_id):
        raise denied(DESCRIBE_GROUP)
    offsets = broker.groups.offsets.fetch(group_id)
    unstable = broker.groups.offsets.unstable(group_id) if require_stable else frozenset()
    if not unstable:
        return offsets
    view = {topic: dict(partitions) for topic, partitions in offsets.items()}
    for topic, partition in unstable:
        # As in Kafka, a request for everything names only partitions that have an offset already.
        if not everything or partition in view.get(topic, {}):
            view.setdefault(topic, {})[partition] = _UNSTABLE
    return view


def _error(topic: _Topic, committed: OffsetAndMetadata) -> ErrorCode:
    return ErrorCode.UNSTABLE_OFFSET_COMMIT if committed is _UNSTABLE else topic.error


async def _group(
    broker: Broker,
    context: RequestContext,
    requested: OffsetFetchRequestGroup,
    require_stable: bool,
    pace: Pace,
) -> OffsetFetchResponseGroup:
    ids = context.api_version >= _TOPIC_IDS
    try:
        offsets = _offsets(
            broker, context, requested.group_id, require_stable, everything=requested.topics is None
        )
    except BrokerError as error:
        return OffsetFetchResponseGroup(group_id=requested.group_id, error_code=error.code)
    topics: Iterable[_Topic]
    if requested.topics is None:
        topics = _all(broker, context, offsets, ids=ids)
    elif ids:
        topics = _seen_first(
            _identified(broker, context, offsets, each.topic_id, each.partition_indexes)
            for each in requested.topics
        )
    else:
        topics = _seen_first(
            _named_if_seen(broker, context, offsets, each.name, each.partition_indexes)
            for each in requested.topics
        )
    return OffsetFetchResponseGroup(
        group_id=requested.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=committed.offset,
                        committed_leader_epoch=committed.leader_epoch,
                        metadata=committed.metadata,
                        error_code=_error(topic, committed),
                    )
                    async for index, committed in pace.over(topic.offsets)
                ],
            )
            async for topic in pace.over(topics)
        ],
    )


def _seen_first(topics: Iterable[_Topic]) -> list[_Topic]:
    """As in Kafka, topics with an error are behind the others."""
    return sorted(topics, key=lambda topic: bool(topic.error))


def _named_if_seen(
    broker: Broker,
    context: RequestContext,
    offsets: _Offsets,
    name: str,
    indexes: Iterable[int],
    topic_id: bytes = ZERO_UUID,
) -> _Topic:
    if not may(broker, context, DESCRIBE_TOPIC, name):
        return _Topic(name, topic_id, [(index, _NOTHING) for index in indexes], DESCRIBE_TOPIC.error)
    return _named(offsets, name, topic_id, indexes)


def _named(offsets: _Offsets, name: str, topic_id: bytes, indexes: Iterable[int]) -> _Topic:
    known = offsets.get(name, {})
    return _Topic(name, topic_id, [(index, known.get(index, _NOTHING)) for index in indexes])


def _identified(
    broker: Broker, context: RequestContext, offsets: _Offsets, topic_id: bytes, indexes: Iterable[int]
) -> _Topic:
    topic = broker.topics.by_id.get(topic_id)
    if topic is None:
        return _Topic("", topic_id, [(index, _NOTHING) for index in indexes], ErrorCode.UNKNOWN_TOPIC_ID)
    return _named_if_seen(broker, context, offsets, topic.name, indexes, topic_id)


def _all(broker: Broker, context: RequestContext, offsets: _Offsets, *, ids: bool) -> list[_Topic]:
    """What the client may see, as it is now: others commit while the answer is made."""
    topics = []
    for name, committed in offsets.items():
        topic = broker.topics.by_name.get(name)
        # Without an id there is nothing to call the topic by in the newest version.
        if (not ids or topic is not None) and may(broker, context, DESCRIBE_TOPIC, name, quietly=True):
            topics.append(_Topic(name, topic.id if topic else ZERO_UUID, list(committed.items())))
    return topics


async def _old_topics(topics: Iterable[_Topic], pace: Pace) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    error_code=_error(topic, committed),
                )
                async for index, committed in pace.over(topic.offsets)
            ],
        )
        async for topic in pace.over(topics)
    ]
