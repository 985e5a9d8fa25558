"""Accepting connections, within the limits on their number, and starting a task for each.

`max.connections` makes the listener wait until one ends, `max.connections.per.ip` (and its overrides) closes the new
one at once, as Kafka does. A full descriptor table makes the listener pause; nothing else notices.
"""

import errno
import itertools
import logging
import socket
from typing import Final

import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings, Source
from leafcuttr.handlers.context import RequestContext
from leafcuttr.server.connection import Connection
from leafcuttr.server.memory import RequestMemory
from leafcuttr.state.broker import Broker

logger = logging.getLogger(__name__)

_NO_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S: Final = 0.25


class Connections:
    """Every open connection of the broker, and how many each address has."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._numbers = itertools.count(1)
        self._by_address: dict[str, int] = {}
        self._ended = trio.Event()
        self._memory = RequestMemory(broker.settings.int("queued.max.request.bytes"))
        self.all: set[Connection] = set()
        self.stopping = False
        self.buffer_sizes = _asked_buffer_sizes(broker.settings)

    async def room(self) -> None:
        """Wait until `max.connections` allows another."""
        while len(self.all) >= self._broker.settings.int("max.connections"):
            await self._ended.wait()

    async def drained(self) -> None:
        """Wait until no connection is left."""
        while self.all:
            await self._ended.wait()

    def admit(self, address: str) -> bool:
        """Whether `address` may have another connection."""
        limit = self._overrides().get(address, self._broker.settings.int("max.connections.per.ip"))
        return self._by_address.get(address, 0) < limit

    async def serve(self, sock: socket.socket, listener: Listener, address: tuple[str, int]) -> None:
        """Run one connection to its end and close its socket."""
        host, port = address
        context = RequestContext(listener=listener, peer=f"{host}:{port}", connection_id=next(self._numbers))
        connection = Connection(self._broker, sock, context, self._memory)
        self.all.add(connection)
        self._by_address[host] = self._by_address.get(host, 0) + 1
        try:
            if not self.stopping:
                await connection.run()
        finally:
            self.all.discard(connection)
            left = self._by_address.pop(host) - 1
            if left:
                self._by_address[host] = left
            trio.lowlevel.notify_closing(sock)
            sock.close()
            self._ended.set()
            self._ended = trio.Event()

    def _overrides(self) -> dict[str, int]:
        text = self._broker.settings.str("max.connections.per.ip.overrides")
        pairs = (item.rpartition(":") for item in text.split(",") if item)
        return {host.strip(): int(limit) for host, _, limit in pairs}


def _asked_buffer_sizes(settings: Settings) -> list[tuple[int, int]]:
    options = (
        ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
        ("socket.send.buffer.bytes", socket.SO_SNDBUF),
    )
    return [
        (option, settings.int(name))
        for name, option in options
        if settings.source(name) is not Source.DEFAULT_CONFIG and settings.int(name) > 0
    ]


async def accept_loop(
    sock: socket.socket, listener: Listener, connections: Connections, nursery: trio.Nursery
) -> None:
    """Accept on one bound socket until cancelled; connections run in `nursery`."""
    complained = False
    while True:
        await connections.room()
        await trio.lowlevel.wait_readable(sock)
        try:
            accepted, address = sock.accept()
        except BlockingIOError:
            continue
        except OSError as error:
            if error.errno not in _NO_DESCRIPTORS:
                logger.debug("a connection ended before it was accepted: %s", error)
                continue
            if not complained:
                logger.warning("listener %s pauses: %s", listener.name, error.strerror)
                complained = True
            await trio.sleep(_PAUSE_S)
            continue
        complained = False
        host = str(address[0]).removeprefix("::ffff:")
        if not connections.admit(host):
            logger.warning("refusing %s on %s: max.connections.per.ip is reached", host, listener.name)
            accepted.close()
            continue
        _prepare(accepted, connections)
        nursery.start_soon(connections.serve, accepted, listener, (host, address[1]))


def _prepare(sock: socket.socket, connections: Connections) -> None:
    """No delay for small answers, and the buffer sizes that were asked for.

    Kafka's default of 100 KiB would switch the kernel's own sizing off and cost much throughput, so these settings
    act only where somebody has set them.
    """
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, size in connections.buffer_sizes:
        sock.setsockopt(socket.SOL_SOCKET, option, size)
