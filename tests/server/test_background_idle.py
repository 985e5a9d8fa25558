"""A connection is idle when nothing arrives and nothing leaves; time is trio's, and stands until a test moves it.

What leaves is what the peer's kernel has acknowledged, which may come some milliseconds late: each test waits for it.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.server.transport import PlainTransport
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from support.logs import batch
from support.peer import Peer, connect, fetch_request, metadata_request, produce_request, serves

Serve = Callable[..., Awaitable[Broker]]
IDLE_S = 1.5
SETTINGS = {
    "connections.max.idle.ms": "1500",
    "message.max.bytes": str(2 << 20),
    "socket.send.buffer.bytes": "65536",  # else all of an answer would be the kernel's at once
}
WIDE = 200
SMALL = 12_000  # so little of a partition is copied, not sent from the file
SIZE = WIDE * SMALL
STEPS = 8


async def pass_time(clock: MockClock, seconds: float) -> None:
    """In steps that the sweeper does not take for a process that stood still."""
    for _ in range(round(seconds / 0.1)):
        clock.jump(0.1)
        await wait_all_tasks_blocked()


@pytest.fixture
def transports() -> list[PlainTransport]:
    """Those of all connections, by `noted`."""
    return []


def noted(transports: list[PlainTransport], sock: socket.socket) -> PlainTransport:
    transports.append(PlainTransport(sock))
    return transports[-1]


async def more_than(acknowledged: int, transport: PlainTransport, caplog: pytest.LogCaptureFixture) -> int:
    """Wait until the peer's kernel has acknowledged more bytes than that; how many. No connection is closed as idle
    meanwhile."""
    while (found := transport.acknowledged) <= acknowledged:
        assert not idle(caplog)
        await trio.sleep(0)
    return found


def idle(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if "idle connection from" in line]


async def until_cut(clock: MockClock, caplog: pytest.LogCaptureFixture, peer: Peer) -> None:
    name = "{}:{}".format(*peer.stream.socket.getsockname()[:2])
    for _ in range(600):
        if any(name in line for line in idle(caplog)):
            return
        await pass_time(clock, 0.1)
    raise AssertionError("it is not closed")


async def with_a_long_answer(broker: Broker, kind: str) -> Peer:
    """A peer that has requested many megabytes and has read nothing."""
    await broker.topics.create("t", 1, {})
    await broker.topics.create("wide", WIDE, {})
    peer = await connect(broker)
    peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    if kind == "records, by sendfile":
        for _ in range(3):
            await peer.ask(produce_request("t", batch(size=1 << 20)), 9)
        await peer.send(fetch_request("t", 0, max_bytes=2 * SIZE), 12)
        return peer
    for partition in range(WIDE):
        await peer.ask(produce_request("wide", batch(size=SMALL), partition=partition), 9)
    every = [
        FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=2 * SMALL)
        for partition in range(WIDE)
    ]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=2 * SIZE, topics=[FetchTopic(topic="wide", partitions=every)]
    )
    await peer.send(request, 12)
    return peer


KINDS = pytest.mark.parametrize("kind", ["records, by sendfile", "answers, from memory"])


@KINDS
async def test_a_peer_that_reads_slowly_is_not_idle(
    serve: Serve,
    mock_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    transports: list[PlainTransport],
    kind: str,
) -> None:
    """It reads half of its answer in several times as long as a connection may be idle, and then nothing more."""
    caplog.set_level(logging.INFO)
    broker = await serve(SETTINGS, make_transport=lambda sock: noted(transports, sock))
    async with await with_a_long_answer(broker, kind) as peer:
        (transport,) = transports
        acknowledged = got = 0
        for step in range(1, STEPS + 1):
            while got < step * SIZE // (2 * STEPS):
                data = await peer.stream.receive_some(64 * 1024)
                assert data, f"closed as idle after {got} bytes"
                got += len(data)
            acknowledged = await more_than(acknowledged, transport, caplog)
            await pass_time(mock_clock, IDLE_S / 2)
        assert not idle(caplog)
        await until_cut(mock_clock, caplog, peer)
        assert got + len(await peer.closed()) < SIZE


@KINDS
async def test_a_peer_that_reads_nothing_is_idle(
    serve: Serve, mock_clock: MockClock, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    caplog.set_level(logging.INFO)
    broker = await serve(SETTINGS)
    async with await with_a_long_answer(broker, kind) as peer:
        await until_cut(mock_clock, caplog, peer)
        assert len(await peer.closed()) < SIZE


async def test_after_a_long_wait_idleness_begins_anew(
    serve: Serve, mock_clock: MockClock, caplog: pytest.LogCaptureFixture, transports: list[PlainTransport]
) -> None:
    caplog.set_level(logging.INFO)
    broker = await serve(SETTINGS, make_transport=lambda sock: noted(transports, sock))
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        poll = fetch_request("t", 0, max_wait_ms=5000)
        number = await peer.send(poll, 12)
        while not broker.delayed_requests:
            await trio.sleep(0)
        before = transports[0].acknowledged
        await pass_time(mock_clock, 5.1)
        await peer.answer_to(poll, 12, number)
        await more_than(before, transports[0], caplog)
        await pass_time(mock_clock, IDLE_S / 2)
        assert await serves(peer)
        await until_cut(mock_clock, caplog, peer)


@pytest.mark.setting("connections.max.idle.ms")
async def test_idle_connections_are_closed_and_waiting_ones_are_not(serve: Serve) -> None:
    broker = await serve({"connections.max.idle.ms": "500"})
    async with await connect(broker) as idle, await connect(broker) as half, await connect(broker) as polling:
        await polling.ask(metadata_request("t"), 12)
        poll = fetch_request("t", 0, max_wait_ms=1500)
        number = await polling.send(poll, 12)
        await half.stream.send_all(b"\0\0")
        assert await idle.closed() == b""
        assert await half.closed() == b""
        await polling.answer_to(poll, 12, number)
