"""The address of the admin endpoint: bound before anything else happens, served beside the broker's services.

Until the first connection it is no more than a socket: the endpoint is made, and its modules imported, then, in a
worker thread.

If that fails because the process has run out of descriptors or threads, the connection is closed, and the next one
tries it again.

If the address cannot be bound, a warning is logged and the broker starts: producing and consuming do not depend on it.
At most 64 connections are open; a new one replaces the one that has been idle longest, or whose handshake has begun
first. Files of TLS are read before anything else happens, and what is wrong with them stops the start.
"""

import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError
from leafcuttr.net import binding
from leafcuttr.net.exposure import warn_if_open, why_refused
from leafcuttr.runtime.complaints import Complaints
from leafcuttr_sdk.trouble import exhausted

if TYPE_CHECKING:
    from leafcuttr.net.live_certificates import LiveCertificates
    from leafcuttr.server.admin.endpoint import AdminEndpoint
    from leafcuttr.server.admin.http import HttpConnection
    from leafcuttr.server.admin.tls import AdminTls

logger = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 64
_BACKLOG: Final = 64
_WHAT: Final = "read metrics and health"
_PAUSE_S: Final = 0.25
_GONE: Final = (errno.ECONNABORTED, errno.EPROTO)

PREFIX: Final = "lc.metrics"
"""Of the settings of its address and its TLS."""


class AdminBound(NamedTuple):
    """The address as it is, its sockets, and its certificates, if it has TLS."""

    listener: Listener
    sockets: Sequence[socket.socket]
    certificates: "LiveCertificates | None" = None


def bind(settings: Settings) -> AdminBound | None:
    """Open `lc.metrics.host` and `lc.metrics.port`; None if that is switched off or cannot be done. Raises StartError
    where `lc.listeners.open` refuses the address, or its TLS cannot be had. Blocks: names are looked up, and files are
    read."""
    if not settings.bool("lc.metrics.enable"):
        return None
    host, port = settings.text("lc.metrics.host"), settings.int("lc.metrics.port")
    has_tls = bool(settings.optional_text(f"{PREFIX}.ssl.keystore.location"))
    certificates = _certificates(settings) if has_tls else None
    wanted = Listener("metrics", host, port, host, port, "SSL" if has_tls else "PLAINTEXT")
    try:
        bound = AdminBound(*binding.bind(wanted, _BACKLOG), certificates)
    except StartError as error:
        reason = str(error).partition(" (choose another port")[0]
        logger.warning("no metrics: %s (lc.metrics.host=%s, lc.metrics.port=%d)", reason, host, port)
        return None
    listener, socks, _ = bound
    why = why_refused(settings, listener, socks, _WHAT, "lc.metrics.host") if _is_open(settings) else None
    if why is not None:
        for sock in socks:
            sock.close()
        raise StartError(why)
    return bound


def _certificates(settings: Settings) -> "LiveCertificates":
    from leafcuttr.net.live_certificates import LiveCertificates
    from leafcuttr.net.principal_rules import RulesError, principal_rules
    from leafcuttr.net.tls_files import TlsError, files_of_prefix

    rules = "ssl.principal.mapping.rules"
    try:
        if "mtls" in settings.list("lc.metrics.auth"):
            principal_rules(settings.text(rules))
        return LiveCertificates(files_of_prefix(settings, PREFIX))
    except RulesError as error:
        raise StartError(f"{rules}: {error}") from None
    except TlsError as error:
        raise StartError(str(error)) from None


def _is_open(settings: Settings) -> bool:
    """Whether clients need not authenticate for metrics, neither by a log-in nor by a certificate."""
    return (
        "none" in settings.list("lc.metrics.auth")
        and settings.text(f"{PREFIX}.ssl.client.auth") != "required"
    )


