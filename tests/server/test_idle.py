"""What idleness is: nothing arrives, and nothing leaves. Kernels' buffers are part of it, so the time is real; each
reader takes several times as long for its answer as a connection may be idle."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable

import pytest
import trio

from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from support.logs import batch
from support.peer import (
    Peer,
    connect,
    fetch_request,
    metadata_request,
    produce_request,
    serves,
)

Serve = Callable[..., Awaitable[Broker]]
IDLE_MS = 1500
SECONDS = 5.0
"""For an answer."""
WIDE = 200
SMALL = 12_000  # so little of a partition is copied, not sent from the file
SIZE = WIDE * SMALL


def settings(idle_ms: int) -> dict[str, str]:
    return {
        "connections.max.idle.ms": str(idle_ms),
        "message.max.bytes": str(2 << 20),
        "socket.send.buffer.bytes": "65536",  # else all of an answer would be the kernel's at once
    }


async def with_a_long_answer(broker: Broker, kind: str) -> tuple[Peer, int]:
    """A peer that has asked for many megabytes and has read nothing, and how many there are."""
    peer = await connect(broker)
    peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
    if kind == "records, by sendfile":
        for _ in range(3):
            await peer.ask(produce_request("t", batch(size=1 << 20)), 9)
        await peer.send(fetch_request("t", 0, max_bytes=2 * SIZE), 12)
        return peer, SIZE
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
    return peer, SIZE


KINDS = ("records, by sendfile", "answers, from memory")


@pytest.mark.parametrize("kind", KINDS)
async def test_who_reads_steadily_is_not_idle(serve: Serve, kind: str) -> None:
    broker = await serve(settings(IDLE_MS))
    await broker.topics.create("t", 1, {})
    await broker.topics.create("wide", WIDE, {})
    peer, size = await with_a_long_answer(broker, kind)
    async with peer:
        began, got = trio.current_time(), 0
        with trio.fail_after(60):
            while got < size:
                # As much as is due by now, so that a machine that is busy does not make it slower.
                due = (trio.current_time() - began) / SECONDS * size
                while got < min(due, size):
                    data = await peer.stream.receive_some(64 * 1024)
                    assert data, f"closed as idle after {got} of {size} bytes"
                    got += len(data)
                await trio.sleep(0.02)
        assert trio.current_time() - began > 2 * IDLE_MS / 1000
        assert await peer.closed() is not None, "idle from now on"


@pytest.mark.parametrize("kind", KINDS)
async def test_who_reads_nothing_is_idle(serve: Serve, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    broker = await serve(settings(300))
    await broker.topics.create("t", 1, {})
    await broker.topics.create("wide", WIDE, {})
    with caplog.at_level(logging.INFO):
        peer, size = await with_a_long_answer(broker, kind)
        async with peer:
            name = "{}:{}".format(*peer.stream.socket.getsockname()[:2])
            with trio.fail_after(60):
                while not any(f"idle connection from {name}" in line for line in caplog.messages):
                    await trio.sleep(0.05)
            assert len(await peer.closed()) < size


async def test_after_a_long_wait_idleness_begins_anew(serve: Serve) -> None:
    broker = await serve({"connections.max.idle.ms": "3000"})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        poll = fetch_request("t", 0, max_wait_ms=5000)
        await peer.ask(poll, 12)
        await trio.sleep(1.5)  # two looks of the sweeper
        assert await serves(peer)
