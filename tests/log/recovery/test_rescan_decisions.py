"""Segments read again at a start: what is told of it, where it is cut, which faults are mended and which are not."""

import os
import re
import time
from pathlib import Path

import pytest

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.log import Log
from leafcuttr.log.recovery import rescan
from leafcuttr.log.recovery.known import MAX_OFFSET, Known, Reread
from leafcuttr.log.recovery.recovery import restore
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.upkeep.soft_checkpoint import state_of
from support.logs import NOW, append, append_marker, batch, make_log, read_all, resources
from support.managers import TOPIC_ID, spec

SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100}
COMPACT = {"cleanup_policy": ("compact",)}
BATCH = len(batch(3))


def filled(folder: Path, batches: int = 30, **overrides: object) -> Log:
    log = make_log(folder, **overrides)
    for _ in range(batches):
        append(log, batch(3, key=b"k"), NOW)
    log.flush_indexes()
    return log


def restored(
    folder: Path,
    *,
    known: Known | None = None,
    point: int = 0,
    same_boot: bool = False,
    compacted_at_most: int = MAX_OFFSET,
    reread: Reread | None = None,
    **overrides: object,
) -> Log:
    facts = known or Known(None, False, point, 0, same_boot, compacted_at_most, reread)
    return restore(spec(**overrides), folder, facts, exists=True, resources=resources())


def displace(log: Log, offset: int, by: int) -> None:
    for segment in log.segments:
        for position, header in list(segment.scan()):
            if header.base_offset == offset:
                with open(segment.path(".log"), "r+b") as file:  # noqa: PTH123
                    file.seek(position)
                    file.write((offset + by).to_bytes(8, "big", signed=True))


def damage(path: str, at: int) -> None:
    content = bytearray(Path(path).read_bytes())
    content[at] ^= 1
    Path(path).write_bytes(content)


def test_what_is_read_again_is_counted(tmp_path: Path) -> None:
    log, reread = filled(tmp_path, **SMALL), Reread()
    restored(tmp_path, reread=reread, **SMALL)
    assert (reread.partitions, reread.bytes) == (1, log.size)
    restored(tmp_path, reread=reread, point=log.segments[1].base_offset, **SMALL)
    assert (reread.partitions, reread.bytes) == (2, 2 * log.size - log.segments[0].size)


def test_an_empty_log_counts_as_read_with_no_bytes(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    reread = Reread()
    restored(tmp_path, reread=reread)
    assert (reread.partitions, reread.bytes) == (1, 0)


@pytest.mark.parametrize("long", [True, False])
def test_a_long_scan_is_announced_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, long: bool
) -> None:
    log = filled(tmp_path)
    monkeypatch.setattr(rescan, "_LONG_SCAN", log.size + (not long))
    began = time.monotonic()
    restored(tmp_path)
    said = [record.getMessage() for record in caplog.records]
    if not long:
        assert said == []
        return
    assert said[0] == "t-0: reading 0 MB to recover it"
    took = re.fullmatch(r"t-0: recovered up to offset 90 in (\d+\.\d) s", said[1])
    assert took is not None
    assert float(took[1]) <= time.monotonic() - began + 0.1


# Where the log is cut


@pytest.mark.parametrize(("point", "cut"), [(87, True), (88, False)])
def test_damage_at_the_recovery_point_is_cut_and_before_it_is_not(
    tmp_path: Path, point: int, cut: bool
) -> None:
    log = filled(tmp_path)
    path, size = log.segments[0].path(".log"), log.size
    damage(path, size - 1)
    found = restored(tmp_path, point=point)
    if cut:
        assert (found.offline, found.log_end_offset) == (None, 87)
    else:
        assert found.offline is not None
        assert found.offline.endswith("the CRC of the batch does not match (offset 87, synced up to 88)")
        assert os.stat(path).st_size == size  # noqa: PTH116


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("how", ["damaged", "more behind it"])
def test_what_comes_behind_the_cut_goes_whether_or_not_it_would_follow(
    tmp_path: Path, how: str, compact: bool
) -> None:
    policy = COMPACT if compact else {}
    log = filled(tmp_path, **SMALL, **policy)
    second, third = log.segments[1], log.segments[2].base_offset
    if how == "damaged":
        damage(second.path(".log"), second.size - 1)
    else:
        with open(second.path(".log"), "ab") as file:  # noqa: PTH123
            file.write(b"more")
    found = restored(tmp_path, **SMALL, **policy)
    assert (found.offline, found.log_end_offset) == (None, third - 3 if how == "damaged" else third)
    assert [segment.base_offset for segment in found.segments] == [0, second.base_offset]
    assert os.stat(second.path(".log")).st_size == found.segments[1].size  # noqa: PTH116


