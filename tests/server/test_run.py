"""The stop: what is in flight is answered, nobody holds it up, and what was acknowledged is there again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from support.broker_process import start_broker
from support.logs import batch
from support.peer import (
    Peer,
    connect,
    fetch_request,
    framed,
    join_request,
    metadata_request,
    produce_request,
    request_bytes,
    serves,
)
from support.tls_peer import Certificates

Serve = Callable[..., Awaitable[Broker]]


async def test_a_long_poll_is_answered_at_once(serve: Serve) -> None:
    stop = trio.Event()
    broker = await serve(stop=stop)
    async with await connect(broker) as peer, await connect(broker) as idle:
        await idle.ask(metadata_request("t"), 12)
        poll = fetch_request("t", 0, max_wait_ms=600_000)
        # Two behind each other: the second must not wait its time either.
        numbers = [await peer.send(poll, 12) for _ in range(2)]
        while not broker.delayed_requests:
            assert await serves(idle)
        stop.set()
        answer = await peer.answer_to(poll, 12, numbers[0])
        assert answer.responses[0].partitions[0].error_code == 0
        await peer.closed()
        assert await idle.closed() == b""


async def test_a_member_that_waits_for_its_group_is_answered(serve: Serve) -> None:
    stop = trio.Event()
    broker = await serve({"group.initial.rebalance.delay.ms": "600000"}, stop=stop)
    async with await connect(broker) as peer:
        join = join_request("g")
        number = await peer.send(join, 1)
        async with await connect(broker) as other:
            while not broker.delayed_requests:
                assert await serves(other)
        stop.set()
        answer = await peer.answer_to(join, 1, number)
        assert answer.error_code == 16, "NOT_COORDINATOR: the client looks for it again"
        assert await peer.closed() == b""


async def test_what_has_arrived_is_written_and_answered(serve: Serve) -> None:
    stop, ended = trio.Event(), trio.Event()
    broker = await serve(stop=stop, ended=ended)
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        # The kernel has taken the requests when send returns, and the broker's tasks have not run since.
        sent = framed(request_bytes(produce_request("t", batch(5)), 9, correlation_id=9))
        sent += framed(request_bytes(ApiVersionsRequest(), 0, correlation_id=10))
        assert await peer.stream.socket.send(sent) == len(sent)
        stop.set()
        assert (await peer.frame())[:4] == b"\0\0\0\x09"
        assert (await peer.frame())[:4] == b"\0\0\0\x0a"
        assert await peer.closed() == b""
    await ended.wait()
    broker = await serve()
    async with await connect(broker) as peer:
        answer = await peer.ask(fetch_request("t", 0), 12)
        assert answer.responses[0].partitions[0].high_watermark == 5


async def test_a_stopping_broker_takes_no_new_connection(serve: Serve) -> None:
    stop = trio.Event()
    broker = await serve(stop=stop)
    async with await connect(broker) as deaf:
        await deaf.ask(metadata_request("t"), 12)
        stop.set()
        await deaf.closed()
        with pytest.raises(OSError, match="connect"):
            await connect(broker)


@pytest.mark.long
def test_a_stop_with_1000_partitions_and_a_peer_that_does_not_read(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Exit status 0 within five seconds (of a machine that is not busy with other tests), whatever peers do; everything
    acknowledged is there afterwards."""
    process = start_broker(tmp_path)

    async def fill() -> tuple[Peer, Peer]:
        peer = Peer(await trio.open_tcp_stream("127.0.0.1", process.port))
        topics = [
            CreatableTopic(name=f"t{number}", num_partitions=100, replication_factor=1)
            for number in range(10)
        ]
        answer = await peer.ask(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 5)
        assert {each.error_code for each in answer.topics} == {0}
        for number in range(1000):
            await peer.send(produce_request(f"t{number // 100}", batch(2), partition=number % 100), 9)
        for number in range(1000):
            await peer.answer_to(produce_request("", b""), 9, number + 2)
        deaf = Peer(await trio.open_tcp_stream("127.0.0.1", process.port))
        request = framed(request_bytes(metadata_request(), 12))
        with trio.move_on_after(0.3):
            while True:
                await deaf.stream.send_all(request * 50)
        waits = Peer(await trio.open_tcp_stream("127.0.0.1", process.port))
        await waits.send(fetch_request("t0", 2, max_wait_ms=2**31 - 1), 12)
        return deaf, waits

    async def run() -> tuple[int, float]:
        peers = await fill()
        began = time.monotonic()
        status = await trio.to_thread.run_sync(process.stop)
        took = time.monotonic() - began
        for peer in peers:
            await peer.stream.aclose()
        return status, took

    status, took = trio.run(run)
    print(f"stopped in {took:.2f} s")
    assert status == 0, process.log[-2000:]
    assert "Traceback" not in process.log
    assert took < (5 if request.config.getoption("--long") else 30)


@pytest.mark.timeout(60)
async def test_a_handshake_does_not_hold_it_up(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leafcuttr.server.run._GRACE_S", 600)
    monkeypatch.setattr("leafcuttr.server.handshakes.HANDSHAKE_S", 600)
    stop = trio.Event()
    listeners = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
    file = Certificates(tmp_path).issue("127.0.0.1").file
    broker = await serve({"listeners": listeners, "ssl.keystore.location": file}, stop=stop)
    silent = await trio.open_tcp_stream("127.0.0.1", broker.listeners[1].port)
    async with await connect(broker) as peer:
        assert await serves(peer)
    await trio.testing.wait_all_tasks_blocked(0.05)
    stop.set()
    with pytest.raises(trio.BrokenResourceError):  # reset or ended, but at once
        while True:
            if not await silent.receive_some():
                raise trio.BrokenResourceError
