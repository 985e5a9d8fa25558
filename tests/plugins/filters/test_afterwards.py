"""What filters leave, in the life of a log: compaction, offsets by time, retention, expiry, another start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.config.topic import TopicConfig
from leafcuttr.state.chains import Instance, Tables
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk.filters import DROP
from leafcuttr_sdk.records import Record
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.wire_client import WireClient

DAY = 86_400_000
SETTINGS = {"log.retention.check.interval.ms": str(DAY), "log.cleaner.backoff.ms": str(DAY)}
MAX_TIMESTAMP = -3


def drop_d(record: Record) -> Any:
    return DROP if record.value == b"d" else record


def equip(live: LiveBroker) -> None:
    def make(_: str, __: TopicConfig) -> Instance:
        return Instance("tests", drop_d)

    live.call(live.broker.chains.equip, Tables({"drop-d": make}))


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path / "data", SETTINGS) as broker:
        equip(broker)
        yield broker


def put(live: LiveBroker, *values: bytes, ago_ms: int = 0, key: bytes = b"k", **fields: int) -> int:
    records = [Stored(n, live.clock.ms - ago_ms, key, value) for n, value in enumerate(values)]
    with WireClient(live.address) as wire:
        answer = wire.produce("t", encode_batch(records, **fields))  # type: ignore[arg-type]
    assert answer.error_code == 0
    offset: int = answer.base_offset
    return offset


def test_compaction(live: LiveBroker) -> None:
    """Batches without records go like any other, but for the last of a producer, which stands for its state, and the
    last of a segment, which stands for its end."""
    librdkafka.create(
        live.address, "t", lc_filters="drop-d", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01"
    )
    for number in range(6):
        put(live, b"v", b"d", producer_id=9000, producer_epoch=0, base_sequence=3 * number)
        put(live, b"d", producer_id=9000, producer_epoch=0, base_sequence=3 * number + 2)
        put(live, b"d")
    log = live.log("t")
    live.call(log.roll)
    put(live, b"last", key=b"other")
    live.pass_time(0)
    while live.run(live.broker.logs.cleaner.clean_due):
        pass
    left = [(header.base_offset, header.last_offset, header.count) for header in live.stored("t")]
    assert left == [(20, 21, 1), (22, 22, 0), (23, 23, 0), (24, 24, 1)]
    assert [m.offset() for m in librdkafka.read(live.address, "t", 2)] == [20, 24]
    assert put(live, b"v", producer_id=9000, producer_epoch=0, base_sequence=18) == 25


def test_offsets_by_time(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t", lc_filters="drop-d")
    now = live.clock.ms
    put(live, b"v", b"d", b"v", ago_ms=5000)
    put(live, b"d", b"d", ago_ms=4000)
    put(live, b"v", ago_ms=3000)
    put(live, b"d", ago_ms=-2000)
    with WireClient(live.address) as wire:
        for time, expected in ((now - 5000, 0), (now - 4500, 5), (now - 4000, 5), (now - 2999, -1)):
            assert wire.list_offset("t", time).offset == expected
        assert wire.list_offset("t", MAX_TIMESTAMP).offset == 5
        assert wire.list_offset("t", -1).offset == 7


def test_retention_and_what_a_producer_is_known_by(tmp_path: Path) -> None:
    fields = {"producer_id": 9000, "producer_epoch": 0}
    with live_broker(tmp_path, SETTINGS) as live:
        equip(live)
        librdkafka.create(live.address, "t", lc_filters="drop-d", retention_ms=str(DAY), segment_ms="1000")
        put(live, b"v", b"d", ago_ms=3 * DAY)
        put(live, b"d", b"d", **fields, base_sequence=0)
        put(live, b"v", ago_ms=DAY // 2)
        live.pass_time(0)
        assert librdkafka.watermarks(live.address, "t")[1] == 5
        live.call(live.broker.logs.logs[live.log("t").topic_partition].producers.expire, live.clock.ms, DAY)
        assert put(live, b"d", b"d", **fields, base_sequence=0) == 2  # a duplicate still
    with live_broker(tmp_path, SETTINGS) as again:
        equip(again)
        assert put(again, b"d", b"d", **fields, base_sequence=0) == 2
        assert put(again, b"v", **fields, base_sequence=2) == 5
