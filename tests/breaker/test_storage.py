"""Faults under a log: descriptors that run out or change hands, rolls that fail, and what recovery makes of it."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import StorageError
from leafcuttr.log.files import FilePool
from leafcuttr.log.log import Log
from support.logs import NOW, batch, make_log, read_all
from support.managers import abandon, opened, spec


@contextmanager
def no_descriptor_left(but: int = 0) -> Iterator[None]:
    """No file (or so many) can be opened: the process has all the descriptors it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + but, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def let_go(log: Log) -> None:
    """As the pool does with what is used least."""
    for segment in log.segments:
        segment.close()


def test_a_write_keeps_its_descriptor_while_other_threads_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = FilePool(1)
    log = make_log(tmp_path / "t-0", pool=pool)
    other = make_log(tmp_path / "t-1", pool=pool)
    log.append(batch(), NOW)
    write = os.pwritev

    def meanwhile(*arguments: Any) -> int:
        """What a worker thread may do when the writing one gives up the interpreter for its call."""
        other.segments[0].open_file()
        other.segments[0].index.sync()
        return write(*arguments)

    monkeypatch.setattr(os, "pwritev", meanwhile)
    log.append(batch(2), NOW)
    monkeypatch.undo()
    assert log.log_end_offset == 3
    assert len(read_all(log)) == log.size
    assert Path(other.segments[0].path(".log")).stat().st_size == 0


def test_a_log_serves_again_when_there_are_descriptors_again(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.append(batch(), NOW)
    let_go(log)
    with no_descriptor_left(), pytest.raises(StorageError, match="Too many open files"):
        log.append(batch(), NOW)
    assert log.offline is None
    assert log.append(batch(), NOW) == 1
    assert len(read_all(log)) == log.size


def test_a_write_whose_index_cannot_be_read_leaves_no_trace_in_the_indexes(tmp_path: Path) -> None:
    log = make_log(tmp_path, index_interval_bytes=100)
    for number in range(4):
        log.append(batch(size=200), NOW + number)
    segment = log.segments[-1]
    log.flush_indexes()
    before = segment.index.entries(), segment.time_index.entries()
    segment.time_index.close()
    segment.index.close()
    largest = segment.largest_timestamp
    segment.open_file()
    with no_descriptor_left(), pytest.raises(StorageError):
        log.append(batch(size=777), NOW + 50)
    assert (segment.index.entries(), segment.time_index.entries()) == before
    assert segment.largest_timestamp == largest
    for number in range(4):
        log.append(batch(size=200), NOW + 100 + number)
    end = Path(segment.path(".log")).stat().st_size
    assert segment.size == end
    starts = {position for position, _ in segment.scan()}
    assert {position for _, position in segment.index.entries()} <= starts


def test_a_roll_that_fails_leaves_no_file_that_a_recovery_trips_over(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec())
    log.append(batch(3), NOW)
    log.segments[-1].seal()
    with no_descriptor_left(but=1), pytest.raises(OSError):
        log.roll()  # makes the .log, then has no descriptor for the .index
    log.append(batch(3), NOW)
    log.flush()
    manager._upkeep.write_offsets(manager.logs, dict(manager.logs))
    abandon(manager)
    again = opened(tmp_path, spec())
    log = again.logs[log.topic_partition]
    assert (log.offline, log.log_end_offset) == (None, 6)
    abandon(again)


def test_files_of_a_segment_that_could_not_be_made_are_let_go(tmp_path: Path) -> None:
    pool = FilePool()
    log = make_log(tmp_path, pool=pool)
    log.append(batch(), NOW)
    log.segments[-1].seal()
    held = len(pool)
    with no_descriptor_left(but=1), pytest.raises(OSError):
        log.roll()
    assert len(pool) == held


def test_two_threads_that_open_one_file_share_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = FilePool()
    log = make_log(tmp_path, pool=pool)
    segment = log.segments[0]
    segment.close()
    before = len(pool)
    real = os.open
    nested: list[Any] = []

    def meanwhile(*arguments: Any) -> int:
        if not nested:
            nested.append(True)
            nested.append(segment.open_file())  # the other thread, between the look and the opening
        return real(*arguments)

    monkeypatch.setattr(os, "open", meanwhile)
    mine = segment.open_file()
    monkeypatch.undo()
    assert mine is nested[1] is segment.file
    assert len(pool) == before + 1
