"""The address of the admin endpoint: bound before anything else happens, served beside the broker's services.

Until the first connection it is no more than a socket: the endpoint is made, and its modules imported, then, in a
worker thread.

If that fails because the process has run out of descriptors or threads, the connection is closed, and the next one
tries it again.

If the address cannot be bound, a warning is logged and the broker starts: producing and consuming do not depend on it.
At most 64 connections are open; a new one replaces the one that has been idle longest.
"""

import errno
import logging
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings
from leafcuttr.errors import StartError
from leafcuttr.net import binding
from leafcuttr.net.exposure import warn_if_open, why_refused
from leafcuttr.runtime.complaints import Complaints
from leafcuttr_sdk.trouble import exhausted

if TYPE_CHECKING:
    from leafcuttr.server.admin.endpoint import AdminEndpoint
    from leafcuttr.server.admin.http import HttpConnection

logger = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 64
_BACKLOG: Final = 64
_WHAT: Final = "read metrics and health"
_PAUSE_S: Final = 0.25
_GONE: Final = (errno.ECONNABORTED, errno.EPROTO)

AdminBound = tuple[Listener, Sequence[socket.socket]]


def bind(settings: Settings) -> AdminBound | None:
    """Open `lc.metrics.host` and `lc.metrics.port`; None if that is switched off or cannot be done. Raises StartError
    where `lc.listeners.open` refuses the address."""
    if not settings.bool("lc.metrics.enable"):
        return None
    host, port = settings.text("lc.metrics.host"), settings.int("lc.metrics.port")
    try:
        bound = binding.bind(Listener("metrics", host, port, host, port), _BACKLOG)
    except StartError as error:
        reason = str(error).partition(" (choose another port")[0]
        logger.warning("no metrics: %s (lc.metrics.host=%s, lc.metrics.port=%d)", reason, host, port)
        return None
    if _is_open(settings) and (why := why_refused(settings, *bound, _WHAT, "lc.metrics.host")) is not None:
        for sock in bound[1]:
            sock.close()
        raise StartError(why)
    return bound


def _is_open(settings: Settings) -> bool:
    """Whether clients need not authenticate for metrics."""
    return "none" in settings.list("lc.metrics.auth")


async def serve(
    bound: AdminBound, make: "Callable[[], AdminEndpoint]", settings: Settings | None = None
) -> None:
    """Answer on these sockets until cancelled. `make` is called in a worker thread for the first connection, and again
    for the next one if it raises. It imports what connections need."""
    listener, socks = bound
    if settings is None or _is_open(settings):
        warn_if_open(logger, listener, socks, _WHAT, "lc.metrics.host")
    connections = AdminConnections(make)
    async with trio.open_nursery() as nursery:
        for sock in socks:
            nursery.start_soon(connections.accept, sock, nursery)


class AdminConnections:
    """The open connections of the admin endpoint."""

    def __init__(self, make: "Callable[[], AdminEndpoint]") -> None:
        self._make = make
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
            if len(self._open) + self._starting >= MOST_CONNECTIONS and not self._close_an_idle_one():
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

    def _close_an_idle_one(self) -> bool:
        idle = next((connection for connection in self._open if connection.idle), None)
        if idle is None:
            return False
        del self._open[idle]
        idle.close()
        return True

    async def _serve(self, sock: trio.socket.SocketType) -> None:
        try:
            endpoint = self._endpoint or await self._made()
            from leafcuttr.server.admin.http import HttpConnection

            connection = HttpConnection(trio.SocketStream(sock), endpoint.router, endpoint.access)
        except Exception as error:
            sock.close()
            self._refuse(error)
            return
        except BaseException:
            sock.close()
            raise
        finally:
            self._starting -= 1
        self._open[connection] = None
        try:
            await connection.run()
        finally:
            self._open.pop(connection, None)

    def _refuse(self, error: Exception) -> None:
        reason = exhausted(error)
        shown = reason or repr(error)
        self._complain(f"serving: {shown}", "the admin endpoint cannot serve a connection: %s", shown)
        if reason is None:
            logger.debug("making the admin endpoint failed", exc_info=error)

    async def _made(self) -> "AdminEndpoint":
        async with self._making:
            if self._endpoint is None:
                self._endpoint = await trio.to_thread.run_sync(self._make)
        return self._endpoint
