"""CreateDelegationToken, versions 1 to 3: a token by which programs log in as the one who makes it, or, from version 3
on, as another user (KIP-48, KIP-373).

The checks, and their order, are those of Kafka. Another owner than a User is refused too: who logs in by a token is
always one.
"""

from collections.abc import Sequence

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.delegation_tokens import NO_TIME, may_act_for, may_use_tokens
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import Principal
from leafcuttr.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

_USER = "User"


async def handle(
    broker: Broker, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    requester = context.client.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    refused = _refused(broker, context, owner, renewers)
    if refused is not None:
        return _answer(owner, requester, refused, (NO_TIME, NO_TIME, NO_TIME))
    tokens = broker.delegation_tokens
    if tokens is None:
        return _answer(owner, requester, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, (0, 0, 0))
    try:
        token = await tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    except StorageError as error:
        return _answer(owner, requester, error.code, (NO_TIME, NO_TIME, NO_TIME))
    times = token.issued_ms, token.expires_ms, token.last_ms
    return _answer(owner, requester, ErrorCode.NONE, times, token.id, tokens.hmac_of(token))


def _refused(
    broker: Broker, context: RequestContext, owner: Principal, renewers: Sequence[Principal]
) -> ErrorCode | None:
    if not may_use_tokens(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if owner != context.client.principal and not may_act_for(broker, context, owner):
        return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(each.type != _USER for each in (owner, *renewers)):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return None


def _answer(
    owner: Principal,
    requester: Principal,
    code: ErrorCode,
    times: tuple[int, int, int],
    token_id: str = "",
    hmac: bytes = b"",
) -> CreateDelegationTokenResponse:
    issued, expires, last = times
    return CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=issued,
        expiry_timestamp_ms=expires,
        max_timestamp_ms=last,
        token_id=token_id,
        hmac=hmac,
    )
