"""A sync that fails: the partition goes offline, nothing is synced again, and the next start believes the disk only.

The failing disk is made at the lowest seam there is, `os.fdatasync` and `os.fsync`; `tests/crash/test_sync_failure.py`
has the system call itself fail in a real broker.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from leafcuttr.errors import StorageError
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import WriteError
from leafcuttr.log.files.failed_sync import (
    MARK,
    SyncFailedError,
    forget_cached,
    is_marked,
    mark,
    sync_directory,
    sync_file,
    unmark,
)
from leafcuttr.log.layout.checkpoints import RECOVERY_POINTS, read_offsets
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, HandClock, append, batch, read_all, would_wait, write_by_worker
from support.managers import abandon, opened, spec

TP = TopicPartition("t", 0)


@contextmanager
def failing_disk(monkeypatch: pytest.MonkeyPatch, suffix: str) -> Iterator[list[str]]:
    """Every sync of a path that ends so fails; the paths of all that is synced meanwhile."""
    paths: list[str] = []

    def sync(real: "partial[None]", fd: int) -> None:
        paths.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        if paths[-1].endswith(suffix):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd)

    with monkeypatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, partial(sync, getattr(os, name)))
        yield paths


def filled(directory: Path, **overrides: object) -> tuple[LogManager, Log]:
    """One partition with ten batches, of which the first five are synced."""
    manager = opened(directory)
    log = manager.create(spec(**overrides))
    for number in range(10):
        append(log, batch(size=100), NOW)
        if number == 4:
            log.flush()
    return manager, log


def again(directory: Path, **overrides: object) -> tuple[LogManager, Log]:
    manager = opened(directory, spec(**overrides))
    return manager, manager.logs[TP]


def damage(log: Log, number: int) -> None:
    """As the disk has it whose page was never written."""
    path = log.segments[-1].path(".log")
    position = [position for position, _ in log.segments[-1].scan()][number]
    with open(path, "r+b") as file:  # noqa: PTH123
        file.seek(position + 80)
        file.write(b"lost")


async def test_a_failed_sync_takes_the_partition_offline_and_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = HandClock()
    manager = opened(tmp_path, clock=clock)
    log = manager.create(spec(flush_ms=1000))
    append(log, batch(), NOW)
    await manager.soft_checkpoint()
    clock.ms += 2000
    with failing_disk(monkeypatch, ".log") as paths:
        await manager.soft_checkpoint()
        assert paths == [log.segments[-1].path(".log")]
        clock.ms += 2000
        await manager.soft_checkpoint()
        await manager.checkpoint()
    assert [path for path in paths if "/t-0" in path] == paths[:1]
    assert log.offline is not None and "Input/output error" in log.offline
    with pytest.raises(StorageError):
        append(log, batch(), NOW)
    with pytest.raises(StorageError):
        log.read(0, 100, at_least_one=True)
    assert len([r for r in caplog.records if "offline" in r.getMessage()]) == 1
    manager.close()


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("leave", ["killed", "stopped"])
@pytest.mark.parametrize("suffix", [".log", ".index", "/t-0"])
async def test_the_next_start_reads_what_was_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, soft: bool, leave: str, suffix: str
) -> None:
    manager, log = filled(tmp_path)
    await manager.soft_checkpoint()  # says that all ten are there
    log.segments[-1].name_synced = False
    with failing_disk(monkeypatch, suffix):
        if leave == "killed":
            with pytest.raises(OSError):
                log.flush()
            if soft:
                await manager.soft_checkpoint()
            abandon(manager)
        else:
            manager.close()
    assert (tmp_path / "t-0" / MARK).exists()
    damage(log, 7)
    manager, log = again(tmp_path)
    assert (log.offline, log.log_end_offset, log.recovery_point) == (None, 7, 7)
    assert not (tmp_path / "t-0" / MARK).exists()
    manager.close()


def test_damage_before_the_last_good_sync_is_still_no_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, log = filled(tmp_path)
    manager.directories[0].upkeep.write_offsets(manager.logs, manager.logs)
    assert read_offsets(tmp_path / RECOVERY_POINTS) == {TP: 5}
    with failing_disk(monkeypatch, ".log"), pytest.raises(OSError):
        log.flush()
    abandon(manager)
    damage(log, 3)
    manager, log = again(tmp_path)
    assert log.offline is not None and "synced up to 5" in log.offline
    assert log.sync_failed
    manager.close()


def test_while_the_disk_still_fails_the_mark_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager, log = filled(tmp_path)
    data = read_all(log)
    with failing_disk(monkeypatch, ".log"):
        with pytest.raises(OSError):
            log.flush()
        abandon(manager)
        for _ in range(2):  # a clean stop in between changes nothing
            manager, log = again(tmp_path)
            assert log.offline is not None
            manager.close()
            assert (tmp_path / "t-0" / MARK).exists()
    manager, log = again(tmp_path)
    assert (log.offline, log.log_end_offset, read_all(log)) == (None, 10, data)
    manager.close()
    manager, log = again(tmp_path)
    assert (log.offline, read_all(log)) == (None, data)
    manager.close()


async def test_what_waited_for_the_sync_is_answered_as_failed_and_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, log = filled(tmp_path, flush_messages=8)
    data = read_all(log)
    for _ in range(3):
        log.stage(memoryview(batch()), Origin.CLIENT, now_ms=NOW)
    assert would_wait(log)
    with failing_disk(monkeypatch, ".log"), pytest.raises(WriteError) as failed:
        await write_by_worker(log)
    assert failed.value.written_to == 10
    abandon(manager)
    manager, log = again(tmp_path)
    assert (log.log_end_offset, read_all(log)) == (10, data)
    manager.close()


async def test_what_was_staged_before_is_not_written_behind_a_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, log = filled(tmp_path)
    log.stage(memoryview(batch()), Origin.CLIENT, now_ms=NOW)
    with failing_disk(monkeypatch, ".log"), pytest.raises(OSError) as failed:
        log.flush()
    log.handle_failed_sync(failed.value)  # type: ignore[arg-type]
    with pytest.raises(WriteError):
        await write_by_worker(log)
    assert log.log_end_offset == 10
    manager.close()


def test_a_new_partition_of_the_same_name_is_not_suspect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager, log = filled(tmp_path)
    with failing_disk(monkeypatch, ".log"), pytest.raises(OSError):
        log.flush()
    manager.delete(TP)
    manager.create(spec(topic_id=bytes(16)))
    assert not (tmp_path / "t-0" / MARK).exists()
    manager.close()


def test_copies_are_dropped_once_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lets go of no page that it has not written."""
    calls: list[tuple[str, str]] = []

    def record(name: str, real: Callable[..., None], fd: int, *rest: int) -> None:
        calls.append((name, Path(f"/proc/self/fd/{fd}").readlink().name))
        assert name != "posix_fadvise" or rest == (0, 0, os.POSIX_FADV_DONTNEED)
        real(fd, *rest)

    paths = [tmp_path / name for name in ("a.log", "b.log")]
    for path in paths:
        path.write_bytes(b"x")
    for name in ("fdatasync", "posix_fadvise"):
        monkeypatch.setattr(os, name, partial(record, name, getattr(os, name)))
    forget_cached(map(str, paths))
    assert calls == [(name, path.name) for path in paths for name in ("fdatasync", "posix_fadvise")]


def test_that_the_mark_goes_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark(str(tmp_path))
    with failing_disk(monkeypatch, "nothing") as paths:
        unmark(tmp_path)
    assert paths == [str(tmp_path)]
    assert not is_marked(tmp_path)
    unmark(tmp_path)


def test_a_mark_is_made_once_and_not_in_a_folder_that_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        mark(str(tmp_path))
        assert is_marked(tmp_path)
    mark(str(tmp_path / "gone"))
    assert not caplog.records
    (tmp_path / "file").touch()
    mark(str(tmp_path / "file"))
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 'file' / MARK} cannot be written: Not a directory"
    ]


def test_a_sync_that_fails_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    path.touch()
    with failing_disk(monkeypatch, ""):
        for sync, what in ((sync_file, path), (sync_directory, tmp_path), (unmark, tmp_path)):
            with pytest.raises(SyncFailedError) as caught:
                sync(what)
            assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(what))
