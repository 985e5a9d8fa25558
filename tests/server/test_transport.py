"""Connections over transports of every kind: plain sockets, one that can send bytes only, one that buffers.

A test of the source holds that nobody above the transports calls a socket.
"""

from __future__ import annotations

import ast
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

import leafcuttr.server
from leafcuttr.log.files.region import FileRegion
from leafcuttr.server.transport import PlainTransport, accept
from leafcuttr.state.broker import Broker
from leafcuttr.wire.batch import parse
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from support.logs import batch
from support.peer import Peer, connect, fetch_request, framed, produce_request, request_bytes
from support.transports import Buffering, BytesOnly
from support.waiting import eventually, within

Serve = Callable[..., Awaitable[Broker]]


ALL = pytest.mark.parametrize("kind", [PlainTransport, BytesOnly, Buffering])


LARGE = {"message.max.bytes": str(4 << 20)}


SOCKET_CALLS = {
    *("recv", "recv_into", "recvfrom", "recvmsg", "recvmsg_into"),
    *("send", "sendall", "sendmsg", "sendto", "sendfile"),
    *("shutdown", "getsockopt", "setsockopt", "setblocking", "settimeout", "detach", "fileno", "accept"),
    *("wait_writable", "notify_closing"),
}


ALLOWED = {
    ("reactor.py", "self._writers.fileno"),
    ("reactor.py", "self._epoll.fileno"),
    ("arrivals.py", "epoll.fileno"),
}
"""Descriptors that are not sockets."""


def calls_of_sockets(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in SOCKET_CALLS
            and ast.unparse(node.value) not in ("transport", "self._transport")
        ):
            yield ast.unparse(node)


def test_nobody_above_the_transports_calls_a_socket() -> None:
    folder = Path(leafcuttr.server.__file__).parent
    found = {
        (path.name, call)
        for path in folder.glob("*.py")
        if path.name not in ("transport.py", "tls_transport.py")
        for call in calls_of_sockets(path.read_text())
    }
    assert found == ALLOWED


def test_the_look_for_such_calls_finds_them() -> None:
    source = "s.sock.recv(1); g = os.sendfile; self._transport.send(b'')"
    assert {*calls_of_sockets(source)} == {"s.sock.recv", "os.sendfile"}


async def filled(serve: Serve, kind: type) -> tuple[Broker, Peer, list[bytearray]]:
    """A broker on such transports, a peer of it, and the batches that the peer has produced: small and large ones."""
    broker = await serve(LARGE, make_transport=kind)
    await broker.topics.create("t", 1, {})
    peer = await connect(broker)
    batches = [batch(size=size) for size in (10, 3 << 20, 30_000, 10, 300_000)]
    for number, each in enumerate(batches):
        answer = await peer.ask(produce_request("t", each), 9)
        part = answer.responses[0].partition_responses[0]
        assert (part.error_code, part.base_offset) == (0, number)
    return broker, peer, batches


async def fetched(peer: Peer, count: int) -> list[bytes]:
    """Every batch of the partition, without the base offset, which the broker has set."""
    found: list[bytes] = []
    while len(found) < count:
        answer = await peer.ask(fetch_request("t", len(found), max_bytes=8 << 20), 12)
        data, at = answer.responses[0].partitions[0].records, 0
        while at < len(data):
            size = parse(data, at).size
            found.append(bytes(data[at + 8 : at + size]))
            at += size
    return found


def same(found: list[bytes], batches: list[bytearray]) -> bool:
    """But for the leader epoch, which the broker has set too."""
    return [(len(each), each[8:]) for each in found] == [(len(each) - 8, each[16:]) for each in batches]


@ALL
async def test_all_that_is_produced_is_fetched(serve: Serve, kind: type) -> None:
    _, peer, batches = await filled(serve, kind)
    async with peer:
        with within(60, "the records"):
            assert same(await fetched(peer, len(batches)), batches)


