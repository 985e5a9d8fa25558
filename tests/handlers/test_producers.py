"""InitProducerId and DescribeProducers: ids for idempotent producers, and what partitions know of them."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append


def idempotent(**known: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(**{"transactional_id": None, **known})


async def test_every_version_gives_a_new_id_with_epoch_zero(ask: Any) -> None:
    given = []
    for version in range(6):
        answer = await ask(idempotent(), version)
        assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
        given.append(answer.producer_id)
    assert given == sorted(set(given))


async def test_a_producer_that_has_an_id_gets_another(ask: Any) -> None:
    answer = await ask(idempotent(producer_id=700, producer_epoch=5), 5)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    assert answer.producer_id != 700


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (idempotent(producer_id=5), ErrorCode.INVALID_REQUEST),
        (idempotent(producer_epoch=5), ErrorCode.INVALID_REQUEST),
        (idempotent(producer_id=-2), ErrorCode.INVALID_REQUEST),
        (idempotent(transactional_id=""), ErrorCode.INVALID_REQUEST),
        (idempotent(transactional_id="tx", producer_id=5), ErrorCode.INVALID_REQUEST),
        (idempotent(transactional_id="tx"), ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (
            idempotent(transactional_id="tx", transaction_timeout_ms=900_001),
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
    ],
)
async def test_refusals(ask: Any, asked: InitProducerIdRequest, code: ErrorCode) -> None:
    answer = await ask(asked, 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)


async def test_a_full_disk_is_an_error_that_clients_repeat(broker: Broker, ask: Any) -> None:
    broker.metadata._connection.execute("PRAGMA query_only = ON")
    answer = await ask(idempotent(), 5)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.metadata._connection.execute("PRAGMA query_only = OFF")
    assert (await ask(idempotent(), 5)).error_code == ErrorCode.NONE


async def test_the_producers_of_a_partition(broker: Broker, ask: Any) -> None:
    topic = await broker.topics.create("orders", 1, {})
    now = broker.clock.now_ms()
    records = [Record(0, now, b"k", b"v"), Record(1, now, b"k", b"v")]
    append(
        topic.partitions[0].log, encode_batch(records, producer_id=77, producer_epoch=2, base_sequence=0), now
    )
    asked = [TopicRequest(name=name, partition_indexes=[0, 9]) for name in ("orders", "missing", "bad name")]
    answer = await ask(DescribeProducersRequest(topics=asked), 0)

    known, missing, bad = (list(topic.partitions) for topic in answer.topics)
    (producer,) = known[0].active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (77, 2, 1)
    assert (producer.last_timestamp, producer.current_txn_start_offset) == (now, -1)
    assert (known[0].error_code, known[0].error_message) == (ErrorCode.NONE, None)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (known[1].error_code, known[1].error_message) == (unknown, None)
    assert {(part.error_code, part.error_message) for part in missing} == {
        (unknown, "This server does not host this topic-partition.")
    }
    assert {part.error_code for part in bad} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
