"""Faults under a log: descriptors that run out or change hands, rolls that fail, and what recovery makes of it."""

import errno
import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import StorageError
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.checkpoints import RECOVERY_POINTS
from leafcuttr.log.log import Log
from support.logs import NOW, append, batch, make_log, read_all
from support.managers import abandon, opened, spec


@contextmanager
def no_descriptor_left(but: int = 0) -> Iterator[None]:
    """No file (or so many) can be opened: the process has all the descriptors it may have."""
    gc.collect()  # what another test has left behind may hold some
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open("/dev/null", os.O_RDONLY) for _ in range(but + 1)]
    for descriptor in free:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def no_room_for(suffix: str) -> Iterator[None]:
    """No file with this suffix can be made: as on a disk that has room for one more, and not for two."""
    real = os.open

    def refuse(path: Any, flags: int, *arguments: Any) -> int:
        if flags & os.O_CREAT and str(path).endswith(suffix):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return real(path, flags, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refuse)
        yield


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
    append(log, batch(), NOW)
    write = os.pwritev

    def meanwhile(*arguments: Any) -> int:
        """What a worker thread may do when the writing one gives up the interpreter for its call."""
        other.segments[0].open_file()
        other.segments[0].index.sync()
        return write(*arguments)

    monkeypatch.setattr(os, "pwritev", meanwhile)
    append(log, batch(2), NOW)
    monkeypatch.undo()
    assert log.log_end_offset == 3
    assert len(read_all(log)) == log.size
    assert Path(other.segments[0].path(".log")).stat().st_size == 0


def test_a_log_serves_again_when_there_are_descriptors_again(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(), NOW)
    let_go(log)
    with no_descriptor_left(), pytest.raises(StorageError, match="Too many open files"):
        append(log, batch(), NOW)
    assert log.offline is None
    assert append(log, batch(), NOW) == 1
    assert len(read_all(log)) == log.size


def test_a_write_whose_index_cannot_be_read_leaves_no_trace_in_the_indexes(tmp_path: Path) -> None:
    log = make_log(tmp_path, index_interval_bytes=100)
    for number in range(4):
        append(log, batch(size=200), NOW + number)
    segment = log.segments[-1]
    log.flush_indexes()
    before = segment.index.entries(), segment.time_index.entries()
    segment.time_index.close()
    segment.index.close()
    largest = segment.largest_timestamp
    segment.open_file()
    with no_descriptor_left(), pytest.raises(StorageError):
        append(log, batch(size=777), NOW + 50)
    assert (segment.index.entries(), segment.time_index.entries()) == before
    assert segment.largest_timestamp == largest
    for number in range(4):
        append(log, batch(size=200), NOW + 100 + number)
    end = Path(segment.path(".log")).stat().st_size
    assert segment.size == end
    starts = {position for position, _ in segment.scan()}
    assert {position for _, position in segment.index.entries()} <= starts


def test_a_roll_that_fails_leaves_no_file_that_a_recovery_trips_over(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec())
    append(log, batch(3), NOW)
    log.segments[-1].seal()
    with no_room_for(".timeindex"), pytest.raises(OSError):
        log.roll()  # makes the .index
    append(log, batch(3), NOW)
    log.flush()
    manager.directories[0].upkeep.write_offsets(manager.logs, dict(manager.logs))
    abandon(manager)
    again = opened(tmp_path, spec())
    log = again.logs[log.topic_partition]
    assert (log.offline, log.log_end_offset) == (None, 6)
    abandon(again)


def test_files_of_a_segment_that_could_not_be_made_are_let_go(tmp_path: Path) -> None:
    pool = FilePool()
    log = make_log(tmp_path, pool=pool)
    append(log, batch(), NOW)
    log.segments[-1].seal()
    held = len(pool)
    with no_room_for(".log"), pytest.raises(OSError):
        log.roll()
    assert len(pool) == held


