"""AddOffsetsToTxn, versions 0 to 4: the offsets of a group become part of a transaction (KIP-98).

What is added is the partition of `__consumer_offsets` that keeps the group. Version 2 knows PRODUCER_FENCED, 3 is
flexible, 4 knows TRANSACTION_ABORTABLE. Clients of transaction version 2 do without (KIP-890).
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.handlers.access import READ_GROUP, WRITE_TRANSACTION, may
from leafcuttr.handlers.add_partitions_to_txn import for_old_clients
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED: Final = 2


async def handle(
    broker: Broker, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    for right, name in ((WRITE_TRANSACTION, request.transactional_id), (READ_GROUP, request.group_id)):
        if not may(broker, context, right, name):
            return AddOffsetsToTxnResponse(error_code=right.error)
    try:
        await broker.groups.ready()
        added = broker.transactions.add(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [broker.groups.partition_of(request.group_id)],
            0,
        )
        code = added if isinstance(added, ErrorCode) else await added
    except BrokerError as error:
        code = error.code
    return AddOffsetsToTxnResponse(
        error_code=for_old_clients(code) if context.api_version < _FENCED else code
    )