@pytest.mark.one_in(2)
@ALL
async def test_records_that_are_not_in_the_page_cache(
    serve: Serve, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read in by a worker thread, and all of them arrive, in order."""
    _, peer, batches = await filled(serve, kind)
    threads: list[str] = []
    read, warm = FileRegion.read, FileRegion.warm

    def noted_read(region: FileRegion) -> bytes:
        threads.append("read")
        return read(region)

    def noted_warm(region: FileRegion) -> None:
        threads.append("warm")
        warm(region)

    monkeypatch.setattr(FileRegion, "read_cached", lambda region: None)
    monkeypatch.setattr(FileRegion, "is_cached", lambda region: False)
    monkeypatch.setattr(FileRegion, "read", noted_read)
    monkeypatch.setattr(FileRegion, "warm", noted_warm)
    async with peer:
        with within(60, "the records"):
            assert same(await fetched(peer, len(batches)), batches)
            # One that is short enough to be sent in the round of the reactor, were it cached.
            answer = await peer.ask(fetch_request("t", 2, max_bytes=len(batches[2])), 12)
            assert answer.responses[0].partitions[0].records[16:] == batches[2][16:]
    assert set(threads) == {"read" if kind is BytesOnly else "warm"}
    assert len(threads) >= 4, "a slice at a time"


@ALL
async def test_requests_of_one_packet(serve: Serve, kind: type) -> None:
    """Nothing more arrives behind them: what a transport has buffered is served all the same."""
    broker = await serve(LARGE, make_transport=kind)
    await broker.topics.create("t", 1, {})
    requests = [
        (produce_request("t", batch(size=900)), 9),
        (ApiVersionsRequest(), 2),
        (fetch_request("t", 0), 12),
    ] * 30
    sent = b"".join(
        framed(request_bytes(request, version, correlation_id=number))
        for number, (request, version) in enumerate(requests)
    )
    async with await connect(broker) as peer:
        with within(60, "the answers"):
            await peer.stream.send_all(sent)
            for number, (request, version) in enumerate(requests):
                await peer.answer_to(request, version, number)


@pytest.mark.one_in(2)
@ALL
async def test_what_was_buffered_while_a_request_waited(serve: Serve, kind: type) -> None:
    """A long poll takes the connection out of the reactor, to which it comes back with bytes that no descriptor
    shows; the reactor sleeps then."""
    broker = await serve(LARGE, make_transport=kind)
    await broker.topics.create("t", 1, {})
    poll, behind, count = fetch_request("t", 0, max_wait_ms=60_000), ApiVersionsRequest(), 400
    filler = [
        framed(request_bytes(behind, 2, correlation_id=2 + number, client_id=b"x" * 600))
        for number in range(count)
    ]
    async with await connect(broker) as peer, await connect(broker) as other:
        with within(60, "the answers"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peer.stream.send_all, framed(request_bytes(poll, 12)) + b"".join(filler))
                while not broker.delayed_requests:
                    await trio.testing.wait_all_tasks_blocked()
                await other.ask(produce_request("t", batch()), 9)
                answer = await peer.answer_to(poll, 12, 1)
                assert answer.responses[0].partitions[0].records
                for number in range(count):
                    await peer.answer_to(behind, 2, 2 + number)


async def test_the_stream_ends_after_the_last_answer(serve: Serve) -> None:
    """A request that is refused closes the connection by a half-close: the answers before it arrive, then the end."""
    ends: list[str] = []

    class Noting(BytesOnly):
        def half_close(self) -> None:
            ends.append("half-close")
            self.plain.half_close()

        def close(self) -> None:
            ends.append("close")
            self.plain.close()

    broker = await serve(make_transport=Noting)
    async with await connect(broker) as peer:
        await peer.send(ApiVersionsRequest(), 2)
        await peer.stream.send_all(framed(b"\x7f\xff\0\0\0\0\0\1\xff\xff"))
        await peer.answer_to(ApiVersionsRequest(), 2, 1)
        assert await peer.closed() == b""
    assert ends == ["half-close", "close"]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        yield one, other


async def test_plain_sockets(pair: tuple[socket.socket, socket.socket]) -> None:
    one, other = pair
    transport = PlainTransport(one)
    buffer = bytearray(4)
    with pytest.raises(BlockingIOError):
        transport.receive_into(memoryview(buffer))
    other.send(b"abcdef")
    assert (transport.receive_into(memoryview(buffer)), bytes(buffer)) == (4, b"abcd")
    assert transport.send(b"back") == 4
    transport.half_close()
    assert (other.recv(9), other.recv(9)) == (b"back", b"")
    other.send(b"g")
    assert transport.receive_into(memoryview(buffer)) == 3, "the other direction is open"
    transport.abort()
    transport.abort()
    assert transport.receive_into(memoryview(buffer)) == 0
    transport.close()
    assert transport.descriptor == -1
    with pytest.raises(OSError):
        transport.send(b"to somebody else")


@pytest.fixture
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A TCP connection: the accepted socket, and the peer's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        peer = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
    with accepted, peer:
        accepted.setblocking(False)
        yield accepted, peer


@pytest.mark.parametrize("end", ["close", "half-close", "reset"])
async def test_a_peer_that_has_gone_is_noticed_without_receiving(
    connected: tuple[socket.socket, socket.socket], end: str
) -> None:
    accepted, peer = connected
    transport = PlainTransport(accepted)
    peer.send(b"not received")
    assert not transport.peer_gone
    if end == "half-close":
        peer.shutdown(socket.SHUT_WR)
    else:
        if end == "reset":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
    await eventually(lambda: transport.peer_gone, "the end of the peer")


async def test_closing_tells_what_waits_on_the_transport(
    connected: tuple[socket.socket, socket.socket],
) -> None:
    transport, told = PlainTransport(connected[0]), []
    with pytest.raises(BlockingIOError):
        while True:
            transport.send(bytes(1 << 16))

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await transport.wait_writable()
        told.append(True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        transport.close()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert told


def test_what_is_accepted_sends_at_once_and_notices_a_peer_that_is_cut_off() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as peer,
    ):
        accepted: list[socket.socket] = []

        def make(sock: socket.socket) -> PlainTransport:
            accepted.append(sock)
            return PlainTransport(sock)

        transport, host, port = accept(listening, make)
        (sock,) = accepted
        with sock:
            assert (host, port) == peer.getsockname()
            assert transport.descriptor == sock.fileno()
            assert not sock.getblocking()
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
