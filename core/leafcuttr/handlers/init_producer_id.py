"""InitProducerId, versions 0 to 5: an id for an idempotent producer.

Version 3 lets a producer name the id and epoch it has (KIP-360); a producer that is only idempotent gets a
new id with epoch 0 all the same, as from Kafka. Until this broker has transactions a transactional id gets
TRANSACTIONAL_ID_AUTHORIZATION_FAILED: of the codes that end a producer instead of making it ask again, it is
the one that names the transactional id. This API has no message; FindCoordinator, which comes first, says
why.

Version 4 and 5 changed error codes of transactions only (KIP-588, KIP-890).
"""

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    half_named = (request.producer_id == -1) != (request.producer_epoch == -1)
    if request.transactional_id == "" or half_named:
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    try:
        producer_id = await broker.producer_ids.next_id()
    except StorageError:
        # A code that clients repeat the request for: the disk may have room again by then.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
