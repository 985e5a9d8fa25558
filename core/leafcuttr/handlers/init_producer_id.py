"""InitProducerId, versions 0 to 5: an id and epoch for an idempotent or transactional producer (KIP-98).

Version 2 is flexible, 3 lets a producer name the id and epoch it has (KIP-360): a transactional one goes on with the
next epoch, or is fenced; one that is only idempotent gets a new id with epoch 0 all the same, as from Kafka. Version 4
knows PRODUCER_FENCED (KIP-588), 5 TRANSACTION_ABORTABLE (KIP-890). Version 6 (two-phase commit, KIP-939) is not yet
stable in Kafka and not served; its fields are refused as where `transaction.two.phase.commit.enable` is false.

A request with a transactional id fences the producers of all requests before it. If one of those has a transaction
going on, it is aborted first, and the answer is CONCURRENT_TRANSACTIONS: the client repeats the request.
"""

from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode, StorageError
from leafcuttr.handlers.access import IDEMPOTENT_WRITE, WRITE_TOPIC, WRITE_TRANSACTION, may
from leafcuttr.handlers.add_partitions_to_txn import for_old_clients
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.transactions.coordinator import TransactionAnswer
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_FENCED: Final = 4


async def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    if (refused := _refusal(broker, context, request.transactional_id)) is not None:
        return InitProducerIdResponse(error_code=refused, producer_id=-1, producer_epoch=-1)
    try:
        answer = await _init(broker, request)
    except StorageError:
        # A code that clients repeat the request for: the disk may have free space by then.
        answer = TransactionAnswer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    except BrokerError as error:
        answer = TransactionAnswer(error.code)
    code = for_old_clients(answer.error) if context.api_version < _FENCED else answer.error
    return InitProducerIdResponse(
        error_code=code, producer_id=answer.producer_id, producer_epoch=answer.epoch
    )


def _refusal(broker: Broker, context: RequestContext, transactional_id: str | None) -> ErrorCode | None:
    if transactional_id is not None:
        allowed = may(broker, context, WRITE_TRANSACTION, transactional_id)
        return None if allowed else WRITE_TRANSACTION.error
    authorizer = broker.authorizer
    if (
        authorizer is None
        or authorizer.allows_on_some(context.client, WRITE_TOPIC.operation, WRITE_TOPIC.resource_type)
        or may(broker, context, IDEMPOTENT_WRITE)
    ):
        return None
    return IDEMPOTENT_WRITE.error


async def _init(broker: Broker, request: InitProducerIdRequest) -> TransactionAnswer:
    half_named = (request.producer_id == -1) != (request.producer_epoch == -1)
    if request.transactional_id == "" or half_named:
        return TransactionAnswer(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        return TransactionAnswer(ErrorCode.NONE, await broker.producer_ids.next_id(), 0)
    if request.enable2_pc:
        return TransactionAnswer(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        return TransactionAnswer(ErrorCode.UNSUPPORTED_VERSION)
    known = None if request.producer_id == -1 else (request.producer_id, request.producer_epoch)
    return await broker.transactions.init(request.transactional_id, request.transaction_timeout_ms, known)
