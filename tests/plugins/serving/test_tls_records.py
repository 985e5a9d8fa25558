"""Records of TLS on their way to OpenSSL, for services of plugins."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from leafcuttr.net.tls import server_context
from leafcuttr.net.tls_files import TlsFiles
from leafcuttr.plugins.serving.tls_stream import TlsByteStream
from support.tls_peer import Certificates
from support.tls_records import RecordClient


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[TlsByteStream, RecordClient, socket.socket]]:
    ours = Certificates(folder)
    context = server_context(TlsFiles("", ours.issue("127.0.0.1").file))
    listening = socket.create_server(("127.0.0.1", 0))
    theirs = socket.create_connection(listening.getsockname())
    here, _ = listening.accept()
    listening.close()
    assert context is not None
    transport: Any = trio.SocketStream(trio.socket.from_stdlib_socket(here))
    found = TlsByteStream(transport, context)
    peers: list[RecordClient] = []

    def shake_hands() -> None:
        peers.append(RecordClient(theirs, ours.client()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, shake_hands)
        await found.do_handshake()
    yield found, peers[0], theirs
    theirs.close()
    await trio.aclose_forcefully(transport)


@pytest.mark.parametrize("count", [1, 127, 128, 129, 500])
async def test_many_small_records(tmp_path: Path, count: int) -> None:
    async with served(tmp_path) as (stream, peer, theirs):
        theirs.sendall(b"".join(peer.record(b"%3d" % number) for number in range(count)))
        found = b""
        while len(found) < 3 * count:
            found += await stream.receive_some()
        assert found == b"".join(b"%3d" % number for number in range(count))
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()


async def test_records_in_pieces(tmp_path: Path) -> None:
    """Of a header too; a large record in many pieces is one."""
    wanted = b"abc" + b"x" * 16_384 + b"def"
    found = bytearray()

    async def receive(stream: TlsByteStream) -> None:
        while len(found) < len(wanted):
            found.extend(await stream.receive_some())

    async with served(tmp_path) as (stream, peer, theirs), trio.open_nursery() as nursery:
        nursery.start_soon(receive, stream)
        for data in (b"abc", b"x" * 16_384, b"def"):
            record = peer.record(data)
            for begin, end in ((0, 3), *((at, at + 100) for at in range(3, len(record), 100))):
                theirs.sendall(record[begin:end])
                await wait_all_tasks_blocked(0.002)  # it has been received
            theirs.sendall(peer.key_updates(1))
    assert found == wanted


async def test_a_client_that_sends_no_data(tmp_path: Path) -> None:
    async with served(tmp_path) as (stream, peer, theirs):
        theirs.sendall(peer.key_updates(1000))
        with pytest.raises(trio.BrokenResourceError) as caught:
            await stream.receive_some()
        assert "without data" in str(caught.value) + str(caught.value.__cause__)
        assert len(theirs.recv(1 << 20)) < 250 * 27, "no more than some were answered"


async def test_a_client_that_changes_its_keys_now_and_then(tmp_path: Path) -> None:
    async with served(tmp_path) as (stream, peer, theirs):
        for _ in range(20):
            theirs.sendall(peer.key_updates(60) + peer.record(b"data"))
            assert await stream.receive_some() == b"data"