@pytest.mark.parametrize("synced_behind", [True, False])
def test_a_missing_segment_ends_the_log_unless_more_was_synced(tmp_path: Path, synced_behind: bool) -> None:
    log = filled(tmp_path, **SMALL)
    gone, later = log.segments[1].base_offset, log.segments[2].path(".log")
    os.unlink(log.segments[1].path(".log"))  # noqa: PTH108
    found = restored(tmp_path, point=gone + synced_behind, **SMALL)
    if synced_behind:
        assert found.offline == (
            f"{later}: no record before it from offset {gone} on (synced up to {gone + 1})"
        )
        assert Path(later).exists()
    else:
        assert (found.offline, found.log_end_offset) == (None, gone)
        assert not any(path.name.startswith(Path(later).stem) for path in tmp_path.iterdir())


def test_a_segment_that_begins_inside_another_ends_the_log(tmp_path: Path) -> None:
    """What comes behind it goes too, although it would follow the one before."""
    log = filled(tmp_path, **SMALL)
    second = log.segments[1].base_offset
    for suffix in (".log", ".index", ".timeindex"):
        (tmp_path / f"{second - 3:020d}{suffix}").touch()
    found = restored(tmp_path, **SMALL)
    assert (found.offline, found.log_end_offset) == (None, second)
    assert [segment.base_offset for segment in found.segments] == [0]
    assert len(list(tmp_path.glob("*.log"))) == 1


def test_the_leader_epochs_are_those_of_the_batches(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(3), NOW)
    log.leader_epoch = 4
    for _ in range(3):
        append(log, batch(3), NOW)
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\n0 0\n")
    assert restored(tmp_path).leader_epoch == 4
    assert path.read_text() == "0\n2\n0 0\n4 3\n"


def test_the_indexes_of_the_segment_that_was_cut_are_on_the_disk(tmp_path: Path) -> None:
    """Else the first soft checkpoint would speak for entries that a kill takes."""
    log = filled(tmp_path, **SMALL)
    second = log.segments[1]
    damage(second.path(".log"), second.size - 1)
    for suffix in (".index", ".timeindex"):
        os.truncate(second.path(suffix), 0)
    found = restored(tmp_path, **SMALL)
    assert found.log_end_offset == log.segments[2].base_offset - 3
    on_disk = Segment.open(str(tmp_path), second.base_offset, pool=FilePool())
    assert len(on_disk.index) > 0
    assert on_disk.index.entries() == found.segments[1].index.entries()
    assert on_disk.time_index.entries() == found.segments[1].time_index.entries()


def test_a_removed_segment_holds_no_descriptor(tmp_path: Path) -> None:
    """Its space would be lost until the broker stops."""
    log = filled(tmp_path, **SMALL)
    for segment in log.segments:
        segment.close()
    found = restored(tmp_path, known=Known(None, False, 0, 100), **SMALL)
    assert (found.log_start_offset, found.log_end_offset) == (100, 100)
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_link(fd)]  # noqa: PTH115, PTH208
    assert [path for path in held if path.startswith(str(tmp_path)) and path.endswith("(deleted)")] == []


def _is_link(fd: str) -> bool:
    return os.path.islink(f"/proc/self/fd/{fd}")  # noqa: PTH114


# Indexes and producers