def test_with_three_descriptors_left_a_log_rolls_reads_and_recovers_its_place(tmp_path: Path) -> None:
    """The pool gives up what is not needed now: of the logs' own files there are always some."""
    pool = FilePool()
    log = make_log(tmp_path, pool=pool, segment_bytes=2000, index_interval_bytes=100)
    for number in range(20):
        append(log, batch(size=500), NOW + number)
    assert len(pool) > 10
    with no_descriptor_left(but=3):
        for number in range(20, 40):
            append(log, batch(size=500), NOW + number)
        assert len(read_all(log)) == log.size
        log.flush()
        log.close()
    assert (log.offline, log.log_end_offset, len(log.segments)) == (None, 40, 14)
    assert len(read_all(log)) == log.size


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


def renumbered(data: bytearray, base_offset: int) -> bytes:
    return base_offset.to_bytes(8, "big") + bytes(data[8:])


def segment_file(folder: Path, base_offset: int, *batches: bytes) -> None:
    (folder / f"{base_offset:020d}.log").write_bytes(b"".join(batches))


def test_recovery_keeps_segments_behind_a_gap_that_compaction_has_left(tmp_path: Path) -> None:
    settings = {"cleanup_policy": ("compact",)}
    manager = opened(tmp_path)
    log = manager.create(spec(**settings))
    folder = log.directory
    abandon(manager)
    one = batch(3, key=b"k")
    segment_file(folder, 0, renumbered(one, 0))
    segment_file(folder, 100, renumbered(one, 120))
    segment_file(folder, 200, renumbered(one, 200))
    # Behind a known recovery point nothing is compacted, so that a gap there would be a loss.
    (tmp_path / RECOVERY_POINTS).unlink(missing_ok=True)
    again = opened(tmp_path, spec(**settings))
    log = again.logs[log.topic_partition]
    assert (log.offline, log.log_end_offset) == (None, 203)
    assert [segment.base_offset for segment in log.segments] == [0, 100, 200]
    assert read_all(log) == b"".join(renumbered(one, base) for base in (0, 120, 200))
    assert append(log, one, NOW) == 203
    abandon(again)


def test_recovery_keeps_nothing_behind_a_gap_that_is_a_loss(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec())
    folder = log.directory
    abandon(manager)
    segment_file(folder, 0, renumbered(batch(3), 0))
    segment_file(folder, 100, renumbered(batch(3), 100))
    again = opened(tmp_path, spec())
    log = again.logs[log.topic_partition]
    assert (log.offline, log.log_end_offset, len(log.segments)) == (None, 3, 1)
    abandon(again)


def test_a_producer_snapshot_of_lost_records_is_not_used_later(tmp_path: Path) -> None:
    """Power goes while a roll is under way: the snapshot has reached the disk, the records before it have not."""
    fields: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}
    manager = opened(tmp_path)
    log = manager.create(spec())
    for sequence in range(6):
        append(log, batch(base_sequence=sequence, **fields), NOW)
    path, kept = log.segments[0].path(".log"), log.size // 2
    log.roll()
    for suffix in (".log", ".index", ".timeindex"):
        (log.directory / f"{6:020d}{suffix}").unlink()
    os.truncate(path, kept)
    abandon(manager)
    manager = opened(tmp_path, spec())
    log = manager.logs[log.topic_partition]
    assert log.log_end_offset == 3
    append(log, batch(10), NOW)  # past where the snapshot stands
    log.roll()
    (log.directory / f"{13:020d}.snapshot").unlink()  # and the next one is lost
    log.flush()
    manager.directories[0].upkeep.write_offsets(manager.logs, dict(manager.logs))
    abandon(manager)
    manager = opened(tmp_path, spec())
    log = manager.logs[log.topic_partition]
    assert append(log, batch(base_sequence=3, **fields), NOW) == 13
    abandon(manager)


async def test_a_look_at_what_a_start_has_trusted_waits_for_a_descriptor(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec()), batch(), NOW)
    manager.close()
    again = opened(tmp_path, spec())
    log = next(iter(again.logs.values()))
    await again.soft_checkpoint()  # its threads and imports are there
    directory = again.directories[0]
    directory._inspection.add(again.logs)
    with no_descriptor_left():
        await directory._inspection.go_on(again.logs, directory._ids)
    assert (log.offline, len(directory._inspection)) == (None, 1)
    await again.inspect()
    assert (log.offline, len(directory._inspection)) == (None, 0)
    again.close()
