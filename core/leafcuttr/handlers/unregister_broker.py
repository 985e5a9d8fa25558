"""UnregisterBroker, version 0 (KIP-631): take a broker out of the cluster. Refused: there is no other.

Kafka lets its only broker unregister, and then no client is served; here it gets INVALID_REQUEST.
"""

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import ALTER_CLUSTER, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(
    broker: Broker, context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    if (refused := refusal(broker, context, ALTER_CLUSTER)) is not None:
        return UnregisterBrokerResponse(error_code=refused.code, error_message=refused.message)
    if request.broker_id != broker.node_id:
        return UnregisterBrokerResponse(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED,
            error_message=f"Broker ID {request.broker_id} is not currently registered",
        )
    return UnregisterBrokerResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"Broker {broker.node_id} is the only one and cannot be unregistered.",
    )
