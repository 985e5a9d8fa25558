"""What the requests about delegation tokens (KIP-48) have in common: who may send them at all.

Rights beyond these are those of an authorizer, which `may_act_for` and `may_see` are the places for.
"""

from typing import Final

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
    """Whether a client may make tokens of this owner: CREATE_TOKENS on User. Without an authorizer everyone may, as in
    Kafka."""
    return True


def may_see(broker: Broker, context: RequestContext, token: DelegationToken) -> bool:
    """Whether a client may see a token: its own, and others by DESCRIBE on DelegationToken or DESCRIBE_TOKENS on User.
    Without an authorizer all, as in Kafka."""
    return True
