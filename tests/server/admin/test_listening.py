"""The admin endpoint's own port: its address, its connections, and what they cannot hold up."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from leafcuttr.server.admin import listening
from leafcuttr.server.admin.endpoint import AdminEndpoint
from leafcuttr.server.admin.listening import AdminConnections
from leafcuttr.server.listener import Connections
from leafcuttr.state.broker import Broker
from support.http_client import ON, Client, ask
from support.no_threads import SAID, no_threads
from support.waiting import free_port

Serve = Callable[..., Awaitable[Broker]]


async def listens(host: str, port: int) -> bool:
    try:
        await (await trio.open_tcp_stream(host, port)).aclose()
    except OSError:
        return False
    return True


async def _refused(broker: Broker) -> bool:
    """Whether a new connection is closed without an answer. The others may not have been read yet."""
    try:
        await ask(broker, "/health/live")
    except (EOFError, trio.BrokenResourceError):
        return True
    return False


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


@pytest.mark.setting("lc.metrics.enable")
async def test_off(serve: Serve) -> None:
    assert (await serve({"lc.metrics.enable": "false"})).admin is None


async def test_a_busy_port_is_a_warning(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = await serve({**ON, "lc.metrics.port": str(port)})
        assert broker.admin is None
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith("no metrics: ")
    assert f"lc.metrics.port={port}" in line
    assert "another program listens there" in line


@pytest.mark.setting("lc.metrics.host", "lc.metrics.port")
async def test_the_configured_host_and_port(serve: Serve) -> None:
    port = free_port()
    broker = await serve({**ON, "lc.metrics.port": str(port), "lc.metrics.host": "127.0.0.3"})
    assert broker.admin is not None and broker.admin.port == port
    assert not await listens("127.0.0.1", port)
    assert await listens("127.0.0.3", port)
    stream = await trio.open_tcp_stream("127.0.0.3", port)
    async with stream:
        assert (await Client(stream).get("/health/live"))[0] == 200


async def test_an_address_that_other_machines_reach_is_a_warning(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve({**ON, "lc.metrics.host": ""})
    assert broker.admin is not None
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line == (
        f"every host that reaches this machine port {broker.admin.port} may read metrics and health "
        "without authentication (lc.metrics.host)"
    )


async def test_a_newer_connection_takes_the_place_of_an_idle_one(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 3)
    broker = await serve(ON)
    assert broker.admin is not None
    clients = []
    for _ in range(4):
        client = Client(await trio.open_tcp_stream(broker.admin.host, broker.admin.port))
        assert (await client.get("/health/live"))[0] == 200
        clients.append(client)
    with trio.fail_after(60):
        assert await clients[0].rest() == b""
    for client in clients[1:]:
        assert (await client.get("/health/live"))[0] == 200
    for client in clients[1:]:  # all busy with a head that does not end
        await client.stream.send_all(b"GET /health/live HTTP/1.1\r\n")
    with trio.fail_after(60):
        while (refused := await _refused(broker)) is not True:
            assert refused is False
    for client in clients[1:]:
        assert (await client.ask("Host: x\n\n"))[0] == 200
