"""TxnOffsetCommit, versions 0 to 5: a group's offsets as part of a transaction (KIP-98).

They count once the transaction has committed; until it has ended, OffsetFetch with `require_stable` answers that they
are unstable. Version 2 has leader epochs (KIP-320), 3 is flexible and names the member, which is checked
(KIP-447), 4 knows TRANSACTION_ABORTABLE. With version 5 the group's partition of `__consumer_offsets` is added to the
transaction by itself; before, AddOffsetsToTxn has to have done it (KIP-890).
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import READ_GROUP, READ_TOPIC, WRITE_TRANSACTION, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr.state.transactions.offset_commits import commit_in_transaction
from leafcuttr.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_ABORTABLE: Final = 4
_ADDS_ITSELF: Final = 5


async def handle(
    broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    pace = Pace()
    refused = _refusal(broker, context, request)
    unreadable = {
        each.name
        for each in request.topics
        if refused is None and not may(broker, context, READ_TOPIC, each.name)
    }
    offsets = [
        new
        async for requested in pace.over(request.topics if refused is None else ())
        if requested.name not in unreadable
        for new in _existing(broker, requested)
    ]
    codes: list[ErrorCode] = []
    if offsets:
        try:
            codes = await _commit(broker, context.api_version, request, offsets)
        except BrokerError as error:
            codes = [error.code] * len(offsets)
    outcomes = {
        (new.topic, new.partition): code async for new, code in pace.over(zip(offsets, codes, strict=True))
    }
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=requested.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=outcomes.get((requested.name, each.partition_index), missing),
                    )
                    async for each in pace.over(requested.partitions)
                ],
            )
            async for requested in pace.over(request.topics)
            for missing in (
                refused
                or (
                    READ_TOPIC.error if requested.name in unreadable else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                ),
            )
        ]
    )


def _refusal(broker: Broker, context: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode | None:
    for right, name in ((WRITE_TRANSACTION, request.transactional_id), (READ_GROUP, request.group_id)):
        if not may(broker, context, right, name):
            return right.error
    return None


async def _commit(
    broker: Broker, version: int, request: TxnOffsetCommitRequest, offsets: list[NewOffset]
) -> list[ErrorCode]:
    return await commit_in_transaction(
        broker.groups,
        broker.transactions,
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        request.group_id,
        Committer(request.generation_id, request.member_id, request.group_instance_id),
        offsets,
        adds=version >= _ADDS_ITSELF,
        knows_abortable=version >= _ABORTABLE,
    )


def _existing(broker: Broker, requested: TxnOffsetCommitRequestTopic) -> list[NewOffset]:
    topic = broker.topics.by_name.get(requested.name)
    if topic is None:
        return []
    return [
        NewOffset(
            topic.name,
            topic.id,
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata or "",
        )
        for each in requested.partitions
        if 0 <= each.partition_index < len(topic.partitions)
    ]
