"""DescribeDelegationToken, versions 1 to 3: tokens with their HMACs, of all owners or of some (KIP-48).

A token is listed for an owner that is named if that is its owner, one of its renewers or who made it, as in Kafka.
"""

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.delegation_tokens import may_see, may_use_tokens
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import Principal
from leafcuttr.state.security.delegation_tokens import DelegationToken
from leafcuttr.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


async def handle(
    broker: Broker, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    if not may_use_tokens(context):
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    kept = broker.delegation_tokens
    if kept is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {Principal(each.principal_type, each.principal_name) for each in request.owners}
    me = context.client.principal
    tokens = [
        _described(token, kept.hmac_of(token))
        async for token in Pace().over(list(kept))
        if (owners is None or not owners.isdisjoint(token.concerned))
        and (me in token.concerned or may_see(broker, context, token))
    ]
    return DescribeDelegationTokenResponse(tokens=tokens)


def _described(token: DelegationToken, hmac: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.last_ms,
        token_id=token.id,
        hmac=hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in token.renewers
        ],
    )
