"""What a sync of a segment forces to disk, and when: the first one also the names, a failed one leaves a mark."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from leafcuttr.log.files.failed_sync import SyncFailedError, is_marked
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, PARTITION_METADATA
from leafcuttr.log.layout.folders import make_folder
from leafcuttr.log.log import Log
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.segment.sync import sync_records, sync_segment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from support.logs import NOW, TP, append, batch, config, resources

STEM = f"{0:020d}"
NAMES = {PARTITION_METADATA, LEADER_EPOCHS, "t-0", "data"}


@contextmanager
def synced(patch: pytest.MonkeyPatch, failing: str = "") -> Iterator[list[str]]:
    """The names of the files and folders that are synced; the sync of `failing` fails."""
    names: list[str] = []

    def sync(real: Callable[[int], None], fd: int) -> None:
        names.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        if names[-1] == failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd)

    with patch.context() as inner:
        for name in ("fsync", "fdatasync"):
            inner.setattr(os, name, partial(sync, getattr(os, name)))
        yield names


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """The segment of a log with one batch."""
    folder = tmp_path / "data" / "t-0"
    folder.parent.mkdir()
    make_folder(folder, bytes(16))
    log = Log.create(TP, folder, config(), resources=resources())
    append(log, batch(), NOW)
    return log.segments[0]


def test_the_names_are_synced_once(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    with synced(monkeypatch) as names:
        sync_records(segment)
        assert (names[0], set(names[1:])) == (f"{STEM}.log", NAMES)
        names.clear()
        sync_records(segment)
        assert names == [f"{STEM}.log"]


def test_the_names_are_synced_again_in_a_renamed_folder(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_records(segment)
    folder = Path(segment.directory)
    segment.close()
    segment.move_to(str(folder.rename(folder.with_name("t-1"))))
    with synced(monkeypatch) as names:
        sync_records(segment)
    assert set(names[1:]) == NAMES - {"t-0"} | {"t-1"}


def test_a_whole_segment_is_synced_with_its_indexes(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_records(segment)
    segment.txn_index.append(AbortedTransaction(1, 0, 0, 1))
    segment.flush_indexes()
    Path(segment.path(".snapshot")).touch()
    files = [f"{STEM}{suffix}" for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")]
    with synced(monkeypatch) as names:
        sync_segment(segment)
        assert sorted(names) == sorted([*files, "t-0"]), (
            "with the name of the transaction index, which is new"
        )
        names.clear()
        sync_segment(segment)
        assert names == files


@pytest.mark.parametrize("failing", [f"{STEM}.log", f"{STEM}.index", f"{STEM}.txnindex", f"{STEM}.snapshot"])
def test_a_failed_sync_marks_the_folder(
    segment: Segment, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    segment.txn_index.append(AbortedTransaction(1, 0, 0, 1))
    segment.flush_indexes()
    Path(segment.path(".snapshot")).touch()
    with synced(monkeypatch, failing), pytest.raises(SyncFailedError):
        sync_segment(segment)
    assert is_marked(Path(segment.directory))


@pytest.mark.parametrize("failing", [PARTITION_METADATA, "t-0", "data"])
def test_names_that_could_not_be_synced_are_not_taken_for_synced(
    segment: Segment, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    with synced(monkeypatch, failing), pytest.raises(SyncFailedError):
        sync_records(segment)
    assert is_marked(Path(segment.directory))
    assert not segment.name_synced


def test_a_file_that_is_gone_is_no_failed_sync(segment: Segment) -> None:
    segment.mark_deleted()
    Path(segment.path(".log")).unlink()
    with pytest.raises(FileNotFoundError):
        sync_records(segment)
    assert not is_marked(Path(segment.directory))
