"""Listeners and limits on connections, with real sockets."""

from __future__ import annotations

import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import StartError
from leafcuttr.net import binding
from leafcuttr.state.broker import Broker
from support.peer import Peer, connect, fetch_request, metadata_request, serves

Serve = Callable[..., Awaitable[Broker]]


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


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


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_ipv6(serve: Serve) -> None:
    broker = await serve({"listeners": "PLAINTEXT://[::1]:0"})
    async with await connect(broker) as peer:
        (found,) = (await peer.ask(metadata_request(), 12)).brokers
        assert (found.host, found.port) == ("::1", broker.listeners[0].port)


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_a_name_with_two_addresses_listens_on_both_with_one_port(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    _both_addresses(monkeypatch, "127.0.0.1", "::1")
    broker = await serve({"listeners": "PLAINTEXT://both.test:0"})
    for host in ("127.0.0.1", "::1"):
        async with Peer(await trio.open_tcp_stream(host, broker.listeners[0].port)) as peer:
            assert await serves(peer)


def test_an_address_of_a_name_that_this_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _both_addresses(monkeypatch, "127.0.0.1", "2001:db8::1")
    found, socks = binding.bind(Listener("P", "both.test", 0, "h", 0), 5)
    assert [sock.getsockname()[:2] for sock in socks] == [("127.0.0.1", found.port)]
    socks[0].close()
    _both_addresses(monkeypatch, "192.0.2.1", "2001:db8::1")
    with pytest.raises(StartError, match="no such address"):
        binding.bind(Listener("P", "both.test", 0, "h", 0), 5)


def _both_addresses(monkeypatch: pytest.MonkeyPatch, four: str, six: str) -> None:
    """A name service that knows one name more, since no machine's own can be relied on to have two addresses."""
    real = socket.getaddrinfo

    def lookup(host: str, *words: Any, **named: Any) -> list[tuple[Any, ...]]:
        if host != "both.test":
            return list(real(host, *words, **named))
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (four, 0)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (six, 0, 0, 0)),
        ]

    monkeypatch.setattr(binding.socket, "getaddrinfo", lookup)


async def test_a_listener_gives_its_port_back_at_once(serve: Serve) -> None:
    stop = trio.Event()
    broker = await serve(stop=stop)
    async with await connect(broker) as peer:
        assert await serves(peer)
        stop.set()
        assert await peer.closed() == b""
    _, socks = binding.bind(Listener("P", "127.0.0.1", broker.listeners[0].port, "h", 0), 5)
    socks[0].close()


async def test_buffer_sizes_and_backlog_reach_the_kernel(serve: Serve) -> None:
    await serve({"socket.receive.buffer.bytes": "20000", "socket.send.buffer.bytes": "30000"})
    listener = Listener("P", "127.0.0.1", 0, "h", 0)
    sizes = [(socket.SO_RCVBUF, 20_000), (socket.SO_SNDBUF, 30_000)]
    found, socks = binding.bind(listener, 1, sizes)
    with socks[0] as sock, socket.create_connection(("127.0.0.1", found.port)):
        await trio.lowlevel.wait_readable(sock)
        accepted, _ = sock.accept()
        with accepted:
            # The kernel doubles what it is asked for.
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 40_000
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 60_000


@pytest.mark.setting("connections.max.idle.ms")
async def test_idle_connections_are_closed_and_waiting_ones_are_not(serve: Serve) -> None:
    broker = await serve({"connections.max.idle.ms": "200"})
    async with await connect(broker) as idle, await connect(broker) as half, await connect(broker) as polling:
        await polling.ask(metadata_request("t"), 12)
        poll = fetch_request("t", 0, max_wait_ms=1500)
        number = await polling.send(poll, 12)
        await half.stream.send_all(b"\0\0")
        assert await idle.closed() == b""
        assert await half.closed() == b""
        await polling.answer_to(poll, 12, number)


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
        await fourth.frame()  # the answer to what it had asked
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


@pytest.mark.setting("queued.max.request.bytes")
async def test_the_memory_of_large_requests_is_bounded(serve: Serve) -> None:
    """While one large frame is on its way the next waits; small ones go on."""
    broker = await serve({"queued.max.request.bytes": "10000"})
    async with (
        await connect(broker) as first,
        await connect(broker) as second,
        await connect(broker) as small,
    ):
        await first.stream.send_all((50_000).to_bytes(4, "big") + bytes(5000))
        assert await serves(small)
        await second.stream.send_all((50_000).to_bytes(4, "big") + bytes(5000))
        assert await serves(small)
        with trio.move_on_after(0.2) as patience, suppress(trio.BrokenResourceError):
            await second.stream.send_all(bytes(50 << 20))
        assert patience.cancelled_caught, "nobody reads it"
        assert await serves(small)
        await first.stream.aclose()
        assert await second.closed() == b"", "now it is read, and is no request"


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
