"""The same batches, compacted with the same settings by Apache Kafka and by LeafCuttr: the same records are left."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch
from support import jars, librdkafka
from support.broker_process import running_broker
from support.logs import NOW
from support.real_kafka import real_kafka
from support.waiting import until
from support.wire_client import WireClient

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(600),
]

TOPIC_SETTINGS = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "0.01",
    "segment_bytes": "1048576",
    "message_timestamp_before_max_ms": str(2**62),
}


def batches() -> list[bytes]:
    """About 6 MB: all codecs, headers, tombstones, keys again within a batch, batches of one."""
    rng = random.Random(5)
    made = []
    for number in range(420):
        rows = [
            Record(
                i,
                NOW + number * 10 + i,
                b"key %d" % rng.randrange(150),
                None if rng.random() < 0.1 else rng.randbytes(rng.choice([0, 10, 900, 1100])),
                (("trace", rng.randbytes(4)), ("none", None)) if rng.random() < 0.3 else (),
            )
            for i in range(rng.choice([1, 20, 60]))
        ]
        made.append(bytes(encode_batch(rows, codec=Codec(number % 5))))
    return made


def compacted(address: str, sent: list[bytes]) -> list[tuple[Any, ...]]:
    """What the broker has left of it before the last segment, when that is as little as it can be."""
    librdkafka.create(address, "compacted", **TOPIC_SETTINGS)
    with WireClient(address) as client:
        offsets = [client.produce("compacted", bytearray(batch)) for batch in sent]
    assert not any(answer.error_code for answer in offsets)
    _, high = librdkafka.watermarks(address, "compacted")
    return until(lambda: settled(address, high), "compaction", seconds=240, pause=1.0)


def settled(address: str, high: int) -> list[tuple[Any, ...]] | None:
    """The records from the first to the last offset, if each key is there only once before the active segment (of
    which the last megabyte is at most)."""
    found = []
    for message in read_to(address, high):
        found.append(
            (message.offset(), message.timestamp(), message.key(), message.value(), message.headers())
        )
    keys = [key for offset, _, key, _, _ in found if offset < high * 3 // 4]
    return found if len(keys) == len(set(keys)) else None


def read_to(address: str, high: int) -> list[Any]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition("compacted", 0, 0)])
        got: list[Any] = []
        while not got or got[-1].offset() < high - 1:
            message = consumer.poll(librdkafka.PATIENCE_S)
            assert message is not None
            assert message.error() is None, message.error()
            got.append(message)
        return got
    finally:
        consumer.close()


def test_the_same_records_are_left(tmp_path: Path) -> None:
    sent = batches()
    with running_broker(tmp_path / "ours", {"log.cleaner.backoff.ms": "200"}) as broker:
        ours = compacted(broker.address, sent)
    with real_kafka(tmp_path / "theirs") as address:
        librdkafka.alter(str(address), "broker", "1", {"log.cleaner.backoff.ms": "200"})
        theirs = compacted(str(address), sent)
    # Where the active segment begins may differ; before it, all is the same.
    assert ours == theirs
