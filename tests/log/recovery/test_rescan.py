"""One byte of a batch is changed while the broker is down: what a start promises, for each field of the batch.

Of a log of 20 batches in three segments the first ten are synced: the recovery point is offset 30, in the middle of the
second segment. A start reads the segment that holds the recovery point and the later ones, or, in the same boot of the
machine, what lies behind the last soft checkpoint. What it does not read it leaves as it is. In what it reads:

- A byte that the CRC covers, the CRC itself, the length or the magic: behind the recovery point the log is cut from
  that batch on, and nothing before it is lost. Before it the partition goes offline, and no file is changed.
- A byte of the base offset: behind the recovery point it is written back, and nothing is lost; only the last batch of
  the log is cut instead, if the machine has lost its power. Before the recovery point the partition goes offline.
- A byte of the leader epoch: nothing is lost on either side, nothing is changed, the partition serves, and its epoch is
  not taken from that batch. `leafcuttr verify` names it.
"""

import errno
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.errors import StorageError
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, RECOVERY_POINTS, read_offsets, write_offsets
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.log import Log
from leafcuttr.log.producers.snapshot import write_snapshot
from leafcuttr.log.segment.segment import Segment, segment_name
from leafcuttr.offline.verify import verify_directory
from leafcuttr.wire.batch import HEADER_SIZE, parse
from leafcuttr_sdk import TopicPartition
from support.gates_slice import sampled
from support.logs import NOW, append, batch, read_all
from support.managers import abandon, opened, spec

TP = TopicPartition("t", 0)
BATCHES, RECORDS = 20, 3
SYNCED = 10  # batches before the recovery point
POINT, END = SYNCED * RECORDS, BATCHES * RECORDS
SMALL: dict[str, Any] = {"segment_bytes": 1000, "index_interval_bytes": 100}
SIZE = len(batch(RECORDS, key=b"k"))

BASE_OFFSET = {"base offset": (0, 8)}
LEADER_EPOCH = {"leader epoch": (12, 16)}
FRAME = {"length": (8, 12), "magic": (16, 17)}
# Where each field begins and ends (KIP-98).
CHECKED = {
    **FRAME,
    "CRC": (17, 21),
    "attributes": (21, 23),
    "last offset delta": (23, 27),
    "base timestamp": (27, 35),
    "max timestamp": (35, 43),
    "producer id": (43, 51),
    "producer epoch": (51, 53),
    "base sequence": (53, 57),
    "count": (57, HEADER_SIZE),
    "records": (HEADER_SIZE, SIZE),
}
FIELDS = BASE_OFFSET | LEADER_EPOCH | CHECKED

# Which start it is: what it knows besides the recovery point, and the first batch that it reads.
STARTS = {
    "after another boot": 8,  # the first of the segment that holds the recovery point
    "behind a checkpoint at the recovery point": 10,
    "behind a checkpoint before the recovery point": 5,
}


class Prepared(NamedTuple):
    """A data directory for each start, to be copied, and all bytes of its log."""

    directories: dict[str, Path]
    log: bytes
    settings: dict[str, Any]


def prepare(directory: Path, start: str, **config: Any) -> bytes:
    manager = opened(directory)
    log = manager.create(spec(**SMALL, **config))
    for number in range(BATCHES):
        if number == STARTS[start]:
            trio.run(manager.soft_checkpoint)
        append(log, batch(RECORDS, key=b"k"), NOW)
    content = read_all(log)
    log.flush_indexes()
    abandon(manager)
    write_offsets(directory / RECOVERY_POINTS, {TP: POINT})
    if start == "after another boot":
        (directory / STATE_FILE).unlink()
    assert [segment.base_offset for segment in log.segments] == [0, 24, 48]
    return content


@pytest.fixture(scope="module", params=["delete", "compact"])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    config: dict[str, Any] = {"cleanup_policy": (request.param,)} if request.param == "compact" else {}
    parent = tmp_path_factory.mktemp(request.param)
    directories = {start: parent / start.replace(" ", "-") for start in STARTS}
    contents = {prepare(directory, start, **config) for start, directory in directories.items()}
    assert len(contents) == 1
    return Prepared(directories, contents.pop(), SMALL | config)


class Started(NamedTuple):
    """What a start makes of a damaged directory."""

    log: Log
    before: dict[str, bytes]  # the log files as the start found them

    @property
    def files(self) -> dict[str, bytes]:
        return log_files(self.log.directory)

    @property
    def content(self) -> bytes:
        return b"".join(self.files.values())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "damaged"


def log_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.log*"))}


