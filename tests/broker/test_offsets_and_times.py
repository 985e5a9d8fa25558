"""DeleteRecords by a real client, the log start offset, and ListOffsets by time, before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW, batch
from support.wire_client import WireClient

LATEST, EARLIEST, LARGEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
DAY = 86_400_000


def delete_before(address: str, topic: str, offset: int) -> int:
    """The low watermark that DeleteRecords answers. Raises KafkaException."""
    from confluent_kafka import TopicPartition

    client = librdkafka.admin(address)
    (future,) = client.delete_records([TopicPartition(topic, 0, offset)]).values()
    return int(future.result(librdkafka.PATIENCE_S).low_watermark)


@pytest.fixture
def days(live: LiveBroker, topic: str) -> str:
    """Six batches of two records, a day apart, the fourth of which is the newest by time; two in each segment."""
    librdkafka.alter(live.address, "topic", topic, {"segment.bytes": str(1 << 20), "retention.ms": "-1"})
    with WireClient(live.address) as client:
        for day in (0, 1, 2, 9, 4, 5):
            stamp = NOW - 10 * DAY + day * DAY
            assert client.produce(topic, batch(2, timestamp=stamp, size=200_000)).error_code == 0
    assert [len(path.read_bytes()) > 700_000 for path in live.files(topic)] == [True] * 3
    return topic


def by_time(client: WireClient, topic: str, timestamp: int) -> tuple[int, int]:
    answer = client.list_offset(topic, timestamp)
    assert answer.error_code == 0
    return answer.timestamp, answer.offset


def test_offsets_by_time(live: LiveBroker, days: str) -> None:
    begin = NOW - 10 * DAY
    with WireClient(live.address) as client:
        assert by_time(client, days, 0) == (begin, 0)
        assert by_time(client, days, begin) == (begin, 0)
        assert by_time(client, days, begin + 1) == (begin + DAY, 2)
        assert by_time(client, days, begin + 2 * DAY + 1) == (begin + 9 * DAY, 6)
        assert by_time(client, days, begin + 9 * DAY) == (begin + 9 * DAY, 6)
        assert by_time(client, days, begin + 9 * DAY + 1) == (-1, -1)
        assert by_time(client, days, LATEST) == (-1, 12)
        assert by_time(client, days, EARLIEST) == (-1, 0)
        assert by_time(client, days, LARGEST) == (begin + 9 * DAY, 6)
        assert by_time(client, days, EARLIEST_LOCAL) == (-1, 0)
        assert by_time(client, days, LATEST_TIERED) == (-1, -1)
        assert by_time(client, days, EARLIEST_PENDING) == (-1, -1)
        assert client.list_offset(days, -7).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_after_records_are_deleted(live: LiveBroker, days: str) -> None:
    begin = NOW - 10 * DAY
    assert delete_before(live.address, days, 3) == 3
    assert librdkafka.watermarks(live.address, days) == (3, 12)
    with WireClient(live.address) as client:
        assert client.fetch(days, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        found = client.fetch(days, 3)
        assert (found.error_code, found.log_start_offset, found.high_watermark) == (0, 3, 12)
        assert by_time(client, days, EARLIEST) == by_time(client, days, EARLIEST_LOCAL) == (-1, 3)
        assert by_time(client, days, 0) == (begin + DAY, 3), "the rest of the batch counts"
    assert [message.offset() for message in librdkafka.read(live.address, days, 9, offset=3)] == list(
        range(3, 12)
    )
    assert delete_before(live.address, days, 1) == 3, "it never goes back"
    with pytest.raises(Exception, match="OFFSET_OUT_OF_RANGE"):
        delete_before(live.address, days, 13)


def test_whole_segments_go_but_the_last_one(live: LiveBroker, days: str) -> None:
    assert delete_before(live.address, days, 4) == 4
    assert [path.name for path in live.files(days)] == [f"{4:020d}.log", f"{8:020d}.log"]
    assert delete_before(live.address, days, -1) == 12
    assert librdkafka.watermarks(live.address, days) == (12, 12)
    with WireClient(live.address) as client:
        assert by_time(client, days, 0) == (-1, -1)
        assert [path.name for path in live.files(days)] == [f"{8:020d}.log"]
        assert by_time(client, days, LARGEST) == (NOW - 5 * DAY, 10), "that of the segments, as in Kafka"
        assert client.produce(days, batch(timestamp=NOW)).base_offset == 12
        assert by_time(client, days, LARGEST) == (NOW, 12)


def test_the_largest_time_is_that_of_the_segments(live: LiveBroker, days: str) -> None:
    begin = NOW - 10 * DAY
    with WireClient(live.address) as client:
        for start, timestamp, offset in ((6, 9, 6), (7, 9, 6), (8, 5, 10), (11, 5, 10), (12, 5, 10)):
            assert delete_before(live.address, days, start) == start
            assert by_time(client, days, LARGEST) == (begin + timestamp * DAY, offset)


def test_deleted_records_do_not_come_back(tmp_path: Path) -> None:
    with live_broker(tmp_path) as broker:
        librdkafka.create(broker.address, "t")
        with WireClient(broker.address) as client:
            for _ in range(3):
                client.produce("t", batch(2))
        assert delete_before(broker.address, "t", 3) == 3
    with live_broker(tmp_path) as broker:
        assert librdkafka.watermarks(broker.address, "t") == (3, 6)
        with WireClient(broker.address) as client:
            assert client.fetch("t", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
