"""Partitions and a group's offsets become part of a transaction (KIP-98, KIP-890): the requests, for one producer id
and epoch, from whatever process it is.

Not here: beginning and ending a transaction (`transactions`, `shared`), and the records themselves (`producing`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from leafcuttr.client.calls import Calls, by_topic
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.groups import committed_code, to_commit
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.client.rights import said_of_partition
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from leafcuttr.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from leafcuttr.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import TopicPartition


class TransactionVersions:
    """The highest versions of requests that a cluster's transactions allow; `level` is its `transaction.version`."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.adds_by_itself = level >= 2
        self.produce = 12 if self.adds_by_itself else 11
        self.offset_commit = 5 if self.adds_by_itself else 4
        self.end = 5 if self.adds_by_itself else 4


async def add_partitions(
    calls: Calls, transactional_id: str, identity: ProducerIdentity, partitions: Iterable[TopicPartition]
) -> None:
    """AddPartitionsToTxn, where a write does not add its partition by itself. Raises BrokerError."""
    request = AddPartitionsToTxnRequest(
        transactions=[],
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=numbers)
            for name, numbers in by_topic(sorted(partitions)).items()
        ],
    )
    await calls.coordinator(CoordinatorKind.TRANSACTION, transactional_id, request, _added_code, at_most=3)


async def add_group(calls: Calls, transactional_id: str, identity: ProducerIdentity, group: str) -> None:
    """AddOffsetsToTxn, where a commit of offsets does not add its group by itself. Raises BrokerError."""
    request = AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        group_id=group,
    )
    await calls.coordinator(
        CoordinatorKind.TRANSACTION,
        transactional_id,
        request,
        lambda response: (response.error_code, None),
    )


async def commit_with_it(
    calls: Calls,
    transactional_id: str,
    identity: ProducerIdentity,
    versions: TransactionVersions,
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
) -> None:
    """TxnOffsetCommit, without a look at the group's members. Raises BrokerError."""
    topics = to_commit(offsets, TxnOffsetCommitRequestPartition)
    request = TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()],
    )
    await calls.coordinator(
        CoordinatorKind.GROUP, group, request, committed_code, at_most=versions.offset_commit
    )


def _added_code(response: Any) -> tuple[int, str | None]:
    """The first error of the partitions: OPERATION_NOT_ATTEMPTED stands for that of another one."""
    codes = [
        (each.partition_error_code, TopicPartition(topic.name, each.partition_index))
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
        if each.partition_error_code
    ]
    if not codes:
        return 0, None
    code, tp = min(codes, key=lambda one: one[0] == ErrorCode.OPERATION_NOT_ATTEMPTED)
    return code, said_of_partition(code, f"adding {tp} to the transaction", tp.topic, Operation.WRITE)
