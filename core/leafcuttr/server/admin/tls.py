"""TLS of the admin endpoint: handshakes, and connections as the streams that `http` reads and writes.

Imported where the port has a certificate, with the first connection. A handshake is done in worker threads, a few at a
time, and within its time (`handshakes`); bytes go through OpenSSL as those of Kafka's clients do (`tls_transport`).
"""

import socket
from typing import Final

import trio
from trio.abc import HalfCloseableStream

from leafcuttr.net.live_certificates import LiveCertificates
from leafcuttr.server.handshakes import Handshakes
from leafcuttr.server.tls_transport import TlsTransport
from leafcuttr_sdk.authentication import PeerCertificate
from leafcuttr_sdk.web.clients import certificate_of

_NAME: Final = "the metrics port"
"""In the log."""
_RECEIVE: Final = 4096


class AdminTls:
    """Makes streams of accepted connections. Its length is how many handshakes are under way."""

    def __init__(self, certificates: LiveCertificates) -> None:
        self._certificates = certificates
        self._handshakes = Handshakes()
        self._under_way: dict[trio.CancelScope, None] = {}  # the one that has begun first comes first

    def __len__(self) -> int:
        return len(self._under_way)

    def end_the_oldest(self) -> bool:
        """Whether there was a handshake to be ended."""
        scope = next(iter(self._under_way), None)
        if scope is None:
            return False
        del self._under_way[scope]
        scope.cancel()
        return True

    async def stream(self, sock: trio.socket.SocketType) -> "AdminTlsStream | None":
        """The connection behind its handshake; None if that did not succeed. It is closed then, and also where this
        raises: RuntimeError where there is no thread for it."""
        plain = socket.socket(fileno=sock.detach())
        found: AdminTlsStream | None = None
        try:
            found = await self._after_handshake(plain)
        finally:
            if found is None:
                plain.close()
        return found

    async def _after_handshake(self, plain: socket.socket) -> "AdminTlsStream | None":
        plain.setblocking(False)
        with trio.CancelScope() as scope:
            self._under_way[scope] = None
            try:
                peer = plain.getpeername()[0]
                transport = TlsTransport(plain, self._certificates.context.newest)
                if await self._handshakes.succeeds(transport, _NAME, str(peer)):
                    return AdminTlsStream(plain, transport)
            except OSError:  # the client has gone
                return None
            finally:
                self._under_way.pop(scope, None)
        return None


class AdminTlsStream(HalfCloseableStream):
    """A connection over TLS. `certificate` is what the client has shown, and the truststore signs; `socket` is
    below."""

    def __init__(self, sock: socket.socket, transport: TlsTransport) -> None:
        self.socket: Final = sock
        self._transport = transport
        self.certificate: PeerCertificate | None = certificate_of(transport.tls)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """b"" at the end. Raises BrokenResourceError, ClosedResourceError."""
        await trio.lowlevel.checkpoint()
        buffer = bytearray(max_bytes or _RECEIVE)
        with memoryview(buffer) as view:
            while True:
                try:
                    count = self._transport.receive_into(view)
                except BlockingIOError:
                    await trio.lowlevel.wait_readable(self.socket)
                except OSError as error:
                    raise trio.BrokenResourceError(str(error)) from error
                else:
                    return bytes(view[:count])

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Raises BrokenResourceError, ClosedResourceError; once it has, or was cancelled, nothing more can be sent."""
        await trio.lowlevel.checkpoint()
        with memoryview(data) as view:
            sent = 0
            while sent < len(view):
                try:
                    sent += self._transport.send(view[sent:])
                except BlockingIOError:
                    await self._transport.wait_writable()
                except OSError as error:
                    raise trio.BrokenResourceError(str(error)) from error

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.wait_writable(self.socket)

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()
        self._transport.half_close()

    async def aclose(self) -> None:
        self._transport.close()
        await trio.lowlevel.checkpoint()
