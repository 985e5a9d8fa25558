"""The reactor's rounds over transports that hold received bytes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from support.logs import batch
from support.peer import connect, framed, metadata_request, produce_request, request_bytes, serves
from support.transports import Buffering
from support.waiting import within

Serve = Callable[..., Awaitable[Broker]]


LARGE = {"message.max.bytes": str(4 << 20)}


async def test_a_connection_with_bytes_here_and_there_is_served_once_a_round(serve: Serve) -> None:
    """The socket is readable and something is buffered: still one request is taken at a time, also of those that
    repeat the one before, of which each piece is one here."""
    request = produce_request("t", batch())
    size = len(framed(request_bytes(request, 9)))

    class OneRequestEach(Buffering):
        most_received = size
        most_taken = 3 * size

    broker = await serve(make_transport=OneRequestEach)
    await broker.topics.create("t", 1, {})
    async with await connect(broker) as peer:
        with within(60, "the answers"):
            sent = [framed(request_bytes(request, 9, correlation_id=number)) for number in range(300)]
            await peer.stream.send_all(b"".join(sent))
            for number in range(300):
                answer = await peer.answer_to(request, 9, number)
                part = answer.responses[0].partition_responses[0]
                assert (part.error_code, part.base_offset) == (0, number)


async def test_buffered_bytes_of_many_connections(serve: Serve) -> None:
    """None of them waits for others, and the loop sleeps when all is done."""
    broker = await serve(LARGE, make_transport=Buffering)
    await broker.topics.create("t", 1, {})
    peers = [await connect(broker) for _ in range(50)]
    request = produce_request("t", batch(size=5000))
    with within(60, "the answers"):
        for _ in range(3):
            for peer in peers:
                await peer.send(request, 9)
        for answered in range(3):
            for peer in peers:
                await peer.answer_to(request, 9, answered + 1)
        for peer in peers:
            await peer.stream.aclose()
        async with await connect(broker) as peer:
            assert await serves(peer)
            await trio.testing.wait_all_tasks_blocked(0.05)


@pytest.mark.parametrize("before", [0, 3], ids=["general", "repeated"])
@pytest.mark.parametrize("others", [False, True], ids=["in the reactor", "behind what has to wait"])
async def test_what_is_not_known_to_be_written_is_not_answered(
    before: int, others: bool, serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A write that raises instead of failing is an error of the broker's own: the connection ends without an answer to
    what it has staged, and other connections go on."""
    broker = await serve()
    await broker.topics.create("broken", 1, {})
    await broker.topics.create("sound", 1, {})
    request, version = produce_request("broken", batch()), 9
    broken, write = broker.topics.by_name["broken"].partitions[0].log, Log.write

    def raise_for_one(log: Log) -> PendingWrite:
        if log is broken:
            raise RuntimeError("an error that nobody thought of")
        return write(log)

    async with await connect(broker) as peer, await connect(broker) as other:
        for _ in range(before):
            await peer.ask(request, version)
        monkeypatch.setattr(Log, "write", raise_for_one)
        frames = []
        if others:  # a request for very many topics is read in turns, by the task of the connection
            frames.append(framed(request_bytes(metadata_request(*["x"] * 5000), 9, correlation_id=1)))
        frames.append(framed(request_bytes(request, version, correlation_id=99)))
        await peer.stream.send_all(b"".join(frames))
        sent = await peer.closed()
        assert bool(sent) is others
        assert (99).to_bytes(4, "big") not in sent
        answer = await other.ask(produce_request("sound", batch()), version)
        assert answer.responses[0].partition_responses[0].error_code == 0
    assert "an error that nobody thought of" in caplog.text
