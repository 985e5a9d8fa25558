"""Produce: what is refused for every partition of a request, and what for one."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.batch import ATTRIBUTES_AT, CRC_AT, LENGTH_AT, LOG_OVERHEAD
from leafcuttr.wire.checksum import crc32c
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append

NOW = 1_700_000_000_000
GARBAGE = b"\xff" * 80
CORRUPT = ErrorCode.CORRUPT_MESSAGE
UNAUTHORIZED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
NONE = ErrorCode.NONE


def records(*, transactional: bool = False) -> bytes:
    producer: dict[str, Any] = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    given = producer | {"transactional": True} if transactional else {}
    return bytes(encode_batch([Record(0, NOW, None, b"x")], **given))


GOOD, TRANSACTIONAL = records(), records(transactional=True)


async def produce(
    ask: Any, batches: Sequence[bytes], version: int = 9, **more: Any
) -> list[tuple[ErrorCode, str | None]]:
    parts = [PartitionProduceData(index=at, records=one) for at, one in enumerate(batches)]
    data = [TopicProduceData(name="t", partition_data=parts)]
    answer = await ask(ProduceRequest(**{"acks": -1, "topic_data": data, **more}), version)
    return [
        (ErrorCode(part.error_code), part.error_message) for part in answer.responses[0].partition_responses
    ]


@pytest.mark.parametrize("acks", [-1, 1, 2])
async def test_bytes_that_begin_no_batch_refuse_the_request(broker: Broker, ask: Any, acks: int) -> None:
    topic = await broker.topics.create("t", 3, {})
    why = "Record size -1 is less than the minimum record overhead (14)"
    for batches in ((GOOD, GARBAGE), (GARBAGE, TRANSACTIONAL), (GOOD, GARBAGE[:14])):
        assert await produce(ask, batches, acks=acks) == [(CORRUPT, why)] * 2
    magic = bytearray(GOOD)
    magic[16] = 0x80
    assert await produce(ask, (bytes(magic),), acks=acks) == [
        (CORRUPT, "Invalid magic found in record: -128")
    ]
    assert [part.log.log_end_offset for part in topic.partitions] == [0, 0, 0]


async def test_a_batch_that_is_cut_off_is_no_transactional_one(broker: Broker, ask: Any) -> None:
    await broker.topics.create("t", 2, {})
    assert await produce(ask, (GOOD, TRANSACTIONAL)) == [(UNAUTHORIZED, None)] * 2
    assert await produce(ask, (TRANSACTIONAL, GARBAGE)) == [(UNAUTHORIZED, None)] * 2
    cut_off = await produce(ask, (GOOD, TRANSACTIONAL[:-1]))
    assert cut_off == [(NONE, None), (ErrorCode.INVALID_RECORD, None)]


async def test_behind_a_transactional_batch_each_partition_has_its_own_error(
    broker: Broker, ask: Any
) -> None:
    await broker.topics.create("t", 3, {})
    answers = await produce(ask, (TRANSACTIONAL, GARBAGE, GOOD), transactional_id="never seen")
    assert answers == [(ErrorCode.INVALID_PRODUCER_ID_MAPPING, None), (CORRUPT, None), (NONE, None)]


@pytest.mark.parametrize("version", [8, 11, 12])
async def test_while_the_coordinator_loads_producers_come_again(
    open_test_broker: Callable[..., Broker], ask_of: Callable[[Broker], Any], version: int
) -> None:
    broker = open_test_broker()
    await broker.topics.create("t", 1, {})
    state = await broker.topics.create("__transaction_state", 1, {})
    append(state.partitions[0].log, GOOD)
    broker = open_test_broker()  # restarted, and its coordinator not running yet
    answers = await produce(ask_of(broker), (TRANSACTIONAL,), version, transactional_id="x")
    why = "Unable to verify the partition has been added to the transaction. Underlying error: "
    assert answers == [(ErrorCode.NOT_ENOUGH_REPLICAS, f"{why}COORDINATOR_LOAD_IN_PROGRESS")]


@pytest.mark.parametrize("sound", [True, False])
async def test_others_have_their_turn_while_very_many_records_are_stepped_over(
    broker: Broker, ask: Any, sound: bool
) -> None:
    """20,000 records take milliseconds: not a hundred batches of them in one piece, whether they are taken or not."""
    topic = await broker.topics.create("t", 12, {})
    whole = encode_batch([Record(at, NOW, None, b"x" * (at % 2)) for at in range(9_000)])
    if not sound:
        whole += b"junk"
        whole[LENGTH_AT:LOG_OVERHEAD] = (len(whole) - LOG_OVERHEAD).to_bytes(4, "big")
        whole[CRC_AT:ATTRIBUTES_AT] = crc32c(memoryview(whole)[ATTRIBUTES_AT:]).to_bytes(4, "big")
    turns = 0
    begun, done = trio.Event(), trio.Event()

    async def others() -> None:
        nonlocal turns
        begun.set()
        while not done.is_set():
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        await begun.wait()
        turns = 0
        answers = await produce(ask, [bytes(whole)] * 12)
        done.set()
    assert [code for code, _ in answers] == [NONE if sound else ErrorCode.INVALID_RECORD] * 12
    assert [part.log.log_end_offset for part in topic.partitions] == [9_000 if sound else 0] * 12
    assert turns >= 2
