"""The stream of a connection keeps trio's contract of streams, by trio's own tests of it."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from leafcuttr.plugins.serving.server import Server
from leafcuttr.plugins.serving.stream import SocketByteStream
from leafcuttr.state.plugged import Plugged
from plugins.serving.conftest import LIMITS, PREFIX, echo

Pair = tuple[SocketByteStream, SocketByteStream]


async def pair() -> Pair:
    server = Server(Plugged(), "greeter", PREFIX, echo, LIMITS, lambda: 10, None, "/s")
    ours = socket.socketpair()
    for sock in ours:
        sock.setblocking(False)
    one, other = (SocketByteStream(server, sock, "") for sock in ours)
    return one, other


async def clogged_pair() -> Pair:
    """Neither takes another byte."""
    streams = await pair()
    for stream in streams:
        try:
            while True:
                stream._socket.send(bytes(65536))
        except BlockingIOError:
            pass
        try:
            while True:
                stream._socket.send(b"x")
        except BlockingIOError:
            pass
    return streams


async def test_it_is_a_stream_of_trio() -> None:
    await trio.testing.check_half_closeable_stream(pair, clogged_pair)


async def test_what_the_system_takes_at_once_is_sent_without_waiting() -> None:
    one, other = await pair()
    assert one.send_now(b"hello") == 5
    assert one.send_now(memoryview(b" world")) == 6
    assert await other.receive_some() == b"hello world"
    assert one.send_now(b"") == 0


async def test_what_the_system_does_not_take_is_left_to_send_all() -> None:
    one, _ = await pair()
    data = bytes(range(256)) * 40_000
    sent = one.send_now(data)
    assert 0 < sent < len(data)
    assert one.send_now(data[sent:]) < len(data) - sent
    clogged, _ = await clogged_pair()
    assert clogged.send_now(b"x") == 0


async def test_nothing_is_sent_at_once_while_another_task_sends() -> None:
    one, other = await clogged_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.send_all, b"the rest")
        await trio.testing.wait_all_tasks_blocked()
        assert other._socket.recv(1_000_000)  # there is room again
        assert one.send_now(b"x") == 0
        nursery.cancel_scope.cancel()


async def test_nothing_is_sent_at_once_after_the_end() -> None:
    one, other = await pair()
    await one.send_eof()
    with pytest.raises(trio.ClosedResourceError):
        one.send_now(b"x")
    one.close()
    with pytest.raises(trio.ClosedResourceError):
        one.send_now(b"x")
    with pytest.raises(trio.BrokenResourceError):
        other.send_now(b"x")


async def test_long_data_is_sent_whole_and_in_its_order() -> None:
    one, other = await pair()
    data = bytes(range(256)) * 40_000
    got = bytearray()

    async def receive() -> None:
        async for piece in other:
            got.extend(piece)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await one.send_all(memoryview(data))
        await one.send_eof()
    assert got == data
    await one.aclose()
    await other.aclose()


async def test_what_is_closed_says_so() -> None:
    one, other = await pair()
    await one.aclose()
    await one.aclose()
    for call in (one.receive_some, one.send_eof, one.wait_send_all_might_not_block):
        with pytest.raises(trio.ClosedResourceError):
            await call()
    with pytest.raises(trio.ClosedResourceError):
        await one.send_all(b"x")
    assert await other.receive_some() == b""
    with pytest.raises(trio.BrokenResourceError, match="the client has gone: Broken pipe"):
        await other.send_all(b"x")
    await other.aclose()


async def test_two_tasks_may_not_do_the_same_at_once() -> None:
    one, other = await clogged_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.send_all, b"x")
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError, match="another task is sending"):
            await one.send_all(b"y")
        nursery.cancel_scope.cancel()
    one, other = await pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(one.receive_some)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError, match="another task is receiving"):
            await one.receive_some()
        nursery.cancel_scope.cancel()
    await other.aclose()
