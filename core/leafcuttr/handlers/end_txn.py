"""EndTxn, versions 0 to 5: commit or abort a transaction (KIP-98).

Version 2 knows PRODUCER_FENCED, 3 is flexible, 4 knows TRANSACTION_ABORTABLE. Version 5 ends the epoch with the
transaction, and answers the producer id and epoch to go on with (KIP-890, part 2).
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode, StorageError
from leafcuttr.handlers.access import WRITE_TRANSACTION, may
from leafcuttr.handlers.add_partitions_to_txn import for_old_clients
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.transactions.coordinator import TransactionAnswer
from leafcuttr.state.transactions.machine import BUMPS_EPOCHS
from leafcuttr.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_FENCED: Final = 2
_RAISES_EPOCH: Final = 5


async def handle(broker: Broker, context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    if not may(broker, context, WRITE_TRANSACTION, request.transactional_id):
        return EndTxnResponse(error_code=WRITE_TRANSACTION.error)
    try:
        answer = await broker.transactions.end(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            commit=request.committed,
            version=BUMPS_EPOCHS if context.api_version >= _RAISES_EPOCH else 0,
        )
    except StorageError:
        # A code that clients repeat the request for: the disk may have free space by then.
        answer = TransactionAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    except BrokerError as error:
        answer = TransactionAnswer(error.code)
    code = for_old_clients(answer.error) if context.api_version < _FENCED else answer.error
    return EndTxnResponse(error_code=code, producer_id=answer.producer_id, producer_epoch=answer.epoch)
