"""DescribeProducers: what partitions know of their idempotent producers."""

from typing import Any

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append


async def test_the_producers_of_a_partition(broker: Broker, send: Any) -> None:
    topic = await broker.topics.create("orders", 1, {})
    now = broker.clock.now_ms()
    records = [Record(0, now, b"k", b"v"), Record(1, now, b"k", b"v")]
    append(
        topic.partitions[0].log, encode_batch(records, producer_id=77, producer_epoch=2, base_sequence=0), now
    )
    requested = [
        TopicRequest(name=name, partition_indexes=[0, 9]) for name in ("orders", "missing", "bad name")
    ]
    answer = await send(DescribeProducersRequest(topics=requested), 0)

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
