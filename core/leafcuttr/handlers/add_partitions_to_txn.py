"""AddPartitionsToTxn, versions 0 to 5: partitions become part of a transaction (KIP-98).

Version 2 knows PRODUCER_FENCED, 3 is flexible. Version 4 carries many transactions and may only query whether
partitions are in them (`verify_only`, KIP-890); it is meant for brokers, and answered to everybody only where
there is no authorizer. Version 5 knows TRANSACTION_ABORTABLE.

If one partition does not exist, or its topic belongs to a plugin (TOPIC_AUTHORIZATION_FAILED), none is added; the
others get OPERATION_NOT_ATTEMPTED.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import CLUSTER_ACTION, WRITE_TOPIC, WRITE_TRANSACTION, may, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state import topic_names
from leafcuttr.state.broker import Broker
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS
from leafcuttr.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from leafcuttr_sdk import TopicPartition

_FENCED: Final = 2
_MANY: Final = 4

_Codes = Mapping[TopicPartition, ErrorCode]


async def handle(
    broker: Broker, context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    pace = Pace()
    if context.api_version >= _MANY:
        if (refused := refusal(broker, context, CLUSTER_ACTION)) is not None:
            return AddPartitionsToTxnResponse(error_code=refused.code)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=await _results(
                        each.topics, await _transaction(broker, each, BUMPS_EPOCHS, pace), pace
                    ),
                )
                async for each in pace.over(request.transactions)
            ]
        )
    only = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    denied = await _denied(broker, context, only, pace)
    codes = denied or await _transaction(broker, only, 0, pace)
    if context.api_version < _FENCED:
        codes = {each: for_old_clients(code) for each, code in codes.items()}
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _results(only.topics, codes, pace))


def for_old_clients(code: ErrorCode) -> ErrorCode:
    """The code where PRODUCER_FENCED is not known yet (KIP-588)."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


async def _denied(
    broker: Broker, context: RequestContext, requested: AddPartitionsToTxnTransaction, pace: Pace
) -> dict[TopicPartition, ErrorCode]:
    """The codes of all partitions, if the client lacks a right for some; otherwise none."""
    if broker.authorizer is None:
        return {}
    transactional = may(broker, context, WRITE_TRANSACTION, requested.transactional_id)
    codes: dict[TopicPartition, ErrorCode] = {}
    denied = not transactional
    for topic in requested.topics:
        internal = topic.name in topic_names.INTERNAL
        writable = transactional and not internal and may(broker, context, WRITE_TOPIC, topic.name)
        denied |= not writable
        async for index in pace.over(topic.partitions):
            partition = TopicPartition(topic.name, index)
            if not transactional:
                codes[partition] = WRITE_TRANSACTION.error
            elif not writable:
                codes[partition] = WRITE_TOPIC.error
            else:
                codes[partition] = _refusal(broker, partition) or ErrorCode.OPERATION_NOT_ATTEMPTED
    return codes if denied else {}


async def _transaction(
    broker: Broker, requested: AddPartitionsToTxnTransaction, version: int, pace: Pace
) -> _Codes:
    partitions = [
        TopicPartition(topic.name, each)
        for topic in requested.topics
        async for each in pace.over(topic.partitions)
    ]
    refused = {
        each: code
        async for each in pace.over(partitions)
        if (code := _refusal(broker, each)) is not ErrorCode.NONE
    }
    if refused:
        return {
            each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED) async for each in pace.over(partitions)
        }
    coordinator = broker.transactions
    producer = requested.transactional_id, requested.producer_id, requested.producer_epoch
    try:
        if requested.verify_only:
            return {each: coordinator.verify(*producer, each) async for each in pace.over(partitions)}
        added = coordinator.add(*producer, partitions, version)
        code = added if isinstance(added, ErrorCode) else await added
    except BrokerError as error:
        code = error.code
    return dict.fromkeys(partitions, code)


def _refusal(broker: Broker, partition: TopicPartition) -> ErrorCode:
    """Why a client cannot write to it; the topic's owner counts before the partition, as rights do in Kafka."""
    topic = broker.topics.by_name.get(partition.topic)
    if topic is not None and topic.owner is not None:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


async def _results(
    topics: Sequence[AddPartitionsToTxnTopic], codes: _Codes, pace: Pace
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=each, partition_error_code=codes[TopicPartition(topic.name, each)]
                )
                async for each in pace.over(topic.partitions)
            ],
        )
        async for topic in pace.over(topics)
    ]
