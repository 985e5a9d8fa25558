"""A process that may start no more threads: what needs one because a connection came, or a setting changed, fails
alone, and is tried again."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import trio
from trio._core._thread_cache import THREAD_CACHE

from leafcuttr.config.listeners import Listener
from leafcuttr.server.admin.endpoint import AdminEndpoint
from leafcuttr.server.admin.listening import AdminConnections
from leafcuttr.server.listener import Connections
from leafcuttr.server.listening import OpenListeners
from leafcuttr.state.broker import Broker

Serve = Callable[..., Awaitable[Broker]]
SAID = "can't start new thread"


@contextmanager
def no_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError(SAID)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        patch.setattr(THREAD_CACHE, "_idle_workers", {})
        yield


async def test_a_connection_to_the_admin_port(
    serve: Serve, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve()
    of_kafka = Connections(broker)
    connections = AdminConnections(lambda: AdminEndpoint(broker, of_kafka))
    sock = socket.create_server(("127.0.0.1", 0))
    nursery.start_soon(connections.accept, sock, nursery)

    async def ask() -> bytes:
        async with await trio.open_tcp_stream(*sock.getsockname()) as stream:
            await stream.send_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            try:
                return b"".join([piece async for piece in stream])
            except trio.BrokenResourceError:
                return b""

    with no_threads(monkeypatch):
        assert [await ask() for _ in range(3)] == [b"", b"", b""]
    assert (await ask()).startswith(b"HTTP/1.1 200")
    assert [record.getMessage() for record in caplog.records if SAID in record.getMessage()] == [
        f"the admin endpoint cannot serve a connection: {SAID}"
    ]


async def test_limits_whose_hosts_have_to_be_looked_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = await serve({"max.connections.per.ip.overrides": "127.0.0.1:0"})
    connections, listener = Connections(broker), broker.listeners[0]
    ours, theirs = socket.socketpair()
    with no_threads(monkeypatch):
        await connections.wait_to_accept(listener)
    await connections.wait_to_accept(listener)
    assert connections.add(ours, listener, "127.0.0.1", 1) is None, "the limit holds once it is known"
    ours.close()
    theirs.close()


async def test_a_listener_that_is_to_be_opened(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve()
    listening = OpenListeners(broker, Connections(broker), ())
    with no_threads(monkeypatch), caplog.at_level(logging.ERROR):
        await listening._replace(None, Listener("NEW", "127.0.0.1", 0, "127.0.0.1", 0))
    assert [record.getMessage() for record in caplog.records] == [f"listener NEW cannot be opened: {SAID}"]
