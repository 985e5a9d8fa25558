"""Each topic setting of compaction acts, as the topic's own and as a default, while the broker runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leafcuttr.wire.records import Record, encode_batch
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.wire_client import WireClient

DAY = 86_400_000


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """A broker whose cleaner only looks when it is told to."""
    settings = {"log.retention.check.interval.ms": str(DAY), "log.cleaner.backoff.ms": str(DAY)}
    with live_broker(tmp_path_factory.mktemp("live") / "data", settings) as broker:
        yield broker


def put(live: LiveBroker, topic: str, key: bytes, value: bytes | None, *, ago_ms: int = 0) -> None:
    """One batch of one record."""
    data = encode_batch([Record(0, live.clock.ms - ago_ms, key, value)])
    with WireClient(live.address) as client:
        assert client.produce(topic, data).error_code == 0


def offsets(live: LiveBroker, topic: str) -> list[int]:
    """The offsets of the records that are there, after the cleaner has looked."""
    live.pass_time(0)
    while live.run(live.broker.logs.cleaner.clean_due):
        pass
    low, high = librdkafka.watermarks(live.address, topic)
    found, at = [], low
    while at < high:
        (message,) = librdkafka.read(live.address, topic, 1, offset=at)
        found.append(message.offset())
        at = message.offset() + 1
    return found


def days(live: LiveBroker, topic: str, change: Any, *keys: bytes) -> None:
    """One segment a day, one record in each, the last of today."""
    change.topic(segment_ms="1000", cleanup_policy="compact")
    for number, key in enumerate(keys):
        put(live, topic, key, b"v", ago_ms=(len(keys) - 1 - number) * DAY)
    assert len(live.files(topic)) == len(keys)


@pytest.mark.one_in(2)
@pytest.mark.setting("min.cleanable.dirty.ratio")
def test_min_cleanable_dirty_ratio(live: LiveBroker, topic: str, change: Any) -> None:
    change(min_cleanable_dirty_ratio="1.0")
    days(live, topic, change, b"a", b"a", b"a")
    assert offsets(live, topic) == [0, 1, 2]
    change(min_cleanable_dirty_ratio="0.9")
    assert offsets(live, topic) == [1, 2]


@pytest.mark.one_in(2)
@pytest.mark.setting("min.compaction.lag.ms")
def test_min_compaction_lag_ms(live: LiveBroker, topic: str, change: Any) -> None:
    change.topic(min_cleanable_dirty_ratio="0.01")
    change(min_compaction_lag_ms=str(3 * DAY // 2))
    days(live, topic, change, b"a", b"a", b"a", b"a")
    assert offsets(live, topic) == [1, 2, 3]
    change(min_compaction_lag_ms="0")
    assert offsets(live, topic) == [2, 3]


@pytest.mark.one_in(2)
@pytest.mark.setting("max.compaction.lag.ms")
def test_max_compaction_lag_ms(live: LiveBroker, topic: str, change: Any) -> None:
    change.topic(min_cleanable_dirty_ratio="1.0")
    change(max_compaction_lag_ms=str(10 * DAY))
    days(live, topic, change, b"a", b"a", b"a")
    assert offsets(live, topic) == [0, 1, 2]
    change(max_compaction_lag_ms=str(DAY))
    assert offsets(live, topic) == [1, 2]


@pytest.mark.one_in(3)
@pytest.mark.setting("delete.retention.ms")
def test_delete_retention_ms(live: LiveBroker, topic: str, change: Any) -> None:
    change(delete_retention_ms="5000")
    change.topic(segment_ms="1000", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    put(live, topic, b"a", b"v", ago_ms=3 * DAY)
    put(live, topic, b"a", None, ago_ms=2 * DAY)
    put(live, topic, b"b", b"v", ago_ms=DAY)
    assert offsets(live, topic) == [1, 2]
    live.clock.ms += 4999
    put(live, topic, b"c", b"v")
    assert offsets(live, topic) == [1, 2, 3]
    live.clock.ms += 1
    put(live, topic, b"d", b"v", ago_ms=-2000)
    assert offsets(live, topic) == [2, 3, 4]
