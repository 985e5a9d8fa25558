"""What the requests about delegation tokens (KIP-48) have in common: who may send them at all, for whom, and which
token they are about.
"""

from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import (
    CREATE_TOKENS_OF_USER,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS_OF_USER,
    may,
)
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ANONYMOUS, Principal
from leafcuttr.state.security.delegation_tokens import DelegationToken, DelegationTokens

NO_TIME: Final = -1
"""In the place of a time, where there is an error."""


def may_use_tokens(context: RequestContext) -> bool:
    """Whether a client may make, change and see tokens: it has shown who it is, and not by a token, which would never
    have to end."""
    client = context.client
    if client.security_protocol == "PLAINTEXT" or (context.login is not None and context.login.by_token):
        return False
    return client.security_protocol != "SSL" or client.principal != ANONYMOUS


def token_with_hmac(
    broker: Broker, context: RequestContext, hmac: bytes
) -> tuple[DelegationTokens, DelegationToken] | ErrorCode:
    """The token that a request is about, and all of them; or what refuses the request. In the order of Kafka's
    controller."""
    if not may_use_tokens(context):
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    tokens = broker.delegation_tokens
    if tokens is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    token = tokens.with_hmac(hmac)
    return ErrorCode.DELEGATION_TOKEN_NOT_FOUND if token is None else (tokens, token)


def may_act_for(broker: Broker, context: RequestContext, owner: Principal) -> bool:
    """Whether a client may make tokens of another owner, this one. Without an authorizer everyone may, as in Kafka."""
    return may(broker, context, CREATE_TOKENS_OF_USER, str(owner))


def may_see(broker: Broker, context: RequestContext, token: DelegationToken) -> bool:
    """Whether a client may see a token of others. Without an authorizer all, as in Kafka."""
    return may(broker, context, DESCRIBE_TOKEN, token.id, quietly=True) or may(
        broker, context, DESCRIBE_TOKENS_OF_USER, str(token.owner), quietly=True
    )
