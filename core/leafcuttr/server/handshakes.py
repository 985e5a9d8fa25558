"""TLS handshakes of connections: a few at a time, in worker threads, each within its time, before a connection is
served.

What is wrong with one is one line a minute for each way and listener; how they ended is counted.
"""

import logging
import ssl
from collections import Counter
from typing import Final

import trio

from leafcuttr.runtime.complaints import Complaints
from leafcuttr.server.tls_transport import TlsTransport

logger = logging.getLogger(__name__)

HANDSHAKE_S: Final = 10.0
"""How long one may take: as long as Kafka's clients wait for a connection at first
(`socket.connection.setup.timeout.ms`, KIP-601)."""
_AT_ONCE: Final = 2
"""More would not be quicker where there are two processors."""
_NO_TLS: Final = frozenset(
    {
        "HTTP_REQUEST",
        "WRONG_VERSION_NUMBER",
        "UNKNOWN_PROTOCOL",
        "HTTPS_PROXY_REQUEST",
        "RECORD_LAYER_FAILURE",
    }
)


class Handshakes:
    """Those of one broker."""

    def __init__(self) -> None:
        self.failed: Final[Counter[str]] = Counter()
        """By listener."""
        self._limiter = trio.CapacityLimiter(_AT_ONCE)
        self._complain = Complaints(logger)
        self._under_way: set[trio.CancelScope] = set()

    async def succeeds(self, transport: TlsTransport, listener: str, peer: str) -> bool:
        """Do it with a `peer` (its address). False: the connection is to be closed."""
        with trio.move_on_after(HANDSHAKE_S) as scope:
            self._under_way.add(scope)
            try:
                await transport.handshake(self._limiter)
                return True
            except ssl.SSLError as error:
                await transport.tell_why()
                self._refuse(listener, peer, _why(error))
            except OSError:
                self.failed[listener] += 1
                logger.debug("the connection from %s on %s ended in its handshake", peer, listener)
            finally:
                self._under_way.discard(scope)
        if scope.cancelled_caught and trio.current_time() >= scope.deadline:
            self._refuse(listener, peer, f"no handshake within {HANDSHAKE_S:g} seconds")
        return False

    def stop(self) -> None:
        """The broker stops: end those that are under way."""
        for scope in self._under_way:
            scope.cancel()

    def _refuse(self, listener: str, peer: str, why: str) -> None:
        self.failed[listener] += 1
        self._complain(
            f"{listener} {why}",
            "closing the connection from %s on %s: %s",
            peer,
            listener,
            why,
            level=logging.WARNING,
        )


def _why(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    reason = error.reason or str(error)
    if reason in _NO_TLS:
        return f"it does not speak TLS ({reason})"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it has shown no certificate (ssl.client.auth=required)"
    return f"the handshake failed ({reason})"
