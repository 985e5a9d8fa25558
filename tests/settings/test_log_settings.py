"""Broker settings of the log that are no topic's own name: each with another value than the default acts.

The others, whose values topics may override, are changed in all three places by test_topic_settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.log.layout.checkpoints import read_offsets
from leafcuttr_sdk import TopicPartition
from support import librdkafka
from support.changing import alter_broker
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW, batch
from support.waiting import until
from support.wire_client import WireClient

HOUR = 3_600_000
T0 = TopicPartition("t", 0)


def put(broker: LiveBroker, *, partition: int = 0, ago_ms: int = 0) -> None:
    with WireClient(broker.address) as client:
        data = batch(timestamp=broker.clock.ms - ago_ms)
        assert client.produce("t", data, partition=partition).error_code == 0


def aged(broker: LiveBroker, *hours: int) -> None:
    """A segment for each of these ages, and one of now."""
    librdkafka.create(broker.address, "t", segment_ms="1000")
    for age in (*hours, 0):
        put(broker, ago_ms=age * HOUR)
    assert len(broker.files("t")) == len(hours) + 1


# Where it lies


@pytest.mark.setting("log.dir")
def test_log_dir(tmp_path: Path) -> None:
    with live_broker(tmp_path / "unused", {"log.dir": str(tmp_path / "here")}) as broker:
        librdkafka.create(broker.address, "t")
        assert (tmp_path / "here" / "t-0").is_dir()
    assert not (tmp_path / "unused").exists()


@pytest.mark.setting("log.dirs")
def test_log_dirs(tmp_path: Path) -> None:
    settings = {"log.dirs": str(tmp_path / "there"), "log.dir": str(tmp_path / "here")}
    with live_broker(tmp_path / "unused", settings) as broker:
        assert broker.broker.logs.directory == tmp_path / "there"
    assert not (tmp_path / "here").exists()


# How long it is kept


def first_kept(serve: Any, **settings: str) -> int:
    """Of four records, 20, 5 and 1 hours old and new, the first that retention keeps."""
    with serve({name.replace("_", "."): value for name, value in settings.items()}) as broker:
        aged(broker, 20, 5, 1)
        broker.pass_time(0)
        low, high = librdkafka.watermarks(broker.address, "t")
        assert high == 4
        librdkafka.delete(broker.address, "t")
        return low


@pytest.mark.setting("log.retention.hours", "log.retention.minutes")
def test_retention_in_three_units(serve: Any) -> None:
    assert first_kept(serve) == 0
    assert first_kept(serve, log_retention_hours="7") == 1
    assert first_kept(serve, log_retention_minutes="200") == 2
    assert first_kept(serve, log_retention_hours="7", log_retention_minutes="1300") == 0
    assert first_kept(serve, log_retention_hours="7", log_retention_minutes="200", log_retention_ms="-1") == 0


@pytest.mark.setting("log.retention.check.interval.ms")
def test_log_retention_check_interval_ms(serve: Any) -> None:
    """Every 50 ms; by default the first time is after half a minute."""
    with serve({"log.retention.check.interval.ms": "50"}) as broker:
        librdkafka.create(broker.address, "t", segment_ms="1000")
        for hours in (1000, 0):  # the first may be gone before the second comes
            put(broker, ago_ms=hours * HOUR)
        until(lambda: librdkafka.watermarks(broker.address, "t") == (1, 2), "retention", seconds=25)


# How it is cut


@pytest.mark.setting("log.roll.hours")
def test_log_roll_hours(serve: Any) -> None:
    def segments_after(hours: int) -> int:
        broker.clock.ms += hours * HOUR
        put(broker)
        return len(broker.files("t"))

    with serve({"log.roll.hours": "5"}) as broker:
        librdkafka.create(broker.address, "t")
        assert [segments_after(0), segments_after(4), segments_after(2)] == [1, 1, 2]
    with serve() as broker:
        assert segments_after(100) == 2


@pytest.mark.setting("log.roll.jitter.hours")
def test_log_roll_jitter_hours(serve: Any) -> None:
    partitions = 48
    with serve({"log.roll.hours": "10", "log.roll.jitter.hours": "10"}) as broker:
        librdkafka.create(broker.address, "t", partitions)
        for hours in (0, 5):
            broker.clock.ms += hours * HOUR
            for partition in range(partitions):
                put(broker, partition=partition)
        rolled = sum(len(broker.files("t", partition=partition)) > 1 for partition in range(partitions))
        assert 0 < rolled < partitions, "some at half the time, each by itself"


# When it is forced to the disk


@pytest.mark.setting("log.flush.scheduler.interval.ms")
def test_log_flush_scheduler_interval_ms(serve: Any) -> None:
    def synced(broker: LiveBroker) -> int:
        return broker.call(lambda: broker.log("t").recovery_point)

    with serve({"log.flush.scheduler.interval.ms": "60000"}) as broker:
        librdkafka.create(broker.address, "t", flush_ms="1000")
        broker.pass_time(0)
        put(broker)
        broker.pass_time(0)
        broker.pass_time(59_000)
        assert synced(broker) == 0, "it is old enough, but is not checked yet"
        broker.pass_time(1000)
        assert synced(broker) == 1
        librdkafka.delete(broker.address, "t")
        librdkafka.create(broker.address, "t")
        broker.pass_time(60_000)
        put(broker)
        broker.pass_time(0)
        broker.pass_time(59_999)
        assert synced(broker) == 0
        broker.pass_time(1)
        assert synced(broker) == 1, "without another setting it is also how old it may get"


@pytest.mark.setting("log.flush.offset.checkpoint.interval.ms")
def test_log_flush_offset_checkpoint_interval_ms(serve: Any) -> None:
    """Every 50 ms; by default the first time is after a minute."""
    with serve({"log.flush.offset.checkpoint.interval.ms": "50"}) as broker:
        aged(broker, 1)  # what is before the active segment is synced within a second or so
        path = broker.broker.logs.directory / "recovery-point-offset-checkpoint"
        until(lambda: path.exists() and read_offsets(path).get(T0) == 1, "the recovery point", seconds=30)


@pytest.mark.setting("log.flush.start.offset.checkpoint.interval.ms")
def test_log_flush_start_offset_checkpoint_interval_ms(serve: Any) -> None:
    def written(broker: LiveBroker) -> int | None:
        path = broker.broker.logs.directory / "log-start-offset-checkpoint"
        return read_offsets(path).get(T0) if path.exists() else None

    with serve({"log.flush.start.offset.checkpoint.interval.ms": "5000"}) as broker:
        broker.pass_time(0)
        aged(broker, 1000)
        broker.pass_time(0)
        assert librdkafka.watermarks(broker.address, "t") == (1, 2)
        broker.pass_time(4999)
        assert written(broker) is None
        broker.pass_time(1)
        assert written(broker) == 1


# When there is no space


@pytest.mark.setting("lc.log.min.free.bytes", while_running=True)
def test_lc_log_min_free_bytes(serve: Any, scope: str) -> None:
    with serve() as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "t")

        def outcome() -> int:
            broker.run(broker.broker.logs.watch_free_space)
            return int(client.produce("t", batch(timestamp=NOW)).error_code)

        assert outcome() == 0
        alter_broker(broker.address, scope, {"lc.log.min.free.bytes": str(1 << 60)})
        assert outcome() == ErrorCode.KAFKA_STORAGE_ERROR
        alter_broker(broker.address, scope, {"lc.log.min.free.bytes": None})
        assert outcome() == 0
