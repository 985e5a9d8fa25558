"""Who may use the admin endpoint: `lc.metrics.auth`, and with an authorizer DESCRIBE on the cluster, or ALTER for what
changes something. Health is open: it is what the machine's own watchers read.

There is no TLS here, so clients have no certificates.
"""

import logging
from typing import Final

from leafcuttr.handlers.access import ALTER_CLUSTER, DESCRIBE_CLUSTER, client_may
from leafcuttr.plugins.log_ins import log_ins_of
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.server.admin.router import Request, Response, problem
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ANONYMOUS, ClientIdentity, Principal
from leafcuttr.state.security.acl import CLUSTER_NAME
from leafcuttr_sdk.authentication import Authenticated
from leafcuttr_sdk.principals import act_for
from leafcuttr_sdk.web.clients import CHALLENGES, credentials_of

_NAME: Final = "metrics"
"""Of the listener, and in the audit log."""
_OPEN: Final = frozenset({"/health", "/health/live", "/health/ready"})


class AdminAccess:
    """Of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._complain = Complaints(logging.getLogger(__name__))
        self._ways = tuple(dict.fromkeys(broker.settings.list("lc.metrics.auth")))
        self._challenges = tuple(("WWW-Authenticate", CHALLENGES[way]) for way in self._ways if way != "none")

    async def refusal(self, request: Request, authorizations: int, host: str) -> Response | None:
        """The answer to a client that may not do this; None: it may. It has sent so many headers Authorization."""
        if request.path.rstrip("/") in _OPEN:
            return None
        found = await self._principal(request, authorizations, host)
        if isinstance(found, Response):
            return found
        act_for(None if found == ANONYMOUS else found)
        right = DESCRIBE_CLUSTER if request.method in ("GET", "HEAD") else ALTER_CLUSTER
        client = ClientIdentity(found, _NAME, "PLAINTEXT", host, 0)
        if client_may(self._broker, client, _NAME, right, CLUSTER_NAME):
            return None
        return problem(403, "denied", f"{found} may not {right.operation.name} the cluster")

    async def _principal(self, request: Request, authorizations: int, host: str) -> Principal | Response:
        if not authorizations or self._ways == ("none",):
            return ANONYMOUS if "none" in self._ways else self._refused("this needs authentication")
        # Of two headers, what stands in front of us may have read the other one.
        header = request.headers.get("authorization", "") if authorizations == 1 else ""
        credentials = credentials_of(header, self._ways)
        if credentials is None:
            return self._refused(
                "the Authorization header makes no sense, or is of a scheme that is not offered"
            )
        outcome = await log_ins_of(self._broker).authenticate(credentials)
        if isinstance(outcome, Authenticated):
            return outcome.principal
        self._complain(host, "the admin endpoint refused a client at %s: %s", host, outcome.reason)
        return self._refused("the credentials are not valid")

    def _refused(self, why: str) -> Response:
        return problem(401, "unauthorized", why, self._challenges)
