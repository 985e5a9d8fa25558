"""Topic sync mode: what is on the disk when a record is acknowledged, and when it can be seen."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from leafcuttr.errors import StorageError
from leafcuttr.log.append import commit
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from leafcuttr.log.layout.folders import make_folder
from leafcuttr.log.log import Log
from support.logs import (
    NOW,
    TP,
    append,
    append_and_wait,
    batch,
    config,
    make_log,
    read_all,
    resources,
    would_wait,
    write_by_worker,
)
from support.managers import TOPIC_ID, abandon, opened, spec

Views = list["memoryview | bytearray"]


@contextmanager
def synced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of all that is forced to disk meanwhile, and `+<name>` for each write of an O_DSYNC file."""
    names: list[str] = []

    def record(real: Callable[[int], None], fd: int) -> None:
        names.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        real(fd)

    def write(fd: int, views: Views, position: int, size: int) -> None:
        if has_dsync(fd):
            names.append("+" + Path(f"/proc/self/fd/{fd}").readlink().name)
        written(fd, views, position, size)

    written = commit.write_all
    with monkeypatch.context() as patch:
        for real in (os.fsync, os.fdatasync):
            patch.setattr(os, real.__name__, partial(record, real))
        patch.setattr(commit, "write_all", write)
        yield names


def has_dsync(fd: int) -> bool:
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DSYNC)


def stage(log: Log, data: bytearray | None = None) -> None:
    log.stage(memoryview(data or batch()), Origin.CLIENT, now_ms=NOW)


async def acknowledged(log: Log, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the acknowledgement of one more record has waited for."""
    with synced(monkeypatch) as names:
        await append_and_wait(log, batch(), NOW)
    return names


def file_name(base: int) -> str:
    return f"{base:020d}.log"


async def test_one_write_is_all_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True)
    assert not would_wait(log)
    await append_and_wait(log, batch(), NOW)
    assert await acknowledged(log, monkeypatch) == ["+" + file_name(0)]
    assert log.unflushed == 0
    stage(log)
    assert would_wait(log)
    await write_by_worker(log)
    assert len(read_all(log)) == log.size


async def test_the_first_acknowledgement_waits_for_the_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t-0"
    make_folder(folder, TOPIC_ID)
    log = Log.create(TP, folder, config(lc_log_sync_always=True), resources=resources())
    names = await acknowledged(log, monkeypatch)
    assert names[0] == "+" + file_name(0)
    assert set(names[1:]) == {file_name(0), PARTITION_METADATA, LEADER_EPOCHS, "t-0", tmp_path.name}


async def test_a_new_segment_is_there_for_good_before_its_first_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True, segment_bytes=1000)
    await append_and_wait(log, batch(size=800), NOW)
    stage(log, batch(size=800))
    with synced(monkeypatch) as names:
        await write_by_worker(log)
    assert {"+" + file_name(1), "t-0"} <= set(names)
    assert len(log.segments) == 2


async def test_what_was_there_before_the_switch_is_synced_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path / "t-0", segment_bytes=1000)
    for _ in range(4):
        await append_and_wait(log, batch(size=400), NOW)
    assert [len(log.segments), log.unflushed] == [2, 4]
    log.config = config(lc_log_sync_always=True, segment_bytes=1000)
    names = await acknowledged(log, monkeypatch)
    assert {file_name(0), file_name(2)} <= set(names)
    assert await acknowledged(log, monkeypatch) == ["+" + file_name(4)]
    log.config = config(segment_bytes=1000)
    assert await acknowledged(log, monkeypatch) == []
    assert log.unflushed == 1


async def test_what_an_earlier_process_left_in_the_page_cache_is_synced_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec()), batch(), NOW)
    abandon(manager)
    log = opened(tmp_path, spec(lc_log_sync_always=True)).logs[TP]
    names = await acknowledged(log, monkeypatch)
    assert names[:2] == ["+" + file_name(0), file_name(0)]
    assert await acknowledged(log, monkeypatch) == ["+" + file_name(0)]


async def test_a_preallocated_segment_is_trimmed_for_good_before_the_next_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else zeros at its end could come back with the power and cut the log there."""
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True, segment_bytes=1000, preallocate=True)
    await append_and_wait(log, batch(size=800), NOW)
    first, size = Path(log.segments[0].path(".log")), log.size
    assert first.stat().st_size == 1000
    stage(log, batch(size=800))
    with synced(monkeypatch) as names:
        await write_by_worker(log)
    assert first.stat().st_size == size
    assert names.index(file_name(0)) < names.index("+" + file_name(1))


