"""What the requests about delegation tokens (KIP-48) have in common: who may send them at all, and for whom."""

from typing import Final

from leafcuttr.handlers.access import (
    CREATE_TOKENS_OF_USER,
    DESCRIBE_TOKEN,
    DESCRIBE_TOKENS_OF_USER,
    may,
)
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ANONYMOUS, Principal
from leafcuttr.state.security.delegation_tokens import DelegationToken

NO_TIME: Final = -1
"""In the place of a time, where there is an error."""


def may_use_tokens(context: RequestContext) -> bool:
    """Whether a client may make, change and see tokens: it has shown who it is, and not by a token, which would never
    have to end."""
    client = context.client
    if client.security_protocol == "PLAINTEXT" or (context.login is not None and context.login.by_token):
        return False
    return client.security_protocol != "SSL" or client.principal != ANONYMOUS


def may_act_for(broker: Broker, context: RequestContext, owner: Principal) -> bool:
    """Whether a client may make tokens of another owner, this one. Without an authorizer everyone may, as in Kafka."""
    return may(broker, context, CREATE_TOKENS_OF_USER, str(owner))


def may_see(broker: Broker, context: RequestContext, token: DelegationToken) -> bool:
    """Whether a client may see a token of others. Without an authorizer all, as in Kafka."""
    return may(broker, context, DESCRIBE_TOKEN, token.id, quietly=True) or may(
        broker, context, DESCRIBE_TOKENS_OF_USER, str(token.owner), quietly=True
    )
