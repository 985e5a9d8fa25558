"""One data directory: what a start takes on trust, what a new partition inherits, what a stop leaves behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.log.cleaner.checkpoint import CleanerCheckpoint
from leafcuttr.log.directory import CLEAN_SHUTDOWN, LogDirectory
from leafcuttr.log.files.failed_sync import SyncFailedError, is_marked
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.directory import DataDirectory
from leafcuttr.log.layout.folders import LogSpec
from leafcuttr.log.layout.partition_state import read_state
from leafcuttr.log.recovery.known import Reread
from leafcuttr.runtime.runtime import Runtime
from leafcuttr_sdk import TopicPartition
from support.descriptors import none_left
from support.logs import CalmDisk, HandClock, append, batch
from support.managers import spec

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def opened(path: Path, *specs: LogSpec, pool: FilePool | None = None) -> LogDirectory:
    """The directory with these logs loaded."""
    data = DataDirectory.open(path, node_id=1)
    runtime = Runtime.new(HandClock())
    pool = FilePool(descriptors=runtime.descriptors) if pool is None else pool
    directory = LogDirectory(data, runtime, Settings(), pool, CalmDisk())
    directory.read_records()
    directory.load(specs, {each.topic_partition for each in specs}, frozenset(), Reread())
    return directory


def make(directory: LogDirectory, *specs: LogSpec) -> None:
    """Partitions with one record each."""
    for each in specs:
        directory.prepare(each)
        append(directory.adopt(each), batch())


@pytest.mark.parametrize("killed", [False, True])
async def test_a_mark_of_a_clean_stop_counts_with_the_state_file_of_one_only(
    tmp_path: Path, killed: bool
) -> None:
    """The loss of power may bring the mark back that a start has removed: what was written since is read."""
    directory = opened(tmp_path)
    make(directory, spec())
    assert directory.close()
    if killed:
        directory = opened(tmp_path, spec())
        append(directory.logs[TP], batch())
        await directory.soft_checkpoint()
        file = tmp_path / "t-0" / f"{0:020d}.log"
        size = file.stat().st_size
        directory.release()
        os.truncate(file, size - 10)
        os.truncate(file, size)
        (tmp_path / CLEAN_SHUTDOWN).touch()
    directory = opened(tmp_path, spec())
    assert directory.stopped_cleanly is not killed
    assert directory.logs[TP].log_end_offset == 1, "the torn batch is cut"
    assert directory.close()


def test_a_start_whose_mark_is_gone_is_unclean_whatever_the_state_file_says(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    make(directory, spec())
    assert directory.close()
    directory = opened(tmp_path, spec())
    append(directory.logs[TP], batch())
    directory.release()
    state = read_state(tmp_path)
    assert state is not None
    assert state.clean
    directory = opened(tmp_path, spec())
    assert not directory.stopped_cleanly
    assert directory.logs[TP].log_end_offset == 2
    assert directory.close()


def test_a_new_partition_is_cleaned_from_its_beginning(tmp_path: Path) -> None:
    """Not from where an earlier one of its name was cleaned to; others keep what they have."""
    directory = opened(tmp_path)
    make(directory, spec(), spec(1))
    directory.cleaned.put(TP, 1)
    directory.cleaned.put(OTHER, 1)
    directory.delete(TP)
    make(directory, spec())
    for checkpoint in (directory.cleaned, CleanerCheckpoint(tmp_path)):
        assert (checkpoint.get(TP), checkpoint.get(OTHER)) == (None, 1)
    assert directory.close()


def test_a_clean_stop_records_nothing_of_a_log_whose_sync_has_failed(tmp_path: Path) -> None:
    """One that is offline for another reason keeps its line."""
    specs = [spec(number) for number in range(3)]
    directory = opened(tmp_path)
    make(directory, *specs)
    assert directory.close()
    directory = opened(tmp_path, *specs)
    first, second, third = directory.logs.values()
    first.handle_failed_sync(SyncFailedError(errno.EIO, os.strerror(errno.EIO), "a file"))
    second.take_offline("a test")
    assert directory.close()
    state = read_state(tmp_path)
    assert state is not None
    assert (state.clean, set(state.partitions)) == (True, {second.topic_partition, third.topic_partition})


def fsync_of(monkeypatch: pytest.MonkeyPatch, place: Path, *, fails: bool) -> list[str]:
    """What is forced to disk from now on, by its path; with `fails` the first try to do so with this directory, or
    file, fails."""
    synced: list[str] = []

    def recorded(real: Callable[[int], None], descriptor: int) -> None:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        synced.append(path)
        if fails and path == str(place) and synced.count(path) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", partial(recorded, os.fsync))
    monkeypatch.setattr(os, "fdatasync", partial(recorded, os.fdatasync))
    return synced


def test_a_clean_stop_syncs_the_names_of_all_folders_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = opened(tmp_path)
    make(directory, *(spec(number) for number in range(12)))
    synced = fsync_of(monkeypatch, tmp_path, fails=False)
    assert directory.close()
    logs = {str(tmp_path / f"t-{number}" / f"{0:020d}.log") for number in range(12)}
    assert logs <= set(synced)
    before_a_log = synced[: min(synced.index(path) for path in logs)]
    assert before_a_log == [str(tmp_path)]
    # The other times are those of the checkpoints and of the mark that are written behind them.
    after_the_logs = synced[max(len(synced) - 1 - synced[::-1].index(path) for path in logs) :]
    assert synced.count(str(tmp_path)) == 1 + after_the_logs.count(str(tmp_path))


def test_where_the_names_of_folders_cannot_be_synced_the_stop_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log whose folder was synced before, by a sync of its own, is no worse for it."""
    directory = opened(tmp_path)
    make(directory, spec(), spec(1), spec(2))
    directory.logs[TP].flush()
    append(directory.logs[TP], batch())
    synced = fsync_of(monkeypatch, tmp_path, fails=True)
    assert not directory.close()
    assert any(path.startswith(f"{tmp_path}/t-0/") for path in synced)
    assert not any(path.startswith((f"{tmp_path}/t-1/", f"{tmp_path}/t-2/")) for path in synced)
    assert [log.sync_failed for log in directory.logs.values()] == [False, True, True]
    assert [is_marked(tmp_path / f"t-{number}") for number in range(3)] == [False, True, True]
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize("partitions", [1, 3])
def test_where_one_log_cannot_be_synced_the_stop_is_not_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    directory = opened(tmp_path)
    make(directory, *map(spec, range(partitions)))
    fsync_of(monkeypatch, tmp_path / "t-0" / f"{0:020d}.log", fails=True)
    assert not directory.close()
    assert [log.sync_failed for log in directory.logs.values()] == [True] + [False] * (partitions - 1)
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize("in_its_way", [False, True])
def test_a_partition_is_made_where_files_of_others_have_all_descriptors(
    tmp_path: Path, in_its_way: bool
) -> None:
    directory = opened(tmp_path)
    make(directory, *(spec(partition) for partition in range(3)))
    if in_its_way:
        (tmp_path / "t-9").mkdir()
    with none_left():
        directory.prepare(spec(9))
    append(directory.adopt(spec(9)), batch())
    assert sorted(path.name for path in (tmp_path / "t-9").iterdir()) == sorted(
        path.name for path in (tmp_path / "t-0").iterdir()
    )


def test_what_is_discarded_leaves_no_open_file(tmp_path: Path) -> None:
    pool = FilePool()
    directory = opened(tmp_path, pool=pool)
    before = len(pool)
    directory.prepare(spec())
    assert len(pool) > before
    directory.discard(spec())
    assert len(pool) == before
    assert directory.close()
