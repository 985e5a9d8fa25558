"""RenewDelegationToken, versions 1 and 2: have a token last longer, up to its last time (KIP-48). Its owner and its
renewers may. The checks, and their order, are those of Kafka's controller.
"""

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.delegation_tokens import NO_TIME, token_with_hmac
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def handle(
    broker: Broker, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    found = token_with_hmac(broker, context, bytes(request.hmac))
    if isinstance(found, ErrorCode):
        return _refused(found, NO_TIME if found is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED else 0)
    tokens, token = found
    if token.has_expired(broker.clock.now_ms()):
        return _refused(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not token.may_be_renewed_by(context.client.principal):
        return _refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    try:
        renewed = await tokens.renew(token, request.renew_period_ms)
    except StorageError as error:
        return _refused(error.code)
    if renewed is None:
        return _refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=renewed.expires_ms)


def _refused(code: ErrorCode, expires_ms: int = 0) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=code, expiry_timestamp_ms=expires_ms)
