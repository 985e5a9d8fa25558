"""SaslHandshake, versions 0 and 1: the client names a mechanism of SASL (KIP-43).

After version 0 the messages of the mechanism come as they are, after version 1 in SaslAuthenticate (KIP-152). On a
listener without SASL it is an ILLEGAL_SASL_STATE, as in Kafka.
"""

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(broker: Broker, context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    login = context.login
    if login is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    return SaslHandshakeResponse(error_code=login.handshake(request.mechanism), mechanisms=login.offered)
