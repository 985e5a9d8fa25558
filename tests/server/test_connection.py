"""What a connection does with requests: order, pieces, sizes, and what it refuses."""

from __future__ import annotations

import logging
import struct
from collections.abc import Awaitable, Callable

import pytest
import trio

from leafcuttr.state.broker import Broker
from leafcuttr.wire.codec import decode
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from support.logs import batch
from support.peer import (
    connect,
    fetch_request,
    framed,
    join_request,
    metadata_request,
    produce_request,
    request_bytes,
    serves,
)

Serve = Callable[..., Awaitable[Broker]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What the broker has logged, warnings and worse."""
    monkeypatch.setattr(logging.getLogger("leafcuttr"), "propagate", True)
    return lambda: [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


async def test_pipelined_requests_are_answered_in_order(serve: Serve) -> None:
    async with await connect(await serve()) as peer:
        await peer.ask(metadata_request("t"), 12)
        sent = []
        for number in range(40):
            for request, version in (
                (produce_request("t", batch(3)), 9),
                (fetch_request("t", number * 3), 12),
                (metadata_request("t"), 12),
                (ApiVersionsRequest(), 2),
            ):
                sent.append((request, version, await peer.send(request, version)))
        answers = [await peer.answer_to(*each) for each in sent]
        offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers[::4]]
        assert offsets == list(range(0, 120, 3))
        for number, answer in enumerate(answers[1::4]):
            part = answer.responses[0].partitions[0]
            assert part.high_watermark >= 3 * (number + 1), "a fetch sees what was produced before it"
            assert len(part.records) >= len(batch(3))


async def test_answers_of_one_packet_keep_their_order_around_a_wait(serve: Serve) -> None:
    """A long poll holds back what comes behind it on its connection, and nobody else."""
    broker = await serve()
    async with await connect(broker) as peer, await connect(broker) as other:
        await peer.ask(metadata_request("t"), 12)
        poll, late = fetch_request("t", 0, max_wait_ms=60_000), metadata_request("t")
        numbers = [await peer.send(poll, 12), await peer.send(late, 12)]
        assert await serves(other)
        await other.ask(produce_request("t", batch()), 9)
        answer = await peer.answer_to(poll, 12, numbers[0])
        assert answer.responses[0].partitions[0].records
        await peer.answer_to(late, 12, numbers[1])


async def test_a_request_that_arrives_a_byte_at_a_time(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as slow, await connect(broker) as other:
        for byte in framed(request_bytes(ApiVersionsRequest(), 0, correlation_id=7)):
            await slow.stream.send_all(bytes([byte]))
            assert await serves(other)
        assert (await slow.frame())[:4] == b"\0\0\0\7"


async def test_a_very_large_request_and_answer(serve: Serve) -> None:
    broker = await serve({"message.max.bytes": str(20 << 20)})
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        records = batch(10, size=1 << 20)
        answer = await peer.ask(produce_request("t", records), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        answer = await peer.ask(fetch_request("t", 0, max_bytes=20 << 20), 12)
        assert bytes(answer.responses[0].partitions[0].records)[61:] == bytes(records)[61:]


async def test_an_api_versions_from_the_future_is_answered_in_version_0(serve: Serve) -> None:
    async with await connect(await serve()) as peer:
        body = request_bytes(ApiVersionsRequest(), 4, correlation_id=5)
        for version in (6, 99, 32767):
            await peer.stream.send_all(framed(body[:2] + struct.pack(">h", version) + body[4:]))
            frame = await peer.frame()
            answer = decode(ApiVersionsResponse, 0, frame[4:])
            assert (frame[:4], answer.error_code) == (b"\0\0\0\5", 35)
        assert await serves(peer)


@pytest.mark.parametrize(
    ("key", "version"), [(0, 0), (0, 1), (0, 2), (0, 99), (3, -1), (4, 0), (77, 0), (-1, 0), (32767, 1)]
)
async def test_unsupported_versions_close_the_connection_with_one_line(
    serve: Serve, lines: Callable[[], list[str]], key: int, version: int
) -> None:
    broker = await serve()
    async with await connect(broker) as peer, await connect(broker) as other:
        await peer.stream.send_all(framed(struct.pack(">hhih", key, version, 1, -1) + bytes(20)))
        assert await peer.closed() == b""
        assert await serves(other)
    (line,) = lines()
    assert "is not supported" in line and "127.0.0.1" in line


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (framed(b""), "no header"),
        (framed(b"\0\x12\0"), "no header"),
        (framed(struct.pack(">hhih", 3, 12, 1, 30000) + b"x"), "client_id"),
        (framed(request_bytes(metadata_request("t"), 12)[:-4]), "MetadataRequest"),
        (framed(struct.pack(">hhih", 3, 1, 1, -1) + b"\x7f\xff\xff\xff"), "MetadataRequest.topics"),
        (b"\x7f\xff\xff\xff", "socket.request.max.bytes"),
        (b"\xff\xff\xff\xff", "socket.request.max.bytes"),
    ],
)
async def test_what_cannot_be_read_closes_the_connection_with_one_line(
    serve: Serve, lines: Callable[[], list[str]], frame: bytes, words: str
) -> None:
    broker = await serve()
    async with await connect(broker) as peer, await connect(broker) as other:
        await peer.stream.send_all(frame)
        assert await peer.closed() == b""
        assert await serves(other)
    (line,) = lines()
    assert words in line


async def test_what_came_before_a_bad_request_is_done_and_answered(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as peer, await connect(broker) as other:
        await peer.ask(metadata_request("t"), 12)
        good = request_bytes(produce_request("t", batch(2)), 9, correlation_id=50)
        also = request_bytes(ApiVersionsRequest(), 0, correlation_id=51)
        for first, answers in (([good], 1), ([good, also], 2), ([also, good], 2)):
            async with await connect(broker) as rude:
                await rude.stream.send_all(b"".join(map(framed, first)) + framed(b"\0"))
                got = await rude.closed()
                frames = 0
                while got:
                    got = got[4 + int.from_bytes(got[:4], "big") :]
                    frames += 1
                assert frames == answers
        fetched = await other.ask(fetch_request("t", 0), 12)
        assert fetched.responses[0].partitions[0].high_watermark == 6


async def test_a_limit_on_the_size_of_requests(serve: Serve, lines: Callable[[], list[str]]) -> None:
    broker = await serve({"socket.request.max.bytes": "1000"})
    async with await connect(broker) as peer:
        assert await serves(peer)
        await peer.stream.send_all((1001).to_bytes(4, "big"))
        assert await peer.closed() == b""
    (line,) = lines()
    assert "1001 bytes" in line


async def test_acks_0_has_no_answer_and_an_error_closes_the_connection(
    serve: Serve, lines: Callable[[], list[str]]
) -> None:
    broker = await serve()
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        await peer.send(produce_request("t", batch(), acks=0), 9)
        after = await peer.ask(fetch_request("t", 0), 12)
        assert after.responses[0].partitions[0].high_watermark == 1
        await peer.send(produce_request("no such\ntopic", batch(), acks=0), 9)
        assert await peer.closed() == b""
    (line,) = lines()
    assert "acks=0" in line and "UNKNOWN_TOPIC_OR_PARTITION" in line


async def test_a_peer_that_does_not_read_delays_nobody_else(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as deaf, await connect(broker) as other:
        await other.ask(metadata_request("t"), 12)
        for _ in range(40):
            await other.ask(produce_request("t", batch(1, size=100_000)), 9)
        request = framed(request_bytes(fetch_request("t", 0, max_bytes=50 << 20), 12))
        with trio.move_on_after(0.5):
            while True:
                await deaf.stream.send_all(request * 100)
        assert await serves(other)


async def test_members_of_a_group_may_wait_long(serve: Serve) -> None:
    """A JoinGroup that waits for others holds its connection only."""
    broker = await serve({"group.initial.rebalance.delay.ms": "600000"})
    async with await connect(broker) as member, await connect(broker) as other:
        await member.send(join_request("g"), 1)
        assert await serves(other)


async def test_a_peer_that_leaves_its_long_poll_is_noticed(serve: Serve) -> None:
    broker = await serve({"connections.max.idle.ms": "200"})
    async with await connect(broker) as peer, await connect(broker) as other:
        await other.ask(metadata_request("t"), 12)
        await peer.send(fetch_request("t", 0, max_wait_ms=2**31 - 1), 12)
        while not broker.delayed_requests:
            await serves(other)
        await peer.stream.aclose()
        while broker.delayed_requests:
            await serves(other)
