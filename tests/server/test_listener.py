"""Listeners and limits on connections, with real sockets."""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.net import binding
from leafcuttr.server.listener import _AT_ONCE, _MOST_REFUSED, Connections, accept_loop
from leafcuttr.server.transport import PlainTransport, Transport
from leafcuttr.state.broker import Broker
from support.live_broker import serve_here
from support.no_threads import no_threads
from support.peer import Peer, connect, metadata_request, serves

Serve = Callable[..., Awaitable[Broker]]


async def test_each_client_sees_the_address_of_the_listener_it_came_in_on(serve: Serve) -> None:
    broker = await serve(
        {
            "listeners": "HOST://127.0.0.1:0,DOCKER://0.0.0.0:0,CONTROLLER://127.0.0.1:0,FREE://localhost:0",
            "advertised.listeners": "HOST://edge1:19092,DOCKER://kafka:9093",
            "listener.security.protocol.map": "HOST:PLAINTEXT,DOCKER:PLAINTEXT,CONTROLLER:PLAINTEXT,FREE:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "DOCKER",
        }
    )
    assert [listener.name for listener in broker.listeners] == ["HOST", "DOCKER", "FREE"]
    expected = [("edge1", 19092), ("kafka", 9093), ("localhost", broker.listeners[2].port)]
    for number, address in enumerate(expected):
        async with await connect(broker, number) as peer:
            found = (await peer.ask(metadata_request(), 12)).brokers
            assert [(each.host, each.port) for each in found] == [address]


async def test_a_listener_gives_its_port_back_at_once(serve: Serve) -> None:
    stop = trio.Event()
    broker = await serve(stop=stop)
    async with await connect(broker) as peer:
        assert await serves(peer)
        stop.set()
        assert await peer.closed() == b""
    _, socks = binding.bind(Listener("P", "127.0.0.1", broker.listeners[0].port, "h", 0), 5)
    socks[0].close()


async def test_at_most_so_many_connections(serve: Serve) -> None:
    """As with Kafka the next one waits until another ends."""
    broker = await serve({"max.connections": "3"})
    peers = [await connect(broker) for _ in range(3)]
    for peer in peers:
        assert await serves(peer)
    async with await connect(broker) as fourth:
        with trio.move_on_after(0.2) as patience:
            await serves(fourth)
        assert patience.cancelled_caught
        assert await serves(peers[0])
        await peers[1].stream.aclose()
        await fourth.frame()  # the answer to what it had sent
    for peer in peers:
        await peer.stream.aclose()


async def test_at_most_so_many_connections_of_one_address(serve: Serve) -> None:
    broker = await serve(
        {
            "listeners": "PLAINTEXT://0.0.0.0:0",
            "advertised.listeners": "PLAINTEXT://localhost:9092",
            "max.connections.per.ip": "2",
            "max.connections.per.ip.overrides": "127.0.0.2:1, 127.0.0.3:0",
        }
    )
    port = broker.listeners[0].port

    async def allowed(source: str, count: int) -> None:
        kept = []
        for number in range(count + 2):
            peer = Peer(await trio.open_tcp_stream("127.0.0.1", port, local_address=source))
            kept.append(peer)
            if number < count:
                assert await serves(peer)
            else:
                assert await peer.closed() == b""
        for peer in kept:
            await peer.stream.aclose()

    await allowed("127.0.0.1", 2)
    await allowed("127.0.0.2", 1)
    await allowed("127.0.0.3", 0)
    async with trio.open_nursery() as nursery:  # once the first two have gone there is room again

        async def again() -> None:
            while True:
                peer = Peer(await trio.open_tcp_stream("127.0.0.1", port))
                with suppress(ConnectionError, trio.BrokenResourceError):
                    if await serves(peer):
                        nursery.cancel_scope.cancel()

        nursery.start_soon(again)


async def test_a_full_descriptor_table_pauses_the_listener_and_kills_nothing(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("leafcuttr"), "propagate", True)
    broker = await serve()
    address = ("127.0.0.1", broker.listeners[0].port)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with await connect(broker) as before:
        clients = [trio.socket.socket() for _ in range(8)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (clients[-1].fileno() + 1, hard))
        try:
            for client in clients:
                await client.connect(address)
            while not [each for each in caplog.records if "pauses" in each.getMessage()]:
                assert await serves(before)
            with trio.move_on_after(0.6):
                while True:
                    assert await serves(before)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for client in clients:
            async with Peer(trio.SocketStream(client)) as peer:
                assert await serves(peer)
    assert len([each for each in caplog.records if "pauses" in each.getMessage()]) == 1


