"""What a start believes of one partition, decision by decision: `restore` with what is known made by hand.

One module, longer than most, because all decisions are tried on the same few logs.
"""

import os
from pathlib import Path

import pytest

from leafcuttr.log.files.failed_sync import MARK
from leafcuttr.log.layout.checkpoints import PARTITION_METADATA
from leafcuttr.log.layout.partition_state import PartitionState
from leafcuttr.log.log import Log
from leafcuttr.log.producers.snapshot import write_snapshot
from leafcuttr.log.producers.state import ProducerStateTable
from leafcuttr.log.recovery.known import Known, Reread
from leafcuttr.log.recovery.recovery import restore
from leafcuttr.log.segment.segment import segment_name
from leafcuttr.log.upkeep.soft_checkpoint import state_of
from support.logs import NOW, append, batch, make_log, read_all, resources
from support.managers import TOPIC_ID, spec

SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100}
BATCH = len(batch(3))


def filled(folder: Path, batches: int = 20, **overrides: object) -> Log:
    """A log of batches of three records, its indexes on the disk, left as it is."""
    log = make_log(folder, **overrides)
    for _ in range(batches):
        append(log, batch(3), NOW)
    log.flush_indexes()
    return log


def known_of(log: Log, *, clean: bool = False, point: int = 0, **facts: object) -> Known:
    """What a start knows by the line that this log had in the state file."""
    state = state_of(log, TOPIC_ID)._replace(recovery_point=0)
    return Known(state, clean, point, log.log_start_offset, same_boot=True)._replace(**facts)


def unknown(point: int = 0, start: int = 0) -> Known:
    """What a start knows after the machine has lost its power."""
    return Known(None, False, point, start)


def restored(folder: Path, known: Known, *, exists: bool = True, **overrides: object) -> Log:
    return restore(spec(**overrides), folder, known, exists=exists, resources=resources())


def path_of(log: Log, number: int, suffix: str = ".log") -> Path:
    return Path(log.segments[number].path(suffix))


def damage(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


# What the state says


@pytest.mark.parametrize("point", [0, 30])
def test_all_files_are_gone(tmp_path: Path, point: int) -> None:
    log = filled(tmp_path, 10)
    for path in tmp_path.iterdir():
        path.unlink()
    known = known_of(log, point=point)
    found = restored(tmp_path, known)
    if point:
        assert found.offline == f"{path_of(log, 0)} has 0 bytes, {10 * BATCH} were synced"
    else:
        assert (found.offline, found.log_end_offset) == (None, 0)


@pytest.mark.parametrize("point", [0, 30])
def test_retention_has_dropped_all_that_the_state_knows(tmp_path: Path, point: int) -> None:
    log = filled(tmp_path, 10)
    known = known_of(log, point=point)
    log.roll()
    append(log, batch(3), NOW)
    log.delete_records_before(30)
    assert [segment.base_offset for segment in log.segments] == [30]
    found = restored(tmp_path, known)
    assert (found.offline, found.log_start_offset, found.log_end_offset) == (None, 30, 33)


def test_a_later_segment_does_not_excuse_the_synced_one_that_is_missing(tmp_path: Path) -> None:
    """Retention takes the oldest first: an older one that is there says that nothing was dropped."""
    log = filled(tmp_path, 20, **SMALL)
    known = known_of(log, point=60)
    log.roll()
    path_of(log, -2).unlink()
    found = restored(tmp_path, known, **SMALL)
    assert found.offline is not None
    assert "has 0 bytes" in found.offline


@pytest.mark.parametrize(("clean", "point"), [(True, 0), (False, 12)])
def test_what_was_synced_is_not_read_again(tmp_path: Path, clean: bool, point: int) -> None:
    """`verify` does that; a start only looks at what a disk that was pulled out may have lost."""
    log = filled(tmp_path, 4)
    damage(path_of(log, 0), 4 * BATCH - 1)
    with path_of(log, 0).open("ab") as file:
        file.write(b"more")
    found = restored(tmp_path, known_of(log, clean=clean, point=point))
    assert (found.offline, found.log_end_offset) == (None, 12)
    assert path_of(log, 0).stat().st_size == 4 * BATCH


@pytest.mark.parametrize("intact", [True, False])
def test_the_end_that_the_state_knows_is_read_from_its_last_index_entry_on(
    tmp_path: Path, intact: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(tmp_path, 10, index_interval_bytes=100)
    if not intact:
        damage(path_of(log, 0), 10 * BATCH - 1)
    reread = Reread()
    found = restored(tmp_path, known_of(log, reread=reread), index_interval_bytes=100)
    assert (found.offline, found.log_end_offset) == (None, 30 if intact else 27)
    assert reread.partitions == (0 if intact else 1)
    assert ("knew of offsets up to 30" in caplog.text) is not intact


def test_a_long_end_without_index_entries_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path, 10)
    damage(path_of(log, 0), 10 * BATCH - 1)
    monkeypatch.setattr("leafcuttr.log.recovery.recovery._CHECKED_END", 10 * BATCH - 1)
    assert restored(tmp_path, known_of(log)).log_end_offset == 30
    monkeypatch.setattr("leafcuttr.log.recovery.recovery._CHECKED_END", 10 * BATCH)
    assert restored(tmp_path, known_of(log)).log_end_offset == 27


def test_the_length_of_the_end_counts_from_the_last_index_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path, 20, index_interval_bytes=100)
    damage(path_of(log, 0), 20 * BATCH - 1)
    monkeypatch.setattr("leafcuttr.log.recovery.recovery._CHECKED_END", 3 * BATCH)
    assert restored(tmp_path, known_of(log), index_interval_bytes=100).log_end_offset == 57


