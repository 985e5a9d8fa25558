"""TLS handshakes of connections: a few at a time, in worker threads, each within its time, before a connection is
served; and the principal that a client's certificate gives it.

See `admission` for what they share with log-ins.
"""

import logging
import ssl
from typing import Final

import trio

from leafcuttr.net.certificates import parse_certificate
from leafcuttr.net.der import DerError
from leafcuttr.net.principal_rules import NoRuleMatches, PrincipalRules
from leafcuttr.server.admission import LONGEST_S, Admission, is_late
from leafcuttr.server.tls_transport import TlsTransport
from leafcuttr.state.identity import ANONYMOUS, Principal

logger = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0
"""How long a peer may take for one: as long as Kafka's clients wait for a connection at first
(`socket.connection.setup.timeout.ms`, KIP-601)."""
_NO_TLS: Final = frozenset(
    {
        "HTTP_REQUEST",
        "WRONG_VERSION_NUMBER",
        "UNKNOWN_PROTOCOL",
        "HTTPS_PROXY_REQUEST",
        "RECORD_LAYER_FAILURE",
    }
)


class Handshakes(Admission):
    """Those of one broker."""

    def __init__(self) -> None:
        super().__init__(logger, LONGEST_S)

    async def succeeds(self, transport: TlsTransport, listener: str, peer: str) -> bool:
        """Do it with a `peer` (its address). False: the connection is to be closed."""
        with self.in_time() as scope:
            try:
                await transport.handshake(self.limiter, trio.current_time() + HANDSHAKE_S)
                return True
            except ssl.SSLError as error:
                await transport.tell_why()
                self.refuse(listener, peer, _why(error))
            except trio.TooSlowError:
                self.refuse(listener, peer, f"no handshake within {HANDSHAKE_S:g} seconds")
            except OSError:
                self.failed[listener] += 1
                logger.debug("the connection from %s on %s ended in its handshake", peer, listener)
        if is_late(scope):
            self.refuse(listener, peer, f"no handshake within {LONGEST_S:g} seconds")
        return False

    async def principal(
        self, transport: TlsTransport, listener: str, peer: str, rules: PrincipalRules
    ) -> Principal | None:
        """As `succeeds`, with the principal of the client; `User:ANONYMOUS` if it has shown no certificate, as in
        Kafka. None: the connection is to be closed."""
        if not await self.succeeds(transport, listener, peer):
            return None
        encoded = transport.peer_certificate
        if encoded is None:
            return ANONYMOUS
        try:
            return Principal("User", rules.name(parse_certificate(encoded).subject_text))
        except DerError as error:
            self.refuse(listener, peer, f"its certificate cannot be read ({error})")
        except NoRuleMatches as subject:
            self.refuse(listener, peer, f"no rule of ssl.principal.mapping.rules matches {subject}")
        return None


def _why(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    reason = error.reason or str(error)
    if reason in _NO_TLS:
        return f"it does not speak TLS ({reason})"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it has shown no certificate (ssl.client.auth=required)"
    return f"the handshake failed ({reason})"