async def test_addresses_that_may_have_no_connection(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """Each is logged once until one of its connections ends, and here none ends."""
    connections = Connections(await serve({"max.connections.per.ip": "0"}))
    listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "localhost", 9092)
    caplog.set_level(logging.WARNING)
    with socket.socket() as sock:
        unused = PlainTransport(sock)
        for number in range(3 * _MOST_REFUSED):
            for _ in range(2):
                assert connections.add(unused, listener, f"2001:db8::{number:x}", 1) is None
    assert len(connections._refused) <= _MOST_REFUSED
    assert not connections._by_address
    assert len(caplog.records) == 3 * _MOST_REFUSED


async def test_limits_of_hosts_that_cannot_be_looked_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await serve({"max.connections.per.ip.overrides": "127.0.0.1:0"})
    connections, listener = Connections(broker), broker.listeners[0]
    ours, theirs = socket.socketpair()
    with no_threads(monkeypatch):
        await connections.wait_to_accept(listener)
    await connections.wait_to_accept(listener)
    transport = PlainTransport(ours)
    assert connections.add(transport, listener, "127.0.0.1", 1) is None, "the limit holds once it is known"
    ours.close()
    theirs.close()


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 64 + ".invalid", "bücher..invalid"])
async def test_limits_of_hosts_that_are_unknown_are_left_out(
    serve: Serve, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    broker = await serve({"max.connections.per.ip.overrides": f"{host}:1, 127.0.0.1:0"})
    connections, listener = Connections(broker), broker.listeners[0]
    await connections.wait_to_accept(listener)
    start = f"max.connections.per.ip.overrides: the host {host} is unknown: "
    assert [line for line in caplog.messages if line.startswith(start)]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert connections.add(PlainTransport(ours), listener, "127.0.0.1", 1) is None, "the next one counts"


@pytest.mark.timeout(60)
async def test_a_connection_whose_options_cannot_be_set(
    tmp_path: Path, serve: Serve, nursery: trio.Nursery
) -> None:
    """A socket of another family has none of TCP's. It is closed at once, and counts for nothing."""
    connections = Connections(await serve())
    listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "localhost", 9092)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.setblocking(False)
        listening.bind(str(tmp_path / "socket"))
        listening.listen()
        nursery.start_soon(accept_loop, listening, listener, connections, nursery)
        for _ in range(3):
            client = await trio.open_unix_socket(tmp_path / "socket")
            assert await client.receive_some(1) == b"", "closed"
        assert (connections.all, connections.accepted, connections.refused) == (set(), {}, {})
        assert not connections.too_fast_s(listener) and not connections.full(listener)
        nursery.cancel_scope.cancel()


async def test_others_have_their_turn_while_many_are_accepted(serve: Serve, nursery: trio.Nursery) -> None:
    count = 8 * _AT_ONCE
    connections = Connections(await serve())
    with socket.create_server(("127.0.0.1", 0), backlog=2 * count) as listening, ExitStack() as clients:
        listening.setblocking(False)
        address: tuple[str, int] = listening.getsockname()
        for _ in range(count):
            clients.enter_context(socket.create_connection(address))
        listener = Listener("MANY", *address, *address)
        nursery.start_soon(accept_loop, listening, listener, connections, nursery)
        accepted = 0
        while accepted < count:
            await trio.lowlevel.checkpoint()
            before, accepted = accepted, connections.accepted.get("MANY", 0)
            # Those of one turn, and of a part of the next: the order within a turn is any.
            assert accepted - before <= 2 * _AT_ONCE
        nursery.cancel_scope.cancel()


@pytest.mark.timeout(60)
async def test_a_connection_whose_transport_cannot_be_made(tmp_path: Path, nursery: trio.Nursery) -> None:
    broken = 3
    made: list[socket.socket] = []

    def make(sock: socket.socket) -> Transport:
        made.append(sock)
        if len(made) <= broken:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, -1)  # as a transport of its own might
        return PlainTransport(sock)

    limits = {"max.connections.per.ip": "1", "max.connections": "1"}
    broker = await serve_here(nursery, tmp_path / "data", limits, make_transport=make)
    for _ in range(broken):
        async with await connect(broker) as peer:
            assert await peer.closed() == b""
    async with await connect(broker) as peer:
        assert await serves(peer)
        assert [sock.fileno() == -1 for sock in made] == [True] * broken + [False]


async def test_connections_of_plugins_leave_fewer_to_clients(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await serve()
    monkeypatch.setattr("leafcuttr.server.listener.most_of_clients", lambda _, of_plugins: 10 - of_plugins)
    connections = Connections(broker)
    assert not connections.full(broker.listeners[0])
    broker.plugged.connections = 10
    assert connections.full(broker.listeners[0])
