"""Listeners get their addresses, and what cannot be bound is one line."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import StartError
from leafcuttr.net import binding
from leafcuttr.net.binding import bind
from leafcuttr.state.broker import Broker
from support.peer import Peer, connect, metadata_request, serves

Serve = Callable[..., Awaitable[Broker]]


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


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

    def lookup(host: str | bytes, *words: Any, **named: Any) -> list[tuple[Any, ...]]:
        if host not in ("both.test", b"both.test"):
            return list(real(host, *words, **named))
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (four, 0)),
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (six, 0, 0, 0)),
        ]

    monkeypatch.setattr(binding.socket, "getaddrinfo", lookup)


async def test_buffer_sizes_and_backlog_reach_the_kernel(serve: Serve) -> None:
    await serve({"socket.receive.buffer.bytes": "20000", "socket.send.buffer.bytes": "30000"})
    listener = Listener("P", "127.0.0.1", 0, "h", 0)
    sizes = [(socket.SO_RCVBUF, 20_000), (socket.SO_SNDBUF, 30_000)]
    found, socks = binding.bind(listener, 1, sizes)
    with socks[0] as sock, socket.create_connection(("127.0.0.1", found.port)):
        await trio.lowlevel.wait_readable(sock)
        accepted, _ = sock.accept()
        with accepted:
            # The kernel doubles the size that was requested.
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 40_000
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 60_000


@pytest.mark.parametrize(("source", "is_sized"), [("127.0.0.1", True), ("127.0.0.2", False)])
def test_the_receive_buffer_of_a_connection_from_this_machine(source: str, is_sized: bool) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname(), source_address=(source, 0)) as client,
    ):
        accepted, _ = listening.accept()
        with accepted:
            before = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            binding.size_for_local_tls(accepted, 20_000)
            after = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            assert after == (40_000 if is_sized else before)
        client.close()


def test_the_receive_buffer_of_a_connection_that_has_gone() -> None:
    with socket.socket() as never_connected:
        binding.size_for_local_tls(never_connected, 20_000)


@pytest.mark.parametrize(("given", "size"), [({}, 102_400), ({"socket.receive.buffer.bytes": "30000"}, 0)])
async def test_the_receive_buffer_for_tls_is_that_of_kafka_unless_one_is_set(
    serve: Serve, given: dict[str, str], size: int
) -> None:
    broker = await serve(given)
    assert binding.receive_buffer_for_local_tls(broker.settings) == size


@pytest.mark.parametrize(("setting", "said"), [("listeners", "listeners"), ("mqtt.port", "mqtt.host")])
def test_a_host_that_is_unknown_names_its_setting(setting: str, said: str) -> None:
    listener = Listener("L", "no.such.host.invalid", 0, "", 0, "PLAINTEXT")
    with pytest.raises(StartError) as raised:
        bind(listener, 1, setting=setting)
    assert str(raised.value).startswith("listener L: the host 'no.such.host.invalid' is unknown: ")
    assert str(raised.value).endswith(f" ({said})")


@pytest.mark.parametrize("host", ["a" * 64 + ".invalid", "ä" * 64 + ".invalid", "bücher..invalid"])
def test_a_host_that_can_be_no_name_is_unknown_too(host: str) -> None:
    with pytest.raises(StartError, match=f"listener L: the host {host!r} is unknown: "):
        bind(Listener("L", host, 0, "", 0, "PLAINTEXT"), 1)