async def serve(
    bound: AdminBound, make: "Callable[[], AdminEndpoint]", settings: Settings | None = None
) -> None:
    """Answer on these sockets until cancelled. `make` is called in a worker thread for the first connection, and again
    for the next one if it raises. It imports what connections need."""
    listener, socks, certificates = bound
    if settings is None or _is_open(settings):
        warn_if_open(logger, listener, socks, _WHAT, "lc.metrics.host")
    connections = AdminConnections(make, certificates)
    async with trio.open_nursery() as nursery:
        for sock in socks:
            nursery.start_soon(connections.accept, sock, nursery)


class AdminConnections:
    """The open connections of the admin endpoint."""

    def __init__(
        self, make: "Callable[[], AdminEndpoint]", certificates: "LiveCertificates | None" = None
    ) -> None:
        self._make = make
        self._certificates = certificates
        self._tls: AdminTls | None = None
        self._complain = Complaints(logger)
        self._making = trio.Lock()
        self._endpoint: AdminEndpoint | None = None
        self._starting = 0
        self._open: dict[HttpConnection, None] = {}  # the one that has been idle longest comes first, nearly

    def __len__(self) -> int:
        return len(self._open)

    async def accept(self, sock: socket.socket, nursery: trio.Nursery) -> None:
        """Accept on one bound socket until cancelled; connections run in `nursery`."""
        complain = self._complain
        listening = trio.socket.from_stdlib_socket(sock)
        while True:
            try:
                accepted, _ = await listening.accept()
            except OSError as error:
                if error.errno not in _GONE:
                    reason = os.strerror(error.errno or 0)
                    complain(reason, "the admin endpoint pauses: %s", reason, level=logging.WARNING)
                    await trio.sleep(_PAUSE_S)
                continue
            if self._count >= MOST_CONNECTIONS and not self._close_an_idle_one():
                complain(
                    "full",
                    "the admin endpoint has %d busy connections",
                    len(self._open),
                    level=logging.WARNING,
                )
                accepted.close()
                continue
            self._starting += 1
            nursery.start_soon(self._serve, accepted)

    @property
    def _count(self) -> int:
        under_way = 0 if self._tls is None else len(self._tls)
        return len(self._open) + self._starting + under_way

    def _close_an_idle_one(self) -> bool:
        idle = next((connection for connection in self._open if connection.idle), None)
        if idle is None:
            return self._tls is not None and self._tls.end_the_oldest()
        del self._open[idle]
        idle.close()
        return True

    async def _serve(self, sock: trio.socket.SocketType) -> None:
        connection = await self._opened(sock)
        if connection is None:
            return
        self._open[connection] = None
        try:
            await connection.run()
        finally:
            self._open.pop(connection, None)

    async def _opened(self, sock: trio.socket.SocketType) -> "HttpConnection | None":
        """None: it is closed."""
        try:
            endpoint = self._endpoint or await self._made()
            from leafcuttr.server.admin.http import HttpConnection

            tls = self._made_tls()
            if tls is None:
                return HttpConnection(trio.SocketStream(sock), endpoint.router, endpoint.access)
        except Exception as error:
            sock.close()
            self._refuse(error)
            return None
        except BaseException:
            sock.close()
            raise
        finally:
            self._starting -= 1
        try:
            stream = await tls.stream(sock)
        except Exception as error:  # no thread for it
            self._refuse(error)
            return None
        if stream is None:
            return None
        return HttpConnection(stream, endpoint.router, endpoint.access, stream.certificate)

    def _refuse(self, error: Exception) -> None:
        reason = exhausted(error)
        shown = reason or repr(error)
        self._complain(f"serving: {shown}", "the admin endpoint cannot serve a connection: %s", shown)
        if reason is None:
            logger.debug("making the admin endpoint failed", exc_info=error)

    def _made_tls(self) -> "AdminTls | None":
        if self._tls is None and self._certificates is not None:
            from leafcuttr.server.admin.tls import AdminTls

            self._tls = AdminTls(self._certificates)
        return self._tls

    async def _made(self) -> "AdminEndpoint":
        async with self._making:
            if self._endpoint is None:
                self._endpoint = await trio.to_thread.run_sync(self._make)
        return self._endpoint
