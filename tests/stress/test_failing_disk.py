"""A broker whose disk becomes read-only under it, or goes altogether: a real ext4 on a loop device.

Device mapper, which could fail single sectors, is not asked for: what one failing write or sync does is in
tests/log/files/test_failed_sync.py and tests/log/append/test_commit.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from crc32c import crc32c

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.batch import ATTRIBUTES_AT, parse
from support import librdkafka
from support.broker_process import BrokerProcess, start_broker
from support.forked_start import run_leafcuttr
from support.logs import batch
from support.loop_disk import LoopDisk, loop_disk
from support.wire_client import WireClient

TOPICS = {
    "plain": {},
    "synced": {"lc_log_sync_always": "true"},
    "preallocated": {"preallocate": "true", "segment_bytes": str(1 << 20)},
}
STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LoopDisk]:
    with loop_disk(tmp_path) as found:
        yield found


def started(disk: LoopDisk, home: Path, **settings: str) -> BrokerProcess:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return start_broker(home, {"log.dirs": str(disk.folder / "data"), "lc.log.min.free.bytes": "0", **given})


def filled(broker: BrokerProcess, records: int = 30) -> None:
    """So many records acknowledged in each topic, of more than one segment."""
    with WireClient(broker.address) as client:
        for topic, config in TOPICS.items():
            librdkafka.create(broker.address, topic, **{"segment_bytes": str(1 << 20), **config})
            for _ in range(records):
                assert client.produce(topic, batch(size=60_000)).error_code == 0


def read_back(client: WireClient, topic: str) -> int:
    """How many records can be read, each batch checked."""
    offset = 0
    while True:
        answer = client.fetch(topic, offset, max_bytes=1 << 18)
        assert answer.error_code == 0, f"{topic}: {ErrorCode(answer.error_code).name}"
        records, at = answer.records, 0
        if not records:
            return offset
        while at < len(records):
            header = parse(records, at)
            if at + header.size > len(records):
                break
            assert header.base_offset == offset
            assert crc32c(records[at + ATTRIBUTES_AT : at + header.size]) == header.crc
            at, offset = at + header.size, header.next_offset


def refused(client: WireClient, topic: str) -> int:
    return int(client.produce(topic, batch(size=1000)).error_code)


def assert_sound(directory: Path) -> None:
    checked = run_leafcuttr(("verify", str(directory)))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def kill(broker: BrokerProcess) -> None:
    if broker.alive():
        broker.process.kill()
    broker.process.wait()


def test_a_disk_that_becomes_read_only_refuses_writes_and_serves_reads(
    disk: LoopDisk, tmp_path: Path
) -> None:
    broker = started(disk, tmp_path / "home")
    try:
        # No segment is full: a sync of one that comes after the disk has failed takes its partition offline, rightly.
        filled(broker, 15)
        disk.read_only()
        with WireClient(broker.address) as client:
            for _ in range(3):
                for topic in TOPICS:
                    assert refused(client, topic) == STORAGE
            with pytest.raises(KafkaException):
                librdkafka.create(broker.address, "another")
            for topic in TOPICS:
                assert read_back(client, topic) == 15
                assert client.list_offset(topic, -1).offset == 15
        assert broker.log.count("Writing to ") == 1
        assert "is offline" not in broker.log
        assert broker.stop() == 3
        assert "Traceback" not in broker.log
        assert len(broker.log.splitlines()) < 10, broker.log
    finally:
        kill(broker)

    with pytest.raises(RuntimeError, match="status 1"):  # one line says why
        started(disk, tmp_path / "other")
    assert "Traceback" not in (tmp_path / "other" / "broker.log").read_text()

    disk.unmount()
    disk.mount()
    broker = started(disk, tmp_path / "home")
    try:
        with WireClient(broker.address) as client:
            for topic in TOPICS:
                assert read_back(client, topic) == 15
                assert client.produce(topic, batch()).base_offset == 15
        assert broker.stop() == 0
    finally:
        kill(broker)
    assert_sound(disk.folder / "data")


def test_a_disk_that_goes_kills_nothing_and_takes_nothing_that_was_synced(
    disk: LoopDisk, tmp_path: Path
) -> None:
    """Every access says EIO, and what the page cache alone had is gone: topic sync mode has promised more."""
    broker = started(disk, tmp_path / "home")
    try:
        filled(broker)
        disk.pull_out()
        with WireClient(broker.address) as client:
            for _ in range(3):
                for topic in TOPICS:
                    assert refused(client, topic) == STORAGE
            assert client.fetch("synced", 0).error_code == STORAGE
        assert broker.log.count("is offline") == len(TOPICS)
        assert broker.stop() == 3
        assert "Traceback" not in broker.log
    finally:
        kill(broker)

    disk.unmount()
    disk.mount()
    broker = started(disk, tmp_path / "home")
    try:
        with WireClient(broker.address) as client:
            assert read_back(client, "synced") == 30
            assert client.produce("synced", batch()).base_offset == 30
            for topic in TOPICS:  # a tail of the others is gone; what is there is whole
                assert read_back(client, topic) == client.list_offset(topic, -1).offset
        assert broker.stop() == 0
    finally:
        kill(broker)
    assert_sound(disk.folder / "data")