@pytest.mark.parametrize("lost", [".index", ".timeindex", "both"])
def test_without_an_index_the_whole_segment_is_read(tmp_path: Path, lost: str) -> None:
    """Also where the state file vouches for its first part."""
    log = make_log(tmp_path, index_interval_bytes=100)
    append(log, batch(3, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True), NOW)
    for _ in range(10):
        append(log, batch(3), NOW)
    log.flush_indexes()
    state = state_of(log, TOPIC_ID)
    append(log, batch(3), NOW)
    append_marker(log, 5, 0, commit=False, coordinator_epoch=0)
    before = log.segments[0].index.entries(), log.segments[0].time_index.entries()
    for suffix in (".index", ".timeindex") if lost == "both" else (lost,):
        os.unlink(log.segments[0].path(suffix))  # noqa: PTH108
    found = restored(tmp_path, known=Known(state, False, 0, 0, True), index_interval_bytes=100)
    assert (found.offline, found.log_end_offset) == (None, 37)
    assert (found.segments[0].index.entries(), found.segments[0].time_index.entries()) == before
    assert found.segments[0].txn_index.aborted() == log.segments[0].txn_index.aborted()
    assert len(found.segments[0].txn_index.aborted()) == 1
    assert found.producers.dump() == log.producers.dump()


def test_an_index_of_another_file_is_made_anew(tmp_path: Path) -> None:
    log = filled(tmp_path, 10, index_interval_bytes=100)
    state = state_of(log, TOPIC_ID)
    append(log, batch(3, key=b"k"), NOW)
    path = Path(log.segments[0].path(".index"))
    entries = path.read_bytes()
    path.write_bytes(bytes(len(entries) - 8) + entries[-8:-1] + bytes([entries[-1] ^ 1]))
    found = restored(tmp_path, known=Known(state, False, 0, 0, True), index_interval_bytes=100)
    assert found.log_end_offset == 33
    assert found.segments[0].index.entries() == log.segments[0].index.entries()


def test_an_empty_segment_behind_a_compacted_gap_says_where_the_log_ends(tmp_path: Path) -> None:
    log = filled(tmp_path, **SMALL, **COMPACT)
    log.roll()
    for segment in log.segments[1:-1]:
        for suffix in (".log", ".index", ".timeindex", ".snapshot"):
            Path(segment.path(suffix)).unlink()
    found = restored(tmp_path, compacted_at_most=90, **SMALL, **COMPACT)
    assert [segment.base_offset for segment in found.segments] == [0, 90]
    assert found.log_end_offset == 90
    assert restored(tmp_path, compacted_at_most=89, **SMALL, **COMPACT).log_end_offset < 90


# Batches whose base offset is not the one due


def test_the_name_of_the_next_segment_says_where_the_last_batch_belongs(tmp_path: Path) -> None:
    log = filled(tmp_path, **SMALL)
    data, last = read_all(log), log.segments[1].base_offset - 3
    displace(log, last, by=1)
    found = restored(tmp_path, **SMALL)
    assert (found.offline, found.log_end_offset) == (None, 90)
    assert read_all(found) == data


@pytest.mark.parametrize(("point", "mended"), [(30, True), (31, False)])
@pytest.mark.parametrize("by", [1, -1])
def test_a_batch_at_the_recovery_point_is_put_right_and_one_before_it_is_not(
    tmp_path: Path, by: int, point: int, mended: bool
) -> None:
    log = filled(tmp_path)
    data = read_all(log)
    displace(log, 30, by)
    found = restored(tmp_path, point=point)
    if mended:
        assert (found.offline, read_all(found)) == (None, data)
    else:
        assert found.offline is not None
        assert found.offline.endswith(f"base offset {30 + by}, 30 is due (synced up to 31)")


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize(("by", "point"), [(5, 0), (5, 91), (5, 92), (5, 95), (-5, 0)])
def test_a_last_batch_that_nothing_speaks_for(tmp_path: Path, compact: bool, by: int, point: int) -> None:
    """It is put right where no gap can be: compaction makes gaps, and so may what was there when it was synced."""
    policy = COMPACT if compact else {}
    log = filled(tmp_path, 30, **policy)
    append(log, batch(1, key=b"k"), NOW)
    displace(log, 90, by)
    found = restored(tmp_path, point=point, same_boot=True, **policy)
    if by < 0 and compact:
        expected = (None, 90)
    elif compact or point >= 95:
        expected = (None, 96)
    elif point > 90:
        expected = (f"{log.segments[0].path('.log')}: at byte {30 * len(batch(3, key=b'k'))}: base offset 95, "
                    f"90 is due (synced up to {point})", None)  # fmt: skip
    else:
        expected = (None, 91)
    assert found.offline == expected[0]
    if expected[1] is not None:
        assert found.log_end_offset == expected[1]
