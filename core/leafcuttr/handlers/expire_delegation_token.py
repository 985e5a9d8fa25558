"""ExpireDelegationToken, versions 1 and 2: have a token end sooner, or at once (KIP-48). Its owner and its renewers
may. The checks, and their order, are those of Kafka's controller. Connections that have logged in by it end.
"""

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.delegation_tokens import NO_TIME, token_with_hmac
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def handle(
    broker: Broker, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    found = token_with_hmac(broker, context, bytes(request.hmac))
    if isinstance(found, ErrorCode):
        return _refused(found, NO_TIME if found is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED else 0)
    tokens, token = found
    if not token.may_be_renewed_by(context.client.principal):
        return _refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if request.expiry_time_period_ms >= 0 and token.has_expired(broker.clock.now_ms()):
        return _refused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    try:
        ended = await tokens.expire(token, request.expiry_time_period_ms)
    except StorageError as error:
        return _refused(error.code)
    if ended is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=ended.expires_ms)


def _refused(code: ErrorCode, expires_ms: int = 0) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expires_ms)
