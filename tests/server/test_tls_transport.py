"""TLS between a socket and a connection: all bytes in both directions, whatever the socket takes, and how it ends."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from leafcuttr.net.tls import server_context
from leafcuttr.net.tls_files import TlsFiles
from leafcuttr.server import tls_transport
from leafcuttr.server.tls_transport import TlsTransport
from support.tls_peer import Certificates
from support.tls_records import RecordClient
from support.waiting import eventually, within

SIZES = [1, 100, 16_384, 16_385, 33_000, 300_000, 2_000_000]


class Contexts:
    def __init__(self, folder: Path) -> None:
        self.ours = Certificates(folder)
        server = server_context(TlsFiles("", self.ours.issue("127.0.0.1").file))
        assert server is not None
        self.server = server


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Contexts:
    return Contexts(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def connected(
    contexts: Contexts, version: ssl.TLSVersion | None = None
) -> AsyncIterator[tuple[TlsTransport, trio.SSLStream[trio.SocketStream]]]:
    """A transport and its peer, behind their handshake."""
    listening = socket.create_server(("127.0.0.1", 0))
    theirs = socket.create_connection(listening.getsockname())
    here, _ = listening.accept()
    listening.close()
    here.setblocking(False)
    transport = TlsTransport(here, contexts.server)
    stream = trio.SSLStream(
        trio.SocketStream(trio.socket.from_stdlib_socket(theirs)),
        contexts.ours.client(only=version),
        server_hostname="127.0.0.1",
    )
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.do_handshake)
            await transport.handshake(trio.CapacityLimiter(1))
        yield transport, stream
    finally:
        transport.close()
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.aclose()


async def received(transport: TlsTransport, size: int, at_once: int) -> bytes:
    found, buffer = bytearray(), bytearray(at_once)
    while len(found) < size:
        try:
            count = transport.receive_into(memoryview(buffer))
        except BlockingIOError:
            assert not transport.buffered or len(found) < size
            await trio.lowlevel.wait_readable(transport.descriptor)
            continue
        assert count, "the stream has ended"
        found += buffer[:count]
    return bytes(found)


async def sent(transport: TlsTransport, data: bytes) -> int:
    """As the connection sends: after BlockingIOError the same bytes come again. How often that was."""
    at, blocked = 0, 0
    while at < len(data):
        try:
            at += transport.send(memoryview(data)[at:])
        except BlockingIOError:
            blocked += 1
            await transport.wait_writable()
    return blocked


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("at_once", [7, 16_384, 100_000])
async def test_what_a_peer_sends(contexts: Contexts, version: ssl.TLSVersion, at_once: int) -> None:
    sizes = SIZES[:4] if at_once == 7 else SIZES
    data = random.Random(1).randbytes(sum(sizes))
    async with connected(contexts, version) as (transport, peer), trio.open_nursery() as nursery:

        async def send_all() -> None:
            at = 0
            for size in sizes:
                await peer.send_all(data[at : at + size])
                at += size

        nursery.start_soon(send_all)
        with within(60, "the bytes"):
            assert await received(transport, len(data), at_once) == data


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_sent_to_a_peer(contexts: Contexts, size: int) -> None:
    data = random.Random(2).randbytes(size)
    async with connected(contexts) as (transport, peer), trio.open_nursery() as nursery:
        nursery.start_soon(sent, transport, data)
        found = bytearray()
        with within(60, "the bytes"):
            while len(found) < size:
                found += await peer.receive_some()
        assert found == data


async def test_a_peer_that_takes_little_at_a_time(contexts: Contexts) -> None:
    """What the socket does not take is neither lost nor encrypted twice."""
    data = random.Random(3).randbytes(200_000)
    async with connected(contexts) as (transport, peer):
        transport._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        peer.transport_stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        found = bytearray()

        async def take() -> None:
            while len(found) < len(data):
                found.extend(await peer.receive_some(10_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            with within(60, "the bytes"):
                assert await sent(transport, data)
        assert found == data


async def test_one_send_does_not_take_all_of_a_large_answer(contexts: Contexts) -> None:
    async with connected(contexts) as (transport, _):
        assert transport.send(bytes(10)) == 10
        assert transport.send(bytes(1 << 20)) <= 256 << 10


async def test_bytes_that_are_left_are_told(contexts: Contexts) -> None:
    """No event of the socket comes for them."""
    async with connected(contexts) as (transport, peer):
        await peer.send_all(b"x" * 5000)
        await trio.lowlevel.wait_readable(transport.descriptor)
        buffer = memoryview(bytearray(2000))
        counts = []
        for _ in range(3):
            counts.append(transport.receive_into(buffer))
            left = transport.buffered
            assert bool(left) == (sum(counts) < 5000)
        assert counts == [2000, 2000, 1000]


async def test_records_of_tls_that_are_left_are_told(contexts: Contexts) -> None:
    """Whole ones, of which OpenSSL has decrypted nothing yet."""
    async with connected(contexts) as (transport, peer):
        for _ in range(3):
            await peer.send_all(b"x" * 2000)
        arrived = transport._socket
        await eventually(
            lambda: len(arrived.recv(10_000, socket.MSG_PEEK)) > 6000 or None, "all of the records"
        )
        buffer = memoryview(bytearray(2000))
        for left in (True, True, False):
            assert transport.receive_into(buffer) == 2000
            assert bool(transport.buffered) is left


async def test_a_peer_that_says_that_it_ends(contexts: Contexts) -> None:
    async with connected(contexts) as (transport, peer):
        await sent(transport, b"hello")
        assert await peer.receive_some() == b"hello"
        await peer.send_all(b"last")
        await peer.aclose()
        assert await received(transport, 4, 100) == b"last"
        await trio.lowlevel.wait_readable(transport.descriptor)
        assert transport.receive_into(memoryview(bytearray(10))) == 0


async def test_a_peer_that_just_ends(contexts: Contexts) -> None:
    async with connected(contexts) as (transport, peer):
        await peer.transport_stream.send_eof()
        await trio.lowlevel.wait_readable(transport.descriptor)
        assert transport.receive_into(memoryview(bytearray(10))) == 0


async def test_what_is_no_tls_ends_the_connection(contexts: Contexts) -> None:
    """RFC 8446, 6.2: with an alert."""
    async with connected(contexts) as (transport, peer):
        await peer.transport_stream.send_all(b"\x17\x03\x03\x00\x20" + bytes(32))
        await trio.lowlevel.wait_readable(transport.descriptor)
        with pytest.raises(ssl.SSLError):
            transport.receive_into(memoryview(bytearray(10)))
        with within(60, "the alert"), pytest.raises(trio.BrokenResourceError) as caught:
            await peer.receive_some()
        assert "BAD_RECORD_MAC" in str(caught.value.__cause__)


async def test_the_end_is_said_to_the_peer(contexts: Contexts) -> None:
    """RFC 8446, 6.1: so that it knows that nothing is missing."""
    async with connected(contexts) as (transport, peer):
        await sent(transport, b"last")
        transport.half_close()
        assert await peer.receive_some() == b"last"
        assert await peer.receive_some() == b"", "an end without the alert would be an error"


async def test_the_certificate_of_a_peer(contexts: Contexts) -> None:
    async with connected(contexts) as (transport, _):
        assert transport.peer_certificate is None


async def test_a_peer_that_goes_in_its_handshake(contexts: Contexts) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    transport = TlsTransport(ours, contexts.server)
    theirs.close()
    with pytest.raises(ConnectionResetError):
        await transport.handshake(trio.CapacityLimiter(1))
    transport.close()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("1.3", ["worker", "loop"]),
        ("1.2", ["worker", "worker"]),
        ("another group", ["worker", "worker", "loop"]),
        ("a certificate", ["worker", "worker"]),
    ],
)
async def test_what_may_use_a_key_does_not_hold_the_loop(
    contexts: Contexts, tmp_path: Path, kind: str, expected: list[str]
) -> None:
    """All but the client's Finished in TLS 1.3: a first hello, a second one after a HelloRetryRequest (RFC 8446,
    4.1.4), the client's key of TLS 1.2, its certificate."""
    server = server_context(TlsFiles("", Certificates(tmp_path).issue("127.0.0.1").file))
    assert server is not None
    client = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    if kind == "1.2":
        client.maximum_version = ssl.TLSVersion.TLSv1_2
    elif kind == "another group":
        server.set_ecdh_curve("secp384r1")  # not the one that clients begin with
    elif kind == "a certificate":
        server.verify_mode = ssl.CERT_OPTIONAL
    here, theirs = socket.socketpair()
    here.setblocking(False)
    transport, where = TlsTransport(here, server), []
    loop, step = threading.get_ident(), transport._step

    def seen_step() -> bool:
        where.append("loop" if threading.get_ident() == loop else "worker")
        return step()

    transport._step = seen_step  # type: ignore[method-assign]

    def shake_hands() -> None:
        with client.wrap_socket(theirs, server_hostname="127.0.0.1") as tls:
            tls.sendall(b"served")
            tls.recv(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, shake_hands)
        await transport.handshake(trio.CapacityLimiter(1))
        assert await received(transport, 6, 100) == b"served"
        transport.close()
    assert where == expected