def test_an_empty_last_segment_whose_file_is_gone_is_made_again(tmp_path: Path) -> None:
    log = filled(tmp_path, 10)
    log.roll()
    known = known_of(log, point=0)
    path_of(log, 1).unlink()
    found = restored(tmp_path, known)
    assert (found.offline, found.log_end_offset) == (None, 30)
    assert append(found, batch(), NOW) == 30


def test_an_empty_log_that_the_state_knows_is_not_read_again(tmp_path: Path) -> None:
    log, reread = filled(tmp_path, 0), Reread()
    found = restored(tmp_path, known_of(log, reread=reread))
    assert (found.offline, found.log_end_offset, reread.partitions) == (None, 0, 0)


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_clean_stop_knows_all_its_files(tmp_path: Path, which: int) -> None:
    log = filled(tmp_path, 20, **SMALL)
    known = known_of(log, clean=True, point=60)
    with path_of(log, -1).open("ab") as file:
        file.write(b"more")  # else nothing is looked at
    path_of(log, which).unlink()
    found = restored(tmp_path, known, **SMALL)
    assert found.offline == f"{path_of(log, which)} is missing"


def test_a_segment_missing_in_the_middle_is_no_work_of_retention(tmp_path: Path) -> None:
    log = filled(tmp_path, 30, **SMALL)
    assert len(log.segments) > 3
    known = known_of(log)
    path_of(log, 1).unlink()
    found = restored(tmp_path, known, **SMALL)
    assert (found.offline, found.log_end_offset) == (None, log.segments[1].base_offset)


@pytest.mark.parametrize("compact", [True, False])
def test_segments_that_compaction_may_have_exchanged_are_read_again(tmp_path: Path, compact: bool) -> None:
    policy = {"cleanup_policy": ("compact",)} if compact else {}
    log = make_log(tmp_path, **SMALL, **policy)
    for _ in range(20):
        append(log, batch(3, key=b"k"), NOW)
    log.flush_indexes()
    known, size = known_of(log), len(batch(3, key=b"k"))
    os.truncate(path_of(log, 0), log.segments[0].size - size)
    os.truncate(path_of(log, 0, ".index"), 0)
    os.truncate(path_of(log, 0, ".timeindex"), 0)
    reread = Reread()
    found = restored(tmp_path, known._replace(reread=reread), **SMALL, **policy)
    assert found.log_end_offset == 60
    assert reread.partitions == compact
    assert (found.segments[0].size == path_of(log, 0).stat().st_size) is compact


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("rolled", [True, False])
def test_a_segment_sealed_since_may_be_compacted_since(tmp_path: Path, compact: bool, rolled: bool) -> None:
    policy = {"cleanup_policy": ("compact",)} if compact else {}
    log = make_log(tmp_path, **policy)
    for _ in range(10):
        append(log, batch(3, key=b"k"), NOW)
    log.flush_indexes()
    known, before = known_of(log), log.size
    if rolled:
        log.roll()
    append(log, batch(3, key=b"k"), NOW)
    reread = Reread()
    found = restored(tmp_path, known._replace(reread=reread), **policy)
    assert (found.offline, found.log_end_offset) == (None, 33)
    assert reread.bytes == log.size - (0 if compact and rolled else before)