async def test_synced_writes_find_space_in_their_file(tmp_path: Path) -> None:
    """None of them waits for the new length of the file, but for one in many."""
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True)
    sizes = []
    for _ in range(400):
        await append_and_wait(log, batch(), NOW)
        sizes.append(Path(log.segments[0].path(".log")).stat().st_size)
    assert len(set(sizes)) < 4
    assert log.size < sizes[-1] < 3 * log.size
    assert len(read_all(log)) == log.size
    log.seal()
    assert Path(log.segments[0].path(".log")).stat().st_size == log.size


async def test_space_that_the_disk_does_not_have_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True)

    monkeypatch.setattr(os, "posix_fallocate", full_disk)
    for expected in range(3):
        assert await append_and_wait(log, batch(), NOW) == expected
    assert Path(log.segments[0].path(".log")).stat().st_size == log.size


async def test_a_failed_write_gives_its_space_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True)
    await append_and_wait(log, batch(), NOW)
    with monkeypatch.context() as patch:
        patch.setattr(commit, "write_all", full_disk)
        with pytest.raises(StorageError):
            await append_and_wait(log, batch(), NOW)
    assert Path(log.segments[0].path(".log")).stat().st_size == log.size
    assert await append_and_wait(log, batch(), NOW) == 1
    assert Path(log.segments[0].path(".log")).stat().st_size > log.size


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_reserved_space_is_no_damage_after_a_kill(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec(lc_log_sync_always=True))
    for _ in range(3):
        await append_and_wait(log, batch(), NOW)
    data = read_all(log)
    abandon(manager)
    manager = opened(tmp_path, spec(lc_log_sync_always=True))
    log = manager.logs[TP]
    assert (log.offline, log.log_end_offset, read_all(log)) == (None, 3, data)
    assert [record for record in caplog.records if record.levelname != "INFO"] == []
    assert Path(log.segments[0].path(".log")).stat().st_size == log.size
    abandon(manager)


async def test_nobody_sees_a_record_before_its_write_has_returned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True)
    await append_and_wait(log, batch(), NOW)
    began, may_end = threading.Event(), threading.Event()
    written = commit.write_all

    def slow(fd: int, views: Views, position: int, size: int) -> None:
        written(fd, views, position, size)
        began.set()
        may_end.wait()

    monkeypatch.setattr(commit, "write_all", slow)
    acknowledged = False

    async def produce() -> None:
        nonlocal acknowledged
        stage(log)
        await write_by_worker(log)
        acknowledged = True

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            await trio.to_thread.run_sync(began.wait)
            assert (log.high_watermark, log.last_stable_offset, acknowledged) == (1, 1, False)
            assert log.read(1, 1000, at_least_one=True).region is None
            assert len(read_all(log)) == log.size
            may_end.set()
    finally:
        may_end.set()
    assert (log.high_watermark, acknowledged) == (2, True)


async def test_all_that_wait_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path / "t-0", lc_log_sync_always=True)
    await append_and_wait(log, batch(), NOW)

    async def produce() -> None:
        stage(log)
        await write_by_worker(log)

    with synced(monkeypatch) as names:
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(produce)
    assert log.log_end_offset == 101
    assert 1 <= len(names) <= 3


def test_a_file_that_a_reader_opened_meanwhile_is_opened_anew(tmp_path: Path) -> None:
    log = make_log(tmp_path / "t-0")
    append(log, batch(), NOW)
    segment = log.segments[-1]
    reading = segment.open_file()
    assert has_dsync(segment.open_for_writing(sync_writes=True).fd)
    assert not has_dsync(reading.fd)
    segment.close()
    assert has_dsync(segment.open_file().fd)
    assert not has_dsync(segment.open_for_writing(sync_writes=False).fd)
