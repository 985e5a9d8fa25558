"""A broker on a file system of a few megabytes that fills up: a tmpfs in a mount namespace of the test's own.

Where user namespaces or mounts are not allowed the tests are skipped with that reason; failing writes in one log,
without a file system, are in tests/log/append/test_commit.py (under a file size limit).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crc32c import crc32c

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.batch import ATTRIBUTES_AT, HEADER_SIZE, parse
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from support import librdkafka
from support.logs import batch
from support.small_disk import MIB, SIZE, SmallDisk, ended, small_disk
from support.waiting import until
from support.wire_client import WireClient


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path) as disk:
        yield disk


def produced(client: WireClient, topic: str, size: int) -> int:
    return int(client.produce(topic, batch(size=size)).error_code)


def until_refused(client: WireClient, topic: str, size: int) -> int:
    """Produce until the disk is full; how many records were acknowledged."""
    for count in range(10_000):
        code = produced(client, topic, size)
        if code:
            assert code == ErrorCode.KAFKA_STORAGE_ERROR
            return count
    raise AssertionError("the disk does not fill up")


def read_back(address: str, topic: str) -> int:
    """How many records can be read, each checked. (A consumer of librdkafka wants a coordinator, which wants room.)"""
    offset = 0
    with WireClient(address) as client:
        while records := client.fetch(topic, offset).records:
            at = 0
            while at + HEADER_SIZE <= len(records):
                header = parse(records, at)
                assert header.base_offset == offset
                assert crc32c(records[at + ATTRIBUTES_AT : at + header.size]) == header.crc
                at, offset = at + header.size, header.next_offset
            assert at
    return offset


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sync", ["false", "true"])
def test_a_full_disk_refuses_writes_serves_reads_and_goes_on_by_itself(
    disk: SmallDisk, tmp_path: Path, sync: str
) -> None:
    settings = {
        "lc_log_sync_always": sync,
        "lc_log_min_free_bytes": "0",
        "log_segment_bytes": str(MIB),
        "log_retention_check_interval_ms": "200",
        "log_retention_ms": "-1",
        "log_segment_delete_delay_ms": "0",
    }
    with ended(disk.broker(tmp_path / "home", **settings)) as broker:
        librdkafka.create(broker.address, "t")
        librdkafka.create(broker.address, "other")
        with WireClient(broker.address) as client:
            acknowledged = until_refused(client, "t", 100_000)
            assert acknowledged > 50
            disk.fill()
            # Checkpoints, indexes and the metadata find no room either; the broker lives, and serves what it has.
            until(lambda: "soft checkpoint failed" in broker.log, "a checkpoint that fails")
            assert produced(client, "t", 100_000) == ErrorCode.KAFKA_STORAGE_ERROR
            assert produced(client, "other", 100_000) == ErrorCode.KAFKA_STORAGE_ERROR
            assert read_back(broker.address, "t") == acknowledged

            (disk.seen / "filler").unlink()
            until(lambda: produced(client, "other", 1_000) == 0, "writing to go on by itself")
            room = 0
            while not produced(client, "t", 100_000):
                room += 1
            acknowledged += room
            assert read_back(broker.address, "t") == acknowledged

    # Killed while the disk is full: the next start comes up on it and serves all of it.
    with ended(disk.broker(tmp_path / "home", **settings)) as broker:
        assert read_back(broker.address, "t") == acknowledged
    with ended(disk.broker(tmp_path / "home", **settings, log_retention_bytes=str(4 * MIB))) as broker:
        # Retention frees space on a full disk.
        with WireClient(broker.address) as client:
            until(lambda: produced(client, "t", 100_000) == 0, "retention to make room", seconds=120)
        assert broker.stop() == 0
    checked = disk.verify()
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_first_consumer_on_a_full_disk_is_told_to_come_back(disk: SmallDisk, tmp_path: Path) -> None:
    """There is no room for `__consumer_offsets`: one line, and it is made once there is."""
    coordinator = FindCoordinatorRequest(key="group", key_type=0)
    with ended(disk.broker(tmp_path / "home", lc_log_min_free_bytes="0")) as broker:
        librdkafka.create(broker.address, "t")
        with WireClient(broker.address) as client:
            assert produced(client, "t", 1000) == 0
            disk.fill()
            for _ in range(5):
                answer = client.ask(coordinator, 2)
                assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            consumer = librdkafka.Group(broker.address, "group", ["t"])
            try:
                assert broker.log.count("__consumer_offsets cannot be created") == 1
                (disk.seen / "filler").unlink()
                assert len(consumer.take(1)) == 1
                consumer.commit()
            finally:
                consumer.close()
            assert broker.log.count("__consumer_offsets cannot be created") == 1
        assert broker.stop() == 0


def test_producers_are_refused_before_the_disk_is_full(disk: SmallDisk, tmp_path: Path) -> None:
    settings = {"lc_log_min_free_bytes": str(8 * MIB), "log_segment_bytes": str(MIB)}
    with ended(disk.broker(tmp_path / "home", **settings)) as broker:
        librdkafka.create(broker.address, "t")
        with WireClient(broker.address) as client:
            (disk.seen / "filler").write_bytes(bytes(SIZE - 7 * MIB))
            until(lambda: produced(client, "t", 1000) == ErrorCode.KAFKA_STORAGE_ERROR, "a refusal")
            assert "lc.log.min.free.bytes" in broker.log
            # The broker itself has room: a topic can be made, records can be read.
            librdkafka.create(broker.address, "another")
            (disk.seen / "filler").unlink()
            until(lambda: produced(client, "t", 1000) == 0, "producing to go on by itself")
        assert broker.stop() == 0
