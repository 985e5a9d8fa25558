"""What a Produce request is refused for before its batches are read."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.logs import append, batch

GARBAGE = b"\xff" * 80
GOOD = batch()
TRANSACTIONAL = batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
CORRUPT = ErrorCode.CORRUPT_MESSAGE
UNAUTHORIZED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
NONE = ErrorCode.NONE


async def produce(
    send: Any, batches: Sequence[bytes], version: int = 9, **more: Any
) -> list[tuple[ErrorCode, str | None]]:
    parts = [PartitionProduceData(index=at, records=one) for at, one in enumerate(batches)]
    data = [TopicProduceData(name="t", partition_data=parts)]
    answer = await send(ProduceRequest(**{"acks": -1, "topic_data": data, **more}), version)
    return [
        (ErrorCode(part.error_code), part.error_message) for part in answer.responses[0].partition_responses
    ]


@pytest.mark.parametrize("acks", [-1, 1, 2])
async def test_bytes_that_begin_no_batch_refuse_the_request(broker: Broker, send: Any, acks: int) -> None:
    topic = await broker.topics.create("t", 3, {})
    why = "Record size -1 is less than the minimum record overhead (14)"
    for batches in ((GOOD, GARBAGE), (GARBAGE, TRANSACTIONAL), (GOOD, GARBAGE[:14])):
        assert await produce(send, batches, acks=acks) == [(CORRUPT, why)] * 2
    magic = bytearray(GOOD)
    magic[16] = 0x80
    assert await produce(send, (bytes(magic),), acks=acks) == [
        (CORRUPT, "Invalid magic found in record: -128")
    ]
    assert [part.log.log_end_offset for part in topic.partitions] == [0, 0, 0]


async def test_a_batch_that_is_cut_off_is_no_transactional_one(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 2, {})
    assert await produce(send, (GOOD, TRANSACTIONAL)) == [(UNAUTHORIZED, None)] * 2
    assert await produce(send, (TRANSACTIONAL, GARBAGE)) == [(UNAUTHORIZED, None)] * 2
    cut_off = await produce(send, (GOOD, TRANSACTIONAL[:-1]))
    assert cut_off == [(NONE, None), (ErrorCode.INVALID_RECORD, None)]


async def test_behind_a_transactional_batch_each_partition_has_its_own_error(
    broker: Broker, send: Any
) -> None:
    await broker.topics.create("t", 3, {})
    answers = await produce(send, (TRANSACTIONAL, GARBAGE, GOOD), transactional_id="never seen")
    assert answers == [(ErrorCode.INVALID_PRODUCER_ID_MAPPING, None), (CORRUPT, None), (NONE, None)]


@pytest.mark.parametrize("version", [8, 11, 12])
async def test_while_the_coordinator_loads_producers_come_again(
    open_test_broker: Callable[..., Broker], sender_of: Callable[[Broker], Any], version: int
) -> None:
    broker = open_test_broker()
    await broker.topics.create("t", 1, {})
    state = await broker.topics.create("__transaction_state", 1, {})
    append(state.partitions[0].log, GOOD)
    broker = open_test_broker()  # restarted, and its coordinator not running yet
    answers = await produce(sender_of(broker), (TRANSACTIONAL,), version, transactional_id="x")
    why = "Unable to verify the partition has been added to the transaction. Underlying error: "
    assert answers == [(ErrorCode.NOT_ENOUGH_REPLICAS, f"{why}COORDINATOR_LOAD_IN_PROGRESS")]
