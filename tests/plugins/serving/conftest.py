"""A server of `leafcuttr.plugins.serving` on a socket of its own, without a broker."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.plugins.serving.limits import Limits
from leafcuttr.plugins.serving.server import Server
from leafcuttr.state.plugged import Plugged
from leafcuttr_sdk import ByteStream

PREFIX = "lc.plugin.greeter"
LIMITS = Limits(handshake_s=10.0, idle_s=0.0, send_s=30.0)


class Served:
    """A server that runs, and how to reach and to stop it."""

    def __init__(self, server: Server, sock: socket.socket, plugged: Plugged) -> None:
        self.server = server
        self.plugged = plugged
        self.address: Any = sock.getsockname()
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self._sock = sock

    async def run(self) -> None:
        try:
            with self.scope:
                await self.server.run([self._sock], self._sock.close)
        finally:
            self.ended.set()

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream(*self.address[:2])

    async def stop(self) -> None:
        self.scope.cancel()
        await self.ended.wait()

    @property
    def ends(self) -> dict[str, int]:
        return dict(self.server.ends)


Start = Callable[..., Served]


@pytest.fixture
def start(nursery: trio.Nursery) -> Start:
    """Serve with this handler."""

    def begin(
        handler: Callable[[ByteStream], Awaitable[None]],
        *,
        limits: Limits = LIMITS,
        most: int = 1000,
        context: ssl.SSLContext | None = None,
        sock: socket.socket | None = None,
        refusal: bytes = b"",
    ) -> Served:
        sock = sock or socket.create_server(("127.0.0.1", 0), backlog=128)
        sock.setblocking(False)
        plugged = Plugged()
        path = sock.getsockname() if sock.family == socket.AF_UNIX else ""
        server = Server(
            plugged, "greeter", PREFIX, handler, limits, lambda: most, context, path, refusal=refusal
        )
        served = Served(server, sock, plugged)
        nursery.start_soon(served.run)
        return served

    return begin


async def echo(stream: ByteStream) -> None:
    async for data in stream:
        await stream.send_all(data)


async def reset(client: trio.SocketStream) -> None:
    """Ends a connection as a client does that is killed."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await client.aclose()


async def becomes(look: Callable[[], object], what: str) -> None:
    """As `support.waiting.eventually`, where trio's clock stands still."""
    began = time.monotonic()
    while not look():
        await trio.testing.wait_all_tasks_blocked(0.005)
        assert time.monotonic() - began < 60, what
