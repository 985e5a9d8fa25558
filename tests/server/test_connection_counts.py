"""What the data path counts: requests, errors, records and bytes, whichever way a request takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import ApiKey
from support.logs import batch
from support.peer import connect, fetch_request, metadata_request, produce_request
from support.waiting import eventually

Serve = Callable[..., Awaitable[Broker]]


async def test_produce_is_counted_on_every_way(serve: Serve) -> None:
    """The first requests go the general way, later ones the short way (`server.repeated_produce`)."""
    broker = await serve()
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        for _ in range(10):
            answer = await peer.ask(produce_request("t", batch(3)), 9)
            assert not answer.responses[0].partition_responses[0].error_code
        unknown = await peer.ask(produce_request("nowhere", batch(1)), 9)
        assert unknown.responses[0].partition_responses[0].error_code
    log = broker.topics.by_name["t"].partitions[0].log
    assert (log.records_in, log.bytes_in) == (30, 10 * len(batch(3)))
    times = broker.counts.answered[ApiKey.PRODUCE]
    assert times.count == 11
    assert times.seconds > 0
    assert broker.counts.answered[ApiKey.METADATA].count == 1
    assert broker.counts.errors == {(ApiKey.PRODUCE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): 1}


async def test_requests_without_an_answer(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        for _ in range(3):
            await peer.send(produce_request("t", batch(1), acks=0), 9)
        await eventually(lambda: broker.counts.unanswered.get(ApiKey.PRODUCE) == 3, "all three")
    assert not broker.counts.answered[ApiKey.PRODUCE].count


async def test_what_is_read_is_counted_once_by_bytes_and_offsets(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as peer:
        await peer.ask(metadata_request("t"), 12)
        for _ in range(4):
            await peer.ask(produce_request("t", batch(5)), 9)
        log = broker.topics.by_name["t"].partitions[0].log
        await peer.ask(fetch_request("t", 7), 11)  # in the middle of the second batch, which comes whole
        assert (log.records_out, log.bytes_out) == (13, 3 * len(batch(5)))
        await peer.ask(fetch_request("t", 20, max_wait_ms=1), 11)
        await peer.ask(fetch_request("t", 99), 11)
        assert (log.records_out, log.bytes_out) == (13, 3 * len(batch(5)))
    assert broker.counts.answered[ApiKey.FETCH].count == 3
    assert broker.counts.errors == {(ApiKey.FETCH, ErrorCode.OFFSET_OUT_OF_RANGE): 1}


async def test_a_fetch_that_waits_for_more_counts_only_its_answer(serve: Serve) -> None:
    broker = await serve()
    async with await connect(broker) as peer, await connect(broker) as producer:
        await peer.ask(metadata_request("t"), 12)
        await producer.ask(produce_request("t", batch(1)), 9)
        request = fetch_request("t", 0, max_wait_ms=60_000)
        object.__setattr__(request, "min_bytes", 2 * len(batch(1)))
        asked = await peer.send(request, 11)
        log = broker.topics.by_name["t"].partitions[0].log
        await eventually(lambda: bool(log.waiters), "the fetch to wait")
        assert log.bytes_out == 0
        await producer.ask(produce_request("t", batch(1)), 9)
        await peer.answer_to(request, 11, asked)
        assert (log.records_out, log.bytes_out) == (2, 2 * len(batch(1)))
