"""What goes, when, and what stays. Each setting is changed on a log in use."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import OffsetOutOfRange
from leafcuttr.log.log import Log
from support.logs import NOW, HandClock, batch, make_log

DAY = 86_400_000


def log_of_segments(folder: Path, count: int, **settings: Any) -> Log:
    """`count` segments of two batches each, one day apart, the last of them the active one."""
    log = make_log(folder, segment_bytes=2 * len(batch(size=400)), retention_ms=-1, **settings)
    for number in range(count):
        for _ in range(2):
            log.append(batch(size=400, timestamp=NOW + number * DAY), NOW + number * DAY)
    assert len(log.segments) == count
    return log


def change(log: Log, **settings: Any) -> None:
    log.config = replace(log.config, **settings)


def test_retention_ms(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 5)
    now = NOW + 4 * DAY
    assert log.apply_retention(now) == 0
    change(log, retention_ms=2 * DAY)
    each = log.segments[0].size
    assert log.apply_retention(now) == 2 * each
    assert (log.log_start_offset, log.log_end_offset, len(log.segments)) == (4, 10, 3)
    with pytest.raises(OffsetOutOfRange):
        log.read(3, 100, at_least_one=True)


def test_an_expired_active_segment_rolls_and_goes(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 2)
    change(log, retention_ms=DAY)
    log.apply_retention(NOW + 10 * DAY)
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert [(s.base_offset, s.size) for s in log.segments] == [(4, 0)]
    assert log.append(batch(timestamp=NOW + 10 * DAY), NOW + 10 * DAY) == 4
    assert log.apply_retention(NOW + 10 * DAY) == 0


def test_while_batches_are_staged_the_active_segment_stays(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 2)
    change(log, retention_ms=DAY)
    log.stage(memoryview(batch(timestamp=NOW + 10 * DAY)), now_ms=NOW + 10 * DAY)
    log.apply_retention(NOW + 10 * DAY)
    assert len(log.segments) == 1
    log.commit()
    assert log.log_end_offset == 5


def test_retention_bytes(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 5)
    each = log.segments[0].size
    change(log, retention_bytes=3 * each - 1)
    assert log.apply_retention(NOW) == 2 * each, "never below the limit: the third would go below"
    assert log.size == 3 * each
    change(log, retention_bytes=each)
    log.apply_retention(NOW)
    assert log.log_start_offset == 8


def test_compacted_only_keeps_everything(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 4)
    change(log, cleanup_policy=("compact",), retention_ms=1, retention_bytes=1)
    assert log.apply_retention(NOW + 100 * DAY) == 0
    change(log, cleanup_policy=("compact", "delete"))
    assert log.apply_retention(NOW + 100 * DAY) > 0


def test_delete_records(tmp_path: Path) -> None:
    heard = []

    class Ear:
        def notify(self) -> None:
            heard.append(log.log_start_offset)

    log = log_of_segments(tmp_path, 4)
    log.waiters.add(Ear())
    assert log.delete_records_before(5) == 5
    assert [segment.base_offset for segment in log.segments] == [4, 6]
    assert log.delete_records_before(2) == 5, "the log start offset never goes back"
    for offset in (-1, 9):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records_before(offset)
    assert log.delete_records_before(8) == 8
    assert [segment.base_offset for segment in log.segments] == [6], "what is written to stays, as in Kafka"
    assert log.apply_retention(NOW) == 0
    log.roll()
    assert log.apply_retention(NOW) > 0
    assert [(s.base_offset, s.size) for s in log.segments] == [(8, 0)]
    assert heard and heard[-1] == 8


def test_files_wait_for_file_delete_delay_ms(tmp_path: Path) -> None:
    clock = HandClock()
    log = log_of_segments(tmp_path, 3, clock=clock, file_delete_delay_ms=5000)
    log.delete_records_before(2)
    change(log, file_delete_delay_ms=60_000)
    log.delete_records_before(4)
    names = sorted(path.name for path in tmp_path.glob("*.deleted"))
    assert names == [
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.deleted",
        "00000000000000000000.timeindex.deleted",
        "00000000000000000002.index.deleted",
        "00000000000000000002.log.deleted",
        "00000000000000000002.snapshot.deleted",
        "00000000000000000002.timeindex.deleted",
    ]
    assert log.delete_scheduled_files(NOW + 4999) == 0
    assert log.delete_scheduled_files(NOW + 5000) == 3
    assert log.delete_scheduled_files(NOW + 60_000) == 4
    assert not list(tmp_path.glob("*.deleted"))
