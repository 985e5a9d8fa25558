"""What goes, when, and what stays. Each setting is changed on a log in use."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import OffsetOutOfRange, StorageError
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.log import Log
from support.logs import NOW, HandClock, append, batch, make_log, write_now

DAY = 86_400_000


def log_of_segments(folder: Path, count: int, **settings: Any) -> Log:
    """`count` segments of two batches each, one day apart, the last of them the active one."""
    log = make_log(folder, segment_bytes=2 * len(batch(size=400)), retention_ms=-1, **settings)
    for number in range(count):
        for _ in range(2):
            append(log, batch(size=400, timestamp=NOW + number * DAY), NOW + number * DAY)
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
    assert append(log, batch(timestamp=NOW + 10 * DAY), NOW + 10 * DAY) == 4
    assert log.apply_retention(NOW + 10 * DAY) == 0


def test_while_batches_are_staged_the_active_segment_stays(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 2)
    change(log, retention_ms=DAY)
    log.stage(memoryview(batch(timestamp=NOW + 10 * DAY)), Origin.CLIENT, now_ms=NOW + 10 * DAY)
    log.apply_retention(NOW + 10 * DAY)
    assert len(log.segments) == 1
    write_now(log)
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


class Ear:
    def __init__(self, log: Log) -> None:
        self.heard = 0
        log.waiters.add(self)

    def notify(self) -> None:
        self.heard += 1


@pytest.mark.parametrize("milliseconds", [0, 2 * DAY])
def test_a_segment_as_old_as_retention_ms_stays(tmp_path: Path, milliseconds: int) -> None:
    log = log_of_segments(tmp_path, 3)
    change(log, retention_ms=milliseconds)
    log.apply_retention(NOW + milliseconds)
    assert log.log_start_offset == 0
    log.apply_retention(NOW + milliseconds + 1)
    assert log.log_start_offset == 2


def test_retention_bytes_0_keeps_nothing(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 2)
    size = log.size
    change(log, retention_bytes=0)
    assert log.apply_retention(NOW) == size
    assert (log.size, log.log_start_offset, log.log_end_offset) == (0, 4, 4)


def test_both_limits_count_together(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 5)
    each = log.segments[0].size
    log.log_start_offset = 2
    change(log, retention_bytes=3 * each, retention_ms=DAY)
    assert log.apply_retention(NOW + 4 * DAY) == 3 * each
    assert log.log_start_offset == 6


@pytest.mark.parametrize("timestamp", [-1, 0])
def test_without_timestamps_the_last_write_counts(tmp_path: Path, timestamp: int) -> None:
    """A timestamp of 0 is one."""
    log = make_log(tmp_path, retention_ms=DAY)
    append(log, batch(timestamp=timestamp), NOW)
    os.utime(log.segments[0].path(".log"), (NOW / 1000, NOW / 1000))
    log.apply_retention(NOW + DAY)
    assert log.log_start_offset == (1 if timestamp == 0 else 0)
    log.apply_retention(NOW + DAY + 1)
    assert log.log_start_offset == 1


def test_who_waits_is_told_of_changes_only(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 3)
    ear = Ear(log)
    log.apply_retention(NOW)
    log.delete_records_before(0)
    assert ear.heard == 0
    log.delete_records_before(1)
    assert ear.heard == 1
    log.delete_records_before(1)
    assert ear.heard == 1
    change(log, retention_ms=DAY)
    log.apply_retention(NOW + 2 * DAY)
    assert ear.heard == 2


def test_an_offline_log_keeps_what_it_has(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 3)
    change(log, retention_ms=0)
    log.take_offline("its disk is gone")
    assert log.apply_retention(NOW + 100 * DAY) == 0
    with pytest.raises(StorageError, match="its disk is gone"):
        log.delete_records_before(4)
    assert (log.log_start_offset, len(log.segments)) == (0, 3)


@pytest.mark.parametrize("count", [1, 3])
def test_on_a_full_disk_all_goes_but_what_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """There is no space for the segment that would take its place; what frees some goes all the same."""
    log = log_of_segments(tmp_path, count)
    change(log, retention_ms=DAY)
    ear = Ear(log)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("leafcuttr.log.append.roll.new_segment", full)
        with pytest.raises(StorageError, match="Deleting segments of t-0 failed: No space left on device"):
            log.apply_retention(NOW + 10 * DAY)
    last = 2 * (count - 1)
    assert [segment.base_offset for segment in log.segments] == [last]
    assert (log.log_start_offset, ear.heard) == (last, int(count > 1))
    assert len(list(tmp_path.glob("*.log.deleted"))) == count - 1
    log.apply_retention(NOW + 10 * DAY)
    assert (log.log_start_offset, log.log_end_offset) == (2 * count, 2 * count)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"retention_ms": DAY}, f"retention.ms is {DAY}"),
        ({"retention_bytes": 1}, "retention.bytes is 1"),
        ({}, "it is below the log start offset"),
    ],
)
def test_why_a_segment_went_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: dict[str, int], reason: str
) -> None:
    log = log_of_segments(tmp_path, 2)
    change(log, **settings)
    caplog.set_level("INFO", "leafcuttr.log.retention")
    if not settings:
        log.log_start_offset = 2
    log.apply_retention(NOW + 2 * DAY - 1)
    assert [record.getMessage() for record in caplog.records] == [f"t-0: segment 0 is deleted: {reason}"]


@pytest.mark.parametrize(("at_most", "gone"), [(0, 0), (1, 3), (3, 3), (4, 7), (7, 7), (8, 11)])
def test_files_go_a_few_at_a_time(tmp_path: Path, at_most: int, gone: int) -> None:
    """A segment with all its files, until there are enough."""
    log = log_of_segments(tmp_path, 4, file_delete_delay_ms=0)
    log.delete_records_before(6)
    assert log.delete_scheduled_files(NOW, at_most=at_most) == gone
    assert len(list(tmp_path.glob("*.deleted"))) == 11 - gone
    assert len(log.pending_deletes) == (3 - gone // 3 if gone < 11 else 0)
    assert log.delete_scheduled_files(NOW, at_most=99) == 11 - gone
    assert log.pending_deletes == []


def test_files_go_in_the_order_in_which_they_were_dropped(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 3, file_delete_delay_ms=5000)
    log.delete_records_before(2)
    change(log, file_delete_delay_ms=0)
    log.delete_records_before(4)
    assert log.delete_scheduled_files(NOW) == 0
    assert log.delete_scheduled_files(NOW + 5000) == 7


def test_a_file_that_has_gone_already_is_no_trouble(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path, 2, file_delete_delay_ms=0)
    log.delete_records_before(2)
    Path(log.pending_deletes[0].paths[0]).unlink()
    assert log.delete_scheduled_files(NOW) == 2
    assert (log.pending_deletes, list(tmp_path.glob("*.deleted"))) == ([], [])


def test_the_names_of_removed_files_are_synced_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of_segments(tmp_path, 2, file_delete_delay_ms=5000)
    log.delete_records_before(2)
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    log.delete_scheduled_files(NOW + 4999)
    assert synced == []
    log.delete_scheduled_files(NOW + 5000)
    assert synced == [str(tmp_path)]


def test_the_files_of_a_topic_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    log = log_of_segments(tmp_path / "t-0", 2, file_delete_delay_ms=0)
    log.delete_records_before(2)
    (tmp_path / "t-0").rename(tmp_path / "elsewhere")
    assert log.delete_scheduled_files(NOW) == 0
    assert log.pending_deletes == []