def test_a_clean_stop_speaks_for_a_compacted_log_too(tmp_path: Path) -> None:
    log = make_log(tmp_path, cleanup_policy=("compact",))
    append(log, batch(3, key=b"k"), NOW)
    known, before = known_of(log, clean=True, point=3), log.size
    append(log, batch(1, key=b"k"), NOW)
    log.roll()
    append(log, batch(1, key=b"k"), NOW)
    reread = Reread()
    found = restored(tmp_path, known._replace(reread=reread), cleanup_policy=("compact",))
    assert found.log_end_offset == 5
    assert reread.bytes == log.size - before


# What comes of it


@pytest.mark.parametrize("more", [0, 2])
@pytest.mark.parametrize("point", [0, 12, 34])
def test_a_log_has_what_the_state_says_of_it(tmp_path: Path, more: int, point: int) -> None:
    log = filled(tmp_path, 10)
    for sequence in range(4):
        append(log, batch(1, producer_id=5, producer_epoch=2, base_sequence=sequence), NOW)
    log.flush_indexes()
    state = state_of(log, TOPIC_ID)._replace(leader_epoch=3, recovery_point=6, log_start_offset=4)
    for _ in range(more):
        append(log, batch(1), NOW)
    found = restored(tmp_path, Known(state, False, point, 5, same_boot=True))
    end = 34 + more
    assert (found.log_start_offset, found.log_end_offset, found.leader_epoch) == (5, end, 3)
    if more:
        assert found.recovery_point == max(point, 6)
    entry = found.producers.get(5)
    assert entry is not None
    assert (entry.epoch, entry.last_sequence, len(entry.batches)) == (2, 3, 4)


@pytest.mark.parametrize("more", [0, 2])
@pytest.mark.parametrize("point", [34, 35, 36, 37])
def test_a_log_that_ends_before_what_was_synced_is_offline(tmp_path: Path, more: int, point: int) -> None:
    """Also where the state file knew of no more."""
    log = filled(tmp_path, 11)
    append(log, batch(1), NOW)
    log.flush_indexes()
    known = known_of(log, point=point)
    for _ in range(more):
        append(log, batch(1), NOW)
    end = 34 + more
    said = f"{tmp_path} ends at offset {end}, synced up to {point}" if end < point else None
    assert restored(tmp_path, known).offline == said


def test_the_end_of_a_log_that_is_read_is_not_taken_for_synced(tmp_path: Path) -> None:
    log = filled(tmp_path, 4)
    assert restored(tmp_path, unknown(point=6)).recovery_point == 6
    assert restored(tmp_path, unknown()).recovery_point == 0
    assert restored(tmp_path, unknown(point=12)).offline is None
    found = restored(tmp_path, unknown(point=13))
    assert found.offline == f"{tmp_path} ends at offset 12, synced up to 13"
    assert path_of(log, 0).stat().st_size == 4 * BATCH


