"""The side of this broker: bytes from one task to another, with an end and a bound."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from leafcuttr_mqtt.bridge.local import _MOST, LISTENER, LocalStream


async def test_bytes_go_both_ways() -> None:
    stream = LocalStream("cloud")
    await stream.to_broker.put(b"abc")
    assert await stream.receive_some(2) == b"ab"
    assert await stream.receive_some() == b"c"
    assert stream.send_now(b"x") == 1
    await stream.send_all(b"yz")
    assert await stream.from_broker.take() == b"xyz"


async def test_who_reads_waits_for_bytes_or_the_end(autojump_clock: trio.testing.MockClock) -> None:
    stream = LocalStream("cloud")
    got: list[bytes] = []

    async def read() -> None:
        got.append(await stream.receive_some())
        got.append(await stream.receive_some())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        assert got == []
        await stream.to_broker.put(b"a")
        await trio.testing.wait_all_tasks_blocked()
        assert got == [b"a"]
        stream.end()
    assert got == [b"a", b""]


async def test_who_sends_waits_while_too_much_waits(autojump_clock: trio.testing.MockClock) -> None:
    stream = LocalStream("cloud")
    data = bytes(_MOST + 10)
    assert stream.send_now(data) == _MOST
    assert stream.send_now(b"x") == 0
    sent = False

    async def send() -> None:
        nonlocal sent
        await stream.send_all(bytes(_MOST) + b"end")
        sent = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        assert not sent
        total = b""
        while len(total) < 2 * _MOST + 3:
            total += await stream.from_broker.take()
        await trio.testing.wait_all_tasks_blocked()
        assert sent
    assert total == bytes(2 * _MOST) + b"end"


async def test_after_the_end_what_was_sent_is_still_read_and_nothing_is_sent() -> None:
    stream = LocalStream("cloud")
    await stream.to_broker.put(b"last")
    stream.end()
    assert await stream.receive_some() == b"last"
    assert await stream.receive_some() == b""
    with pytest.raises(trio.BrokenResourceError):
        stream.send_now(b"x")
    with pytest.raises(trio.BrokenResourceError):
        await stream.send_all(b"x")
    with pytest.raises(trio.BrokenResourceError):
        await stream.to_broker.put(b"x")


async def test_who_waits_to_send_learns_of_the_end(autojump_clock: trio.testing.MockClock) -> None:
    stream = LocalStream("cloud")
    stream.send_now(bytes(_MOST))

    async def send() -> None:
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"x")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        await stream.aclose()


async def test_what_the_broker_sees_of_it() -> None:
    stream = LocalStream("cloud")
    assert str(stream.peer).startswith("bridge cloud")
    assert stream.listener == LISTENER
    assert stream.tls is stream.peer_certificate is stream.peer_certificate_der is None
    assert not stream.busy
    stream.busy = True
    assert stream.busy
    await stream.wait_send_all_might_not_block()
    with pytest.raises(NotImplementedError):
        await stream.send_eof()
