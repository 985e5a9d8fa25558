"""OffsetCommit, versions 2 to 10: a group says how far it has come.

Version 5 dropped the retention time that a client could request, 6 added leader epochs (KIP-320), 7 static
membership (KIP-345), 8 is flexible, 9 knows GROUP_ID_NOT_FOUND and member epochs (KIP-848), 10 topic ids
(KIP-848).

A generation of -1 without member is a simple consumer's or an administrator's, accepted while the group has
no members; so is, for old clients, the empty group id. Nothing is checked of the offset itself. Partitions
that do not exist come first in the answer, as in Kafka's.
"""

from collections.abc import Awaitable, Sequence
from typing import Final

import trio

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import READ_GROUP, READ_TOPIC, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.topic_names import CONSUMER_OFFSETS
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_MISSING_GROUPS: Final = 9
_TOPIC_IDS: Final = 10
_AT_ONCE: Final = (
    500  # offsets in one batch; a longer request is stored in several, and others run in between
)

# A topic of the request, and the answers about its partitions: one for each time that a partition is named.
_OfTopic = list[tuple[int, ErrorCode]]
_Codes = list[tuple[OffsetCommitRequestTopic, _OfTopic]]


def handle(
    broker: Broker, context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    if not may(broker, context, READ_GROUP, request.group_id):
        return _refused(request, READ_GROUP.error)
    codes: _Codes = []
    places: list[_OfTopic] = []
    offsets: list[NewOffset] = []

    def sort(of_topic: _OfTopic, requested: OffsetCommitRequestTopic, begin: int, end: int) -> None:
        for new in _existing(broker, context, requested, requested.partitions[begin:end], of_topic):
            offsets.append(new)
            places.append(of_topic)

    def commit(some: list[NewOffset]) -> list[ErrorCode] | Awaitable[list[ErrorCode]]:
        try:
            return broker.groups.offsets.commit(
                request.group_id,
                Committer(
                    request.generation_id_or_member_epoch, request.member_id, request.group_instance_id
                ),
                some,
                retention_ms=request.retention_time_ms,
                knows_missing_groups=context.api_version >= _MISSING_GROUPS,
            )
        except BrokerError as error:
            return [error.code] * len(some)

    def answer(errors: list[ErrorCode]) -> OffsetCommitResponse:
        for place, new, error in zip(places, offsets, errors, strict=True):
            place.append((new.partition, error))
        return _response(codes)

    async def commit_in_steps() -> OffsetCommitResponse:
        pace = Pace()
        for requested in request.topics:
            of_topic: _OfTopic = []
            codes.append((requested, of_topic))
            for at in range(0, len(requested.partitions) or 1, _AT_ONCE):
                await pace.turn()
                sort(of_topic, requested, at, at + _AT_ONCE)
        errors: list[ErrorCode] = []
        try:
            if offsets:
                await broker.groups.ready()
        except BrokerError as error:
            errors = [error.code] * len(offsets)
        while len(errors) < len(offsets):
            await trio.lowlevel.checkpoint()
            some = commit(offsets[len(errors) : len(errors) + _AT_ONCE])
            errors += some if isinstance(some, list) else await some
        async for place, new, code in pace.over(zip(places, offsets, errors, strict=True)):
            place.append((new.partition, code))
        return await _long_response(codes, pace)

    async def wait(coming: Awaitable[list[ErrorCode]]) -> OffsetCommitResponse:
        return answer(await coming)

    if _count(request) > _AT_ONCE or broker.topics.find(CONSUMER_OFFSETS) is None:
        return commit_in_steps()
    for requested in request.topics:
        of_topic: _OfTopic = []
        codes.append((requested, of_topic))
        sort(of_topic, requested, 0, _AT_ONCE)
    if not offsets:
        return _response(codes)
    errors = commit(offsets)
    return answer(errors) if isinstance(errors, list) else wait(errors)


async def _refused(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    pace = Pace()
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=requested.name,
                topic_id=requested.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    async for each in pace.over(requested.partitions)
                ],
            )
            for requested in request.topics
        ]
    )


def _count(request: OffsetCommitRequest) -> int:
    """Topics and partitions together."""
    return len(request.topics) + sum(len(requested.partitions) for requested in request.topics)


def _existing(
    broker: Broker,
    context: RequestContext,
    requested: OffsetCommitRequestTopic,
    partitions: Sequence[OffsetCommitRequestPartition],
    codes: _OfTopic,
) -> list[NewOffset]:
    """Those of these partitions that exist; the others get their code at once."""
    if context.api_version >= _TOPIC_IDS:
        topic = broker.topics.by_id.get(requested.topic_id)
        name = None if topic is None else topic.name
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = broker.topics.by_name.get(requested.name)
        name = requested.name
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker.authorizer is not None and name is not None and not may(broker, context, READ_TOPIC, name):
        topic, unknown = None, READ_TOPIC.error
    if topic is None:
        codes.extend((each.partition_index, unknown) for each in partitions)
        return []
    found = []
    for each in partitions:
        if 0 <= each.partition_index < len(topic.partitions):
            found.append(
                NewOffset(
                    topic.name,
                    topic.id,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                )
            )
        else:
            codes.append((each.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return found


def _response(codes: _Codes) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=requested.name,
                topic_id=requested.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition, error_code=code)
                    for partition, code in of_topic
                ],
            )
            for requested, of_topic in codes
            if of_topic
        ]
    )


async def _long_response(codes: _Codes, pace: Pace) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=requested.name,
                topic_id=requested.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition, error_code=code)
                    async for partition, code in pace.over(of_topic)
                ],
            )
            async for requested, of_topic in pace.over(codes)
            if of_topic
        ]
    )
