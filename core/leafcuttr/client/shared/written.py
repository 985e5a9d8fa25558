"""How many records one epoch of a producer has written to partitions, as their leaders have it (DescribeProducers,
KIP-664), and which partitions a transaction has (DescribeTransactions).

Leaders tell this to clients that may read the topic, from Kafka 2.8 on, and coordinators from 3.0 on.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from leafcuttr.client.calls import Calls
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.errors import ApiNotOffered
from leafcuttr.client.producing.stamp import ProducerIdentity
from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from leafcuttr.wire.messages.describe_transactions import DescribeTransactionsRequest
from leafcuttr_sdk.types import TopicPartition

_OFFSETS: Final = "__consumer_offsets"
_NOT_ALLOWED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)


async def records_written(
    calls: Calls, identity: ProducerIdentity, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int] | None:
    """Of each of these partitions that exists; None where the cluster does not tell. Raises BrokerError."""

    def build(topics: Mapping[str, Sequence[int]]) -> DescribeProducersRequest:
        return DescribeProducersRequest(
            topics=[TopicRequest(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        )

    def answers(response: Any) -> Iterator[tuple[TopicPartition, int, int]]:
        for topic in response.topics:
            for part in topic.partitions:
                last = (
                    each.last_sequence
                    for each in part.active_producers
                    if (each.producer_id, each.producer_epoch) == identity
                )
                yield TopicPartition(topic.name, part.partition_index), part.error_code, next(last, -1) + 1

    if not partitions:
        return {}
    try:
        return await calls.leaders(partitions, build, answers)
    except BrokerError as error:
        if error.code in _NOT_ALLOWED or isinstance(error.__cause__, ApiNotOffered):
            return None
        raise


async def described(calls: Calls, transactional_id: str) -> Any | None:
    """What the coordinator has of a transactional id; None where it does not tell."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    try:
        answer = await calls.coordinator(
            CoordinatorKind.TRANSACTION,
            transactional_id,
            request,
            lambda response: (response.transaction_states[0].error_code, None),
        )
    except BrokerError:
        return None
    (found,) = answer.transaction_states
    return found


def partitions_of(state: Any) -> set[TopicPartition]:
    """Those that are part of the transaction, but for the offsets of groups."""
    return {
        TopicPartition(topic.topic, number)
        for topic in state.topics
        for number in topic.partitions
        if topic.topic != _OFFSETS
    }
