"""The bytes of a connection: many pieces, and pieces that a socket does not take at once."""

from __future__ import annotations

import socket

import trio

from leafcuttr.client.protocol import Piece
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.client.streams import PlainBytes, open_stream


async def sent(pieces: list[Piece]) -> bytes:
    """What the other side gets."""
    ours, theirs = trio.socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    got = bytearray()

    async def receive() -> None:
        while data := await theirs.recv(10_000):
            got.extend(data)

    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            stream = PlainBytes(ours)
            await stream.send(pieces)
            stream.close()
    return bytes(got)


async def test_many_pieces_of_any_size() -> None:
    pieces: list[Piece] = [b"", b"a", memoryview(b"bc" * 100_000), bytearray(b"d" * 70_000), b""]
    assert await sent(pieces) == b"".join(pieces)
    many: list[Piece] = [bytes([number % 256]) * (number % 7) for number in range(3000)]
    assert await sent(many) == b"".join(many)
    assert await sent([]) == b""
    assert await sent([b"", b""]) == b""


async def test_it_receives_into_the_memory_that_it_is_given() -> None:
    ours, theirs = trio.socket.socketpair()
    with theirs:
        stream = PlainBytes(ours)
        await theirs.send(b"hello")
        memory = bytearray(10)
        assert await stream.receive_into(memoryview(memory)[2:]) == 5
        assert memory == b"\0\0hello\0\0\0"
        theirs.shutdown(socket.SHUT_WR)
        assert await stream.receive_into(memoryview(memory)) == 0
        stream.close()


async def test_sizes_of_buffers() -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    address = HostPort("127.0.0.1", listeners[0].socket.getsockname()[1])
    usual = await open_stream(address, ClientSettings(bootstrap=(address,)))
    small = await open_stream(
        address, ClientSettings(bootstrap=(address,), send_buffer_bytes=20_000, receive_buffer_bytes=30_000)
    )
    assert isinstance(usual, PlainBytes)
    assert isinstance(small, PlainBytes)
    # Linux doubles what it is given.
    assert small._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 40_000
    assert small._socket.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 60_000
    assert usual._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) > 40_000
    for stream in (usual, small):
        stream.close()
    await listeners[0].aclose()