def started(prepared: Prepared, scratch: Path, start: str, number: int, at: int, mask: int) -> Started:
    """A start on a copy of the directory, in which one byte of batch `number` is changed."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(prepared.directories[start], scratch)
    position = number * SIZE + at
    for name, size in ((name, len(content)) for name, content in log_files(scratch / "t-0").items()):
        if position < size:
            path = scratch / "t-0" / name
            content = bytearray(path.read_bytes())
            content[position] ^= mask
            path.write_bytes(content)
            break
        position -= size
    before = log_files(scratch / "t-0")
    manager = opened(scratch, spec(**prepared.settings))
    abandon(manager)
    return Started(manager.logs[TP], before)


def close(log: Log) -> None:
    for segment in log.segments:
        segment.close()


masks = st.integers(1, 255)
behind = st.integers(SYNCED, BATCHES - 1)
each_start = pytest.mark.parametrize("start", STARTS)
few = settings(max_examples=sampled(16, at_least=2))


def first_read(prepared: Prepared, start: str) -> int:
    """The first batch that such a start reads. In a compacted topic that is one of the segment that holds the recovery
    point, if a segment has been sealed since the checkpoint: compaction may have exchanged what that knew."""
    return STARTS["after another boot"] if "cleanup_policy" in prepared.settings else STARTS[start]


def within(field: str) -> st.SearchStrategy[int]:
    first, end = FIELDS[field]
    return st.integers(first, end - 1)


def assert_offline(found: Started) -> None:
    assert found.log.offline is not None
    assert f"synced up to {POINT}" in found.log.offline
    assert found.files == found.before, "nothing is cut that was synced"
    assert {path.stem for path in found.log.directory.glob("*.index")} == {
        path.stem for path in found.log.directory.glob("*.log")
    }
    with pytest.raises(StorageError):
        append(found.log, batch(1, key=b"k"), NOW)


@pytest.mark.one_in(10)
@each_start
@pytest.mark.parametrize("field", CHECKED)
@few
@given(data=st.data())
def test_behind_the_recovery_point_the_log_is_cut_from_the_damaged_batch_on(
    prepared: Prepared, scratch: Path, start: str, field: str, data: st.DataObject
) -> None:
    number, at, mask = data.draw(behind), data.draw(within(field)), data.draw(masks)
    found = started(prepared, scratch, start, number, at, mask)
    log, end = found.log, number * RECORDS
    assert (log.offline, log.log_end_offset) == (None, end)
    assert found.content == prepared.log[: number * SIZE], (
        "nothing before it is lost, nothing behind it stays"
    )
    assert read_all(log) == found.content
    assert append(log, batch(1, key=b"k"), NOW) == end
    close(log)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("start", ["after another boot", "behind a checkpoint before the recovery point"])
@pytest.mark.parametrize("field", BASE_OFFSET | CHECKED)
@few
@given(data=st.data())
def test_before_the_recovery_point_the_partition_goes_offline_and_nothing_is_cut(
    prepared: Prepared, scratch: Path, start: str, field: str, data: st.DataObject
) -> None:
    number = data.draw(st.integers(first_read(prepared, start), SYNCED - 1))
    at, mask = data.draw(within(field)), data.draw(masks)
    assert_offline(started(prepared, scratch, start, number, at, mask))


@pytest.mark.one_in(12)
@each_start
@pytest.mark.parametrize("field", FIELDS)
@few
@given(data=st.data())
def test_what_a_start_does_not_read_is_left_as_it_is(
    prepared: Prepared, scratch: Path, start: str, field: str, data: st.DataObject
) -> None:
    """But for the batch of the last index entry, by which a start knows that the index is that of the file: what does
    not fit there is damage before the recovery point."""
    last = first_read(prepared, start) - 1
    number = data.draw(st.integers(0, last) | st.just(last))
    at, mask = data.draw(within(field)), data.draw(masks)
    found = started(prepared, scratch, start, number, at, mask)
    indexed = number == last and first_read(prepared, start) != STARTS["after another boot"]
    if indexed and (field in ("base offset", "magic", "last offset delta") or found.log.offline is not None):
        assert field in ("base offset", "magic", "last offset delta", "length")
        assert_offline(found)
        return
    assert (found.log.offline, found.log.log_end_offset) == (None, END)
    assert found.files == found.before
    close(found.log)


@each_start
@few
@given(data=st.data())
def test_a_base_offset_behind_the_recovery_point_is_written_back(
    prepared: Prepared, scratch: Path, start: str, data: st.DataObject
) -> None:
    """Also that of the last batch, unless the machine has lost its power."""
    last = BATCHES - 2 if start == "after another boot" else BATCHES - 1
    number = data.draw(st.integers(SYNCED, last) | st.just(last))
    at, mask = data.draw(within("base offset")), data.draw(masks)
    found = started(prepared, scratch, start, number, at, mask)
    assert (found.log.offline, found.log.log_end_offset) == (None, END)
    assert found.content == prepared.log
    assert read_all(found.log) == prepared.log
    close(found.log)


@few
@given(at=within("base offset"), mask=masks)
def test_the_last_batch_with_another_base_offset_is_cut_after_a_loss_of_power(
    prepared: Prepared, scratch: Path, at: int, mask: int
) -> None:
    """Its block may be an old one of another file."""
    found = started(prepared, scratch, "after another boot", BATCHES - 1, at, mask)
    assert (found.log.offline, found.log.log_end_offset) == (None, END - RECORDS)
    assert found.content == prepared.log[:-SIZE]
    close(found.log)


@each_start
@few
@given(number=st.integers(0, BATCHES - 1) | st.just(BATCHES - 1), at=within("leader epoch"), mask=masks)
def test_a_leader_epoch_costs_nothing(
    prepared: Prepared, scratch: Path, start: str, number: int, at: int, mask: int
) -> None:
    """Before and behind the recovery point. It is not believed either: the epoch that new batches get, and the
    checkpoint, are what they were."""
    found = started(prepared, scratch, start, number, at, mask)
    log = found.log
    assert (log.offline, log.log_end_offset, log.leader_epoch) == (None, END, 0)
    assert found.files == found.before
    epochs = scratch / "t-0" / LEADER_EPOCHS
    assert not epochs.exists() or epochs.read_text() == "0\n1\n0 0\n"
    assert append(log, batch(1, key=b"k"), NOW) == END
    assert parse(read_all(log, END)).leader_epoch == 0
    close(log)
    named = [problem.text for problem in verify_directory(scratch).problems]
    assert any("leader epoch" in text for text in named), named


LOST = {
    "the newest segments": ((24, 48), "{folder} ends at offset 24, synced up to 30"),
    "the newest segment and the end of the one before": (
        (48,),
        "{folder} ends at offset 27, synced up to 30",
    ),
    "all behind the checkpoint": ((24, 48), "{folder} ends at offset 15, synced up to 30"),
    "the end of the last segment but one": (
        (),
        "{folder}/00000000000000000048.log: no record before it from offset 27 on (synced up to 30)",
    ),
}


@pytest.mark.parametrize("start", ["after another boot", "behind a checkpoint before the recovery point"])
@pytest.mark.parametrize("lost", LOST)
def test_where_what_was_synced_is_missing_the_partition_is_offline(
    tmp_path: Path, start: str, lost: str
) -> None:
    """The log ends before the recovery point, and every batch that is there is sound."""
    directory, (removed, reason) = tmp_path / "data", LOST[lost]
    prepare(directory, start)
    folder = directory / "t-0"
    for base in removed:
        for path in folder.glob(f"{base:020d}.*"):
            path.unlink()
    if lost == "all behind the checkpoint":
        path = folder / f"{0:020d}.log"
        path.write_bytes(path.read_bytes()[: 5 * SIZE])
    elif 24 not in removed:
        path = folder / f"{24:020d}.log"
        path.write_bytes(path.read_bytes()[:SIZE])
    before = log_files(folder)
    manager = opened(directory, spec(**SMALL))
    abandon(manager)
    assert manager.logs[TP].offline == reason.format(folder=folder)
    assert log_files(folder) == before
    assert read_offsets(directory / RECOVERY_POINTS) == {TP: POINT}


@pytest.mark.parametrize("start", STARTS)
def test_snapshots_of_what_was_cut_go(tmp_path: Path, start: str) -> None:
    """Once the log has grown past them again, a later recovery would take up producers that never came back: a
    snapshot at the log end is a state that can be, one behind it is not."""
    directory = tmp_path / "data"
    prepare(directory, start)
    folder = directory / "t-0"
    end = 12 * RECORDS
    path = folder / f"{24:020d}.log"
    path.write_bytes(path.read_bytes()[: 4 * SIZE + 20])
    manager = opened(tmp_path / "other")
    producers = manager.create(spec()).producers
    abandon(manager)
    for offset in (end - 1, end, end + 1, END, END + 7):
        write_snapshot(folder / f"{segment_name(offset)}.snapshot", producers)
    log = opened(directory, spec(**SMALL)).logs[TP]
    assert (log.offline, log.log_end_offset) == (None, end)
    assert sorted(int(path.stem) for path in folder.glob("*.snapshot") if int(path.stem) >= end - 1) == [
        end - 1,
        end,
    ]


@pytest.mark.parametrize(("code", "serves"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False)])
def test_a_full_disk_has_no_space_for_the_index_of_the_last_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, serves: bool
) -> None:
    directory = tmp_path / "data"
    prepare(directory, "after another boot")
    flush = Segment.flush_indexes

    def fails(segment: Segment) -> None:
        if segment.base_offset == 48:
            raise OSError(code, os.strerror(code))
        flush(segment)

    with monkeypatch.context() as patched:
        patched.setattr(Segment, "flush_indexes", fails)
        manager = opened(directory, spec(**SMALL))
        log = manager.logs[TP]
        assert (log.offline is None) == serves
        if serves:
            assert log.segments[-1].base_offset == 48
            assert len(read_all(log)) == BATCHES * SIZE
    if serves:
        assert log.flush_indexes(), "as soon as there is space"
    abandon(manager)
