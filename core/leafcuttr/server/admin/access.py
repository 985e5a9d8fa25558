"""Who may use the admin endpoint: `lc.metrics.auth`, and with an authorizer DESCRIBE on the cluster, or ALTER for what
changes something. Health is open: it is what the machine's own watchers read.
"""

import logging
from collections.abc import Sequence
from typing import Final

from leafcuttr.handlers.access import ALTER_CLUSTER, DESCRIBE_CLUSTER, client_may
from leafcuttr.plugins.log_ins import log_ins_of
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.server.admin.router import Request, Response, problem
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ANONYMOUS, ClientIdentity, Principal
from leafcuttr.state.security.acl import CLUSTER_NAME
from leafcuttr_sdk.authentication import Authenticated, Credentials, PeerCertificate
from leafcuttr_sdk.principals import act_for
from leafcuttr_sdk.web.clients import CHALLENGES, credentials_of

_NAME: Final = "metrics"
"""Of the listener, and in the audit log."""
_OPEN: Final = frozenset({("health",), ("health", "live"), ("health", "ready")})
"""The parts of paths, as `health%2Flive` is another one."""


class AdminAccess:
    """Of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._complain = Complaints(logging.getLogger(__name__))
        self._ways = tuple(dict.fromkeys(broker.settings.list("lc.metrics.auth")))
        self._challenges = tuple(
            ("WWW-Authenticate", CHALLENGES[way]) for way in self._ways if way in CHALLENGES
        )
        self._protocol = broker.admin.protocol if broker.admin is not None else "PLAINTEXT"

    async def refusal(
        self,
        request: Request,
        parts: Sequence[str],
        authorizations: int,
        host: str,
        certificate: PeerCertificate | None = None,
    ) -> Response | None:
        """The answer to a client that may not do this; None: it may. `parts` are those of the path; it has sent so many
        headers Authorization, and in its handshake, if there was one, this `certificate`."""
        last = max((at for at, part in enumerate(parts) if part), default=0)
        if tuple(parts[: last + 1]) in _OPEN:  # a slash at the end changes nothing
            return None
        found = await self._principal(request, authorizations, host, certificate)
        if isinstance(found, Response):
            return found
        act_for(None if found == ANONYMOUS else found)
        right = DESCRIBE_CLUSTER if request.method in ("GET", "HEAD") else ALTER_CLUSTER
        client = ClientIdentity(found, _NAME, self._protocol, host, 0)
        if client_may(self._broker, client, _NAME, right, CLUSTER_NAME):
            return None
        return problem(403, "denied", f"{found} may not {right.operation.name} the cluster")

    async def _principal(
        self, request: Request, authorizations: int, host: str, certificate: PeerCertificate | None
    ) -> Principal | Response:
        credentials: Credentials | None = certificate if "mtls" in self._ways else None
        if authorizations and self._challenges:
            # Of two headers, what stands in front of us may have read the other one.
            header = request.headers.get("authorization", "") if authorizations == 1 else ""
            credentials = credentials_of(header, self._ways)
            if credentials is None:
                return self._refused(
                    "the Authorization header makes no sense, or is of a scheme that is not offered"
                )
        if credentials is None:
            return ANONYMOUS if "none" in self._ways else self._refused("this needs authentication")
        outcome = await log_ins_of(self._broker).authenticate(credentials)
        if isinstance(outcome, Authenticated):
            return outcome.principal
        self._complain(host, "the admin endpoint refused a client at %s: %s", host, outcome.reason)
        return self._refused("the credentials are not valid")

    def _refused(self, why: str) -> Response:
        if not self._challenges:
            return problem(403, "no_certificate", f"{why}; it takes a certificate of the client")
        return problem(401, "unauthorized", why, self._challenges)