@asynccontextmanager
async def with_records(contexts: Contexts) -> AsyncIterator[tuple[TlsTransport, RecordClient, socket.socket]]:
    """A transport, and a peer that writes its own records."""
    here, theirs = socket.socketpair()
    here.setblocking(False)
    transport = TlsTransport(here, contexts.server)
    peers: list[RecordClient] = []

    def shake_hands() -> None:
        peers.append(RecordClient(theirs, contexts.ours.client()))

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, shake_hands)
            await transport.handshake(trio.CapacityLimiter(1))
        yield transport, peers[0], theirs
    finally:
        transport.close()
        theirs.close()


@pytest.mark.parametrize("room", [100_000, 1_000_000])
@pytest.mark.parametrize("count", [1, 127, 128, 129, 500])
async def test_many_small_records_at_once(contexts: Contexts, count: int, room: int) -> None:
    """OpenSSL gets a few at a time, and what is left is told."""
    async with with_records(contexts) as (transport, peer, theirs):
        theirs.sendall(b"".join(peer.record(b"%3d" % number) for number in range(count)))
        buffer, found, calls = bytearray(room), b"", 0
        while len(found) < 3 * count:
            found += buffer[: transport.receive_into(memoryview(buffer))]
            calls += 1
            assert bool(transport.buffered) is (len(found) < 3 * count)
        assert found == b"".join(b"%3d" % number for number in range(count))
        assert calls == -(-count // 128)


async def test_a_large_request_is_received_in_few_calls(
    contexts: Contexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call receives again as long as there is something and room for it, up to a number of times."""
    # So small that all of it lies in the buffer of a socket.
    monkeypatch.setattr(tls_transport, "_RECEIVE", 20_000)
    monkeypatch.setattr(tls_transport, "_RECEIVES", 3)
    async with with_records(contexts) as (transport, peer, theirs):
        data = random.Random(1).randbytes(96_000)
        theirs.sendall(b"".join(peer.record(data[at : at + 4000]) for at in range(0, len(data), 4000)))
        theirs.close()  # without close_notify, and with something that it has not read
        found, counts = b"", []
        for room in (25_000, 1_000_000, 1_000_000):
            buffer = bytearray(room)
            counts.append(transport.receive_into(memoryview(buffer)))
            found += buffer[: counts[-1]]
        assert found == data
        assert counts == [16_000, 60_000, 20_000]
        with contextlib.suppress(ConnectionResetError):
            assert transport.receive_into(memoryview(buffer)) == 0


async def test_records_that_come_byte_by_byte(contexts: Contexts) -> None:
    async with with_records(contexts) as (transport, peer, theirs):
        buffer, found = bytearray(100), b""
        for byte in peer.record(b"abc") + peer.key_updates(1) + peer.record(b"") + peer.record(b"defg"):
            theirs.sendall(bytes([byte]))
            with contextlib.suppress(BlockingIOError):
                found += buffer[: transport.receive_into(memoryview(buffer))]
            assert not transport.buffered
        assert found == b"abcdefg"
        with pytest.raises(BlockingIOError):
            transport.receive_into(memoryview(buffer))
        theirs.shutdown(socket.SHUT_WR)
        assert transport.receive_into(memoryview(buffer)) == 0


async def test_a_peer_that_sends_no_data(contexts: Contexts) -> None:
    """Changes of keys cost it 27 bytes each, and others the time that they take."""
    async with with_records(contexts) as (transport, peer, theirs):
        theirs.sendall(peer.key_updates(1000))
        with pytest.raises(ConnectionAbortedError, match="without data"):
            transport.receive_into(memoryview(bytearray(65536)))
        assert transport._out.pending < 150 * 27


async def test_a_peer_that_changes_its_keys_now_and_then(contexts: Contexts) -> None:
    async with with_records(contexts) as (transport, peer, theirs):
        buffer, found = bytearray(65536), 0
        for _ in range(50):
            theirs.sendall(peer.key_updates(60) + peer.record(b"data"))
            found += transport.receive_into(memoryview(buffer))
            theirs.recv(65536)
        assert found == 200


async def test_a_peer_that_does_not_read_what_follows_from_its_new_keys(contexts: Contexts) -> None:
    async with with_records(contexts) as (transport, peer, theirs):
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        sent, data = 0, memoryview(bytearray(1 << 20))
        with contextlib.suppress(BlockingIOError):
            while True:
                sent += transport.send(data)
        rounds = 0
        with pytest.raises(ConnectionAbortedError, match="does not read"):
            for rounds in range(1000):  # noqa: B007
                theirs.sendall(peer.key_updates(30) + peer.record(b"data"))
                transport.receive_into(memoryview(bytearray(100)))
        assert 16_384 // 27 // 30 <= rounds < 30


async def test_a_handshake_in_very_many_records(contexts: Contexts) -> None:
    """Of one byte each, which RFC 8446, 5.1 allows: what has come already is not waited for."""
    here, theirs = socket.socketpair()
    here.setblocking(False)
    transport = TlsTransport(here, contexts.server)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = contexts.ours.client().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()[5:]
    theirs.sendall(b"".join(b"\x16\x03\x01\x00\x01" + bytes([byte]) for byte in hello))

    def answer() -> None:
        incoming.write(theirs.recv(65536))
        client.do_handshake()
        theirs.sendall(outgoing.read())

    with within(60, "the handshake"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, answer)
            await transport.handshake(trio.CapacityLimiter(1))
    transport.close()
    theirs.close()