def test_the_leader_epoch_comes_from_its_checkpoint_where_the_log_is_read(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n4 12\n")
    assert restored(tmp_path, unknown()).leader_epoch == 4


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_missing_before_the_recovery_point_is_damage(tmp_path: Path, suffix: str) -> None:
    log = filled(tmp_path, **SMALL)
    path_of(log, 0, suffix).unlink()
    found = restored(tmp_path, unknown(point=log.segments[1].base_offset), **SMALL)
    assert found.offline == f"{path_of(log, 0, suffix)} is missing"
    assert restored(tmp_path, unknown(point=log.segments[1].base_offset - 1), **SMALL).offline is None


@pytest.mark.parametrize("point", [0, 3])
def test_a_folder_without_segments(tmp_path: Path, point: int) -> None:
    kept = tmp_path / "notes.txt"
    for path in (kept, tmp_path / f"{segment_name(0)}.log.deleted", tmp_path / f"{segment_name(0)}.index"):
        path.write_bytes(b"something")
    found = restored(tmp_path, unknown(point=point))
    if point:
        assert found.offline == f"{tmp_path} holds no segment, 3 records were synced"
        return
    assert (found.offline, append(found, batch(), NOW)) == (None, 0)
    assert [(pending_deletes.paths, pending_deletes.at_ms) for pending_deletes in found.pending_deletes] == [
        ([str(tmp_path / f"{segment_name(0)}.log.deleted")], 0)
    ]
    assert kept.exists()
    assert found.segments[0].index.entries() == []


def test_a_folder_without_segments_goes_on_at_its_start(tmp_path: Path) -> None:
    found = restored(tmp_path, unknown(start=7))
    assert (found.offline, found.log_start_offset, found.log_end_offset) == (None, 7, 7)
    assert (found.recovery_point, found.leader_epoch) == (0, 0)
    assert append(found, batch(), NOW) == 7


@pytest.mark.parametrize("read", [True, False])
def test_what_was_dropped_before_goes_after_the_start(tmp_path: Path, read: bool) -> None:
    log = filled(tmp_path, 4)
    left = {
        str(tmp_path / name) for name in (f"{segment_name(0)}.log.deleted", "leader-epoch-checkpoint.tmp")
    }
    for path in left:
        Path(path).write_bytes(b"")
    known = unknown() if read else known_of(log)
    pending_deletes = restored(tmp_path, known).pending_deletes
    assert [(set(each.paths), each.at_ms) for each in pending_deletes] == [(left, 0)]


def test_snapshots_of_what_is_lost_go_and_others_stay(tmp_path: Path) -> None:
    filled(tmp_path, 4)
    for offset in (9, 12, 13):
        write_snapshot(tmp_path / f"{segment_name(offset)}.snapshot", ProducerStateTable())
    (tmp_path / f"{segment_name(3)}.snapshot").write_bytes(b"not sound")
    (tmp_path / "old.snapshot").write_bytes(b"not ours")
    restored(tmp_path, unknown())
    assert {path.name for path in tmp_path.glob("*.snapshot")} == {
        f"{segment_name(9)}.snapshot",
        f"{segment_name(12)}.snapshot",
        "old.snapshot",
    }


def test_snapshots_of_what_is_lost_behind_a_checkpoint_go_too(tmp_path: Path) -> None:
    log = filled(tmp_path, 4)
    known = known_of(log)
    append(log, batch(3), NOW)
    for offset in (12, 15, 16):
        write_snapshot(tmp_path / f"{segment_name(offset)}.snapshot", ProducerStateTable())
    restored(tmp_path, known)
    assert not (tmp_path / f"{segment_name(16)}.snapshot").exists()
    assert (tmp_path / f"{segment_name(15)}.snapshot").exists()


@pytest.mark.parametrize("preallocate", [True, False])
@pytest.mark.parametrize("synced", [True, False])
def test_a_log_that_ends_before_its_start_begins_a_new_segment(
    tmp_path: Path, preallocate: bool, synced: bool
) -> None:
    settings = {"segment_bytes": 1 << 16, "preallocate": preallocate, "lc_log_sync_always": synced}
    log = filled(tmp_path, 4)
    for suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
        (tmp_path / f"{segment_name(20)}{suffix}").write_bytes(b"of a log file that is lost")
    found = restored(tmp_path, unknown(start=20), **settings)
    assert (found.offline, found.log_start_offset, found.log_end_offset) == (None, 20, 20)
    assert [segment.base_offset for segment in found.segments] == [20]
    assert path_of(found, 0).stat().st_size == (1 << 16 if preallocate else 0)
    assert found.segments[0].sync_writes is synced
    assert not path_of(found, 0, ".txnindex").exists()
    assert not path_of(found, 0, ".snapshot").exists()
    assert not any(path_of(log, 0, suffix).exists() for suffix in (".log", ".index", ".timeindex"))


# A folder that is not there, and a partition that stays offline


@pytest.mark.parametrize(
    ("end", "point", "made"), [(None, 0, True), (0, 0, True), (3, 0, False), (None, 3, False), (0, 3, False)]
)
def test_a_missing_folder_is_made_again_only_if_nothing_was_in_it(
    tmp_path: Path, end: int | None, point: int, made: bool
) -> None:
    folder = tmp_path / "t-0"
    state = None if end is None else PartitionState(TOPIC_ID, 0, end, 0, 0, (), [])
    found = restored(folder, Known(state, False, point, 0), exists=False)
    assert (found.offline is None) is made
    assert folder.exists() is made
    if made:
        assert "topic_id: AAECAwQFBgcICQoLDA0ODw" in (folder / PARTITION_METADATA).read_text()


@pytest.mark.parametrize(
    ("state_end", "state_start", "point", "start", "expected"),
    [(None, 0, 9, 4, (4, 9)), (None, 0, 9, 20, (20, 20)), (12, 5, 3, 1, (5, 12)), (12, 15, 3, 1, (15, 15))],
)
def test_an_offline_log_keeps_its_offsets(
    tmp_path: Path,
    state_end: int | None,
    state_start: int,
    point: int,
    start: int,
    expected: tuple[int, int],
) -> None:
    """What is asked of it, and noted of it at the next checkpoint, is what was known before."""
    state = None
    if state_end is not None:
        state = PartitionState(TOPIC_ID, state_start, state_end, 0, 0, (), [])
    found = restored(tmp_path / "t-0", Known(state, False, point, start), exists=False)
    assert found.offline is not None
    assert (found.log_start_offset, found.log_end_offset) == expected
    assert (found.recovery_point, found.segments) == (point, [])


def test_damage_of_every_kind_is_said_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = filled(tmp_path, **SMALL)
    second = log.segments[1].base_offset
    path_of(log, 1, ".snapshot").unlink()
    damage(path_of(log, 0), 16)  # the magic of the first batch
    found = restored(tmp_path, unknown(point=second), **SMALL)
    assert found.offline is not None
    assert found.offline.startswith(f"{path_of(log, 0)}: at byte 0: magic")
    (tmp_path / PARTITION_METADATA).write_text("version: 7\n")
    assert restored(tmp_path, unknown()).offline == (
        f"{tmp_path / PARTITION_METADATA}: says version '7', 0 is known"
    )
    (tmp_path / PARTITION_METADATA).unlink()
    (tmp_path / PARTITION_METADATA).mkdir()
    assert restored(tmp_path, unknown()).offline == f"{tmp_path / PARTITION_METADATA}: Is a directory"
    assert all("\n" not in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("marked", [True, False])
def test_an_offline_log_is_in_doubt_as_long_as_its_folder_is_marked(tmp_path: Path, marked: bool) -> None:
    filled(tmp_path, 4)
    if marked:
        (tmp_path / MARK).touch()
    found = restored(tmp_path, unknown(point=100))
    assert found.offline is not None
    assert found.sync_failed is marked


def test_after_a_failed_sync_what_was_not_synced_is_read_from_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path, 30, **SMALL)
    data = read_all(log)
    assert len(log.segments) > 3
    (tmp_path / MARK).touch()
    dropped: list[str] = []
    real = os.posix_fadvise

    def advise(fd: int, *arguments: int) -> None:
        dropped.append(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115
        real(fd, *arguments)

    monkeypatch.setattr(os, "posix_fadvise", advise)
    found = restored(tmp_path, unknown(point=log.segments[2].base_offset), **SMALL)
    assert dropped == [str(path_of(log, number)) for number in range(2, len(log.segments))]
    assert read_all(found) == data
    assert (found.recovery_point, (tmp_path / MARK).exists()) == (90, False)
