"""ListTransactions, versions 0 to 2 (KIP-664): the transactional ids of this coordinator.

Filters: by state and producer id; version 1 by how long the transaction has been going on (KIP-994), 2 by a pattern
that the whole transactional id has to match (KIP-1152). States that do not exist are named in the answer.
"""

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import DESCRIBE_TRANSACTION, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.patterns import InvalidPattern, Pattern
from leafcuttr.state.transactions.listing import BY_TITLE, Filter
from leafcuttr.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


async def handle(
    broker: Broker, context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    if broker.transactions.loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = request.transactional_id_pattern
    try:
        compiled = Pattern(pattern) if pattern else None
    except InvalidPattern:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    requested = Filter(
        states={BY_TITLE[name] for name in request.state_filters if name in BY_TITLE}
        if request.state_filters
        else None,
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        pattern=compiled,
    )
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in BY_TITLE],
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.now.producer_id,
                transaction_state=each.now.state.title,
            )
            for each in await requested.select(broker.transactions.all(), broker.clock.now_ms())
            if may(broker, context, DESCRIBE_TRANSACTION, each.transactional_id, quietly=True)
        ],
    )
