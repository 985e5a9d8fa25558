"""DescribeTransactions, version 0 (KIP-664): what the coordinator knows of some transactional ids.

Of a transaction that is being ended only those partitions are named that have no marker yet. Unlike in Kafka, of an id
that is named again and again only the first few are answered.
"""

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import DESCRIBE_TOPIC, DESCRIBE_TRANSACTION, may
from leafcuttr.handlers.answers import FewRepeated
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


async def handle(
    broker: Broker, context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    few = FewRepeated()
    return DescribeTransactionsResponse(
        transaction_states=[
            _describe(broker, context, each)
            async for each in Pace().over(request.transactional_ids)
            if few.answers(each)
        ]
    )


def _describe(broker: Broker, context: RequestContext, transactional_id: str) -> TransactionState:
    if not may(broker, context, DESCRIBE_TRANSACTION, transactional_id):
        return TransactionState(transactional_id=transactional_id, error_code=DESCRIBE_TRANSACTION.error)
    if not transactional_id:
        return TransactionState(transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST)
    try:
        found = broker.transactions.find(transactional_id)
    except BrokerError as error:
        return TransactionState(transactional_id=transactional_id, error_code=error.code)
    if found is None:
        return TransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
    now = found.now
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(now.partitions):
        topics.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=now.state.title,
        transaction_timeout_ms=now.timeout_ms,
        transaction_start_time_ms=now.started_ms,
        producer_id=now.producer_id,
        producer_epoch=now.epoch,
        topics=[
            TopicData(topic=name, partitions=partitions)
            for name, partitions in topics.items()
            if may(broker, context, DESCRIBE_TOPIC, name, quietly=True)
        ],
    )
