"""The logs of a directory: start, checkpoints, creation, deletion, clean stop, and what a crash between leaves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from leafcuttr.config.settings import Settings
from leafcuttr.errors import StorageError
from leafcuttr.log.layout import checkpoints
from leafcuttr.log.layout.directory import DataDirectory
from leafcuttr.log.layout.folders import partition_of, renamed
from leafcuttr.log.layout.partition_state import STATE_FILE, read_state
from leafcuttr.log.layout.suffixes import CLEAN_SHUTDOWN
from leafcuttr.log.manager import LogManager, LogSpec
from leafcuttr.runtime.runtime import Runtime
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, CalmDisk, HandClock, append, batch, config, read_all
from support.managers import TOPIC_ID, abandon, opened, spec

TP = TopicPartition("t", 0)
SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100}


class Listener:
    """Counts what a log tells it."""

    def __init__(self) -> None:
        self.told = 0

    def notify(self) -> None:
        self.told += 1


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.is_dir()}


# Start and stop


def test_a_partition_is_made_as_kafka_makes_it(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec())
    assert manager.get(TP) is log
    assert {path.name for path in (tmp_path / "t-0").iterdir()} == {
        f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex", "partition.metadata", "leader-epoch-checkpoint",
    }  # fmt: skip
    assert (tmp_path / "t-0" / "partition.metadata").read_text() == (
        f"version: 0\ntopic_id: {checkpoints.uuid_text(TOPIC_ID)}\n"
    )
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    manager.close()


def test_a_clean_stop_is_taken_up_without_reading_any_folder(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec(**SMALL))
    for sequence in range(20):
        append(log, batch(1, producer_id=5, producer_epoch=0, base_sequence=sequence), NOW)
    data = read_all(log)
    manager.close()
    manager.close()
    assert (tmp_path / CLEAN_SHUTDOWN).exists()
    assert (tmp_path / checkpoints.RECOVERY_POINTS).read_text() == "0\n1\nt 0 20\n"
    assert (tmp_path / "t-0" / f"{20:020d}.snapshot").exists()

    (tmp_path / "t-0" / checkpoints.PARTITION_METADATA).unlink()
    again = opened(tmp_path, spec(**SMALL))
    log = again.logs[TP]
    assert (log.offline, log.log_end_offset, log.recovery_point) == (None, 20, 20)
    assert log.segment_sizes() == [(s.base_offset, s.size, s.largest_timestamp) for s in log.segments]
    assert read_all(log) == data
    entry = log.producers.get(5)
    assert entry is not None
    assert (entry.last_sequence, len(entry.batches)) == (19, 5)
    assert not (tmp_path / "t-0" / checkpoints.PARTITION_METADATA).exists(), "its folder was not looked into"
    assert not (tmp_path / CLEAN_SHUTDOWN).exists(), "a start is unclean until it stops"
    assert append(log, batch(1, producer_id=5, producer_epoch=0, base_sequence=20), NOW) == 20
    again.close()


def test_many_stops_leave_one_snapshot(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec())
    for sequence in range(3):
        append(log, batch(1, producer_id=5, producer_epoch=0, base_sequence=sequence), NOW)
        manager.close()
        manager = opened(tmp_path, spec())
        log = manager.logs[TP]
    abandon(manager)
    assert [path.name for path in (tmp_path / "t-0").glob("*.snapshot")] == [f"{3:020d}.snapshot"]


def test_a_crash_after_a_clean_start_loses_nothing(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec()), batch(2), NOW)
    manager.close()
    for end in range(3, 6):
        manager = opened(tmp_path, spec())
        append(manager.logs[TP], batch(1), NOW)
        abandon(manager)
        manager = opened(tmp_path, spec())
        assert manager.logs[TP].log_end_offset == end
        abandon(manager)


def test_one_damaged_partition_leaves_the_rest_serving(tmp_path: Path) -> None:
    specs = [spec(number) for number in range(3)]
    manager = opened(tmp_path)
    for each in specs:
        append(manager.create(each), batch(2), NOW)
    manager.close()
    os.truncate(tmp_path / "t-1" / f"{0:020d}.log", 10)
    manager = opened(tmp_path, *specs)
    assert [log.offline is None for log in manager.logs.values()] == [True, False, True]
    append(manager.logs[TP], batch(1), NOW)
    manager.close()
    manager = opened(tmp_path, *specs)
    assert [log.offline is None for log in manager.logs.values()] == [True, False, True], "as before"
    assert manager.logs[TP].log_end_offset == 3
    manager.close()


@pytest.mark.parametrize(
    "damage", ["index missing", "index torn", "index wrong", "chain", "size", "topic id"]
)
async def test_damage_that_a_fast_start_does_not_see_is_found_soon_after(tmp_path: Path, damage: str) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec(**SMALL))
    for _ in range(20):
        append(log, batch(1), NOW)
    other = manager.create(spec(1))
    append(other, batch(1), NOW)
    first, folder = log.segments[0], tmp_path / "t-0"
    path, index = folder / f"{0:020d}.log", folder / f"{0:020d}.index"
    manager.close()
    if damage == "index missing":
        index.unlink()
    elif damage == "index torn":
        os.truncate(index, 13)
    elif damage == "index wrong":
        entries = bytearray(index.read_bytes())
        entries[-5] += 1
        index.write_bytes(entries)
    elif damage == "chain":
        data = bytearray(path.read_bytes())
        data[-len(batch(1)) + 16] = 7
        path.write_bytes(data)
    elif damage == "size":
        os.truncate(path, first.size - 1)
    else:
        checkpoints.write_topic_id(folder / checkpoints.PARTITION_METADATA, bytes(16))
    manager = opened(tmp_path, spec(**SMALL), spec(1))
    listener = Listener()
    manager.logs[TP].waiters.add(listener)
    await manager.inspect()
    assert manager.logs[TP].offline is not None
    assert str(folder) in manager.logs[TP].offline
    assert listener.told == 1
    assert manager.logs[TopicPartition("t", 1)].offline is None
    manager.close()


async def test_a_sound_directory_passes_the_inspection(tmp_path: Path) -> None:
    specs = [spec(number, **SMALL) for number in range(100)]
    manager = opened(tmp_path)
    for each in specs:
        log = manager.create(each)
        for number in range(each.partition % 15):
            append(log, batch(2, timestamp=NOW - number), NOW)
    manager.close()
    manager = opened(tmp_path, *specs)
    await manager.inspect()
    assert all(log.offline is None for log in manager.logs.values())
    manager.close()


def test_folders_that_no_topic_has_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager = opened(tmp_path)
    for number in range(7):
        append(manager.create(spec(number)), batch(1), NOW)
    manager.close()
    manager = opened(tmp_path, spec(0))
    assert list(manager.logs) == [TP]
    lines = [record.getMessage() for record in caplog.records if "no topic has" in record.getMessage()]
    assert len(lines) == 1
    assert "t-1, t-2, t-3, t-4, t-5 and 1 more" in lines[0]
    assert names(tmp_path) == {f"t-{number}" for number in range(7)}
    manager.close()


# Creation


async def test_a_creation_that_a_crash_has_cut_short_leaves_nothing(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    manager.prepare(spec())
    abandon(manager)
    assert "t-0" not in names(tmp_path)
    manager = opened(tmp_path)
    assert await manager.remove_deleted() == 1
    assert names(tmp_path) == set()
    manager.close()


def test_a_partition_whose_creation_was_committed_is_made_again(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    manager.prepare(spec())
    abandon(manager)
    manager = opened(tmp_path, spec())
    assert append(manager.logs[TP], batch(1), NOW) == 0
    manager.close()


def test_an_empty_folder_that_no_topic_has_makes_way(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    manager.create(spec())
    manager.close()
    manager = opened(tmp_path)
    log = manager.create(spec(topic_id=bytes(16)))
    assert append(log, batch(1), NOW) == 0
    assert checkpoints.read_topic_id(tmp_path / "t-0" / checkpoints.PARTITION_METADATA) == bytes(16)
    manager.close()


def test_records_that_no_topic_has_are_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec()), batch(1), NOW)
    manager.close()
    manager = opened(tmp_path)
    log = manager.create(spec(topic_id=bytes(16)))
    assert log.log_end_offset == 0
    aside = [path for path in tmp_path.iterdir() if path.name.endswith("-stray")]
    assert len(aside) == 1
    assert (aside[0] / f"{0:020d}.log").stat().st_size
    assert "set aside" in caplog.text
    manager.close()


async def test_a_new_topic_inherits_nothing_of_an_older_one_of_its_name(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec())
    for _ in range(5):
        append(log, batch(1), NOW)
    log.flush()
    log.delete_records_before(4)
    await manager.checkpoint()
    await manager.soft_checkpoint()
    manager.delete(TP)
    append(manager.create(spec(topic_id=bytes(16))), batch(2), NOW)
    abandon(manager)
    manager = opened(tmp_path, spec(topic_id=bytes(16)))
    log = manager.logs[TP]
    assert (log.offline, log.log_start_offset, log.log_end_offset) == (None, 0, 2)
    manager.close()


async def test_a_discarded_preparation_leaves_nothing(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    manager.prepare(spec())
    manager.discard(spec())
    manager.discard(spec())
    assert await manager.remove_deleted() == 1
    assert names(tmp_path) == set()
    assert manager.logs == {}
    manager.close()


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    (tmp_path / "t-0").write_text("a file")
    with pytest.raises(StorageError, match="t-0 cannot be made"):
        manager.create(spec())
    assert manager.logs == {}
    manager.close()


def test_a_preallocated_partition_is_made_and_found_again(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec(preallocate=True, segment_bytes=100_000)), batch(1), NOW)
    manager.close()
    manager = opened(tmp_path, spec(preallocate=True, segment_bytes=100_000))
    assert manager.logs[TP].log_end_offset == 1
    manager.close()


@pytest.mark.parametrize("settings", [{"preallocate": True}, {"lc_log_sync_always": True}])
async def test_a_clean_stop_seals_what_a_checkpoint_has_recorded(
    tmp_path: Path, settings: dict[str, bool]
) -> None:
    """Its zeros would be read at the next start, and be a problem to who verifies the directory."""
    manager = opened(tmp_path)
    log = manager.create(spec(**settings, segment_bytes=100_000, flush_ms=0))
    append(log, batch(1, producer_id=5, producer_epoch=0, base_sequence=0), NOW)
    for _ in range(2):
        await manager.soft_checkpoint()
    size, file = log.segments[0].size, tmp_path / "t-0" / f"{0:020d}.log"
    assert log.recovery_point == 1
    assert file.stat().st_size > size
    manager.close()
    assert file.stat().st_size == size
    assert (tmp_path / "t-0" / f"{0:020d}.timeindex").stat().st_size == 12
    assert (tmp_path / "t-0" / f"{1:020d}.snapshot").exists()
    manager = opened(tmp_path, spec(**settings, segment_bytes=100_000, flush_ms=0))
    assert manager.logs[TP].log_end_offset == 1
    manager.close()


# Deletion


async def test_a_deleted_partition_goes_after_its_delay(tmp_path: Path) -> None:
    clock = HandClock()
    manager = opened(tmp_path, clock=clock)
    log = manager.create(spec(file_delete_delay_ms=1000))
    append(log, batch(3), NOW)
    region = log.read(0, 1000, at_least_one=True).region
    assert region is not None
    listener = Listener()
    log.waiters.add(listener)
    manager.delete(TP)
    manager.delete(TP)
    assert manager.get(TP) is None
    assert listener.told == 1
    with pytest.raises(StorageError):
        append(log, batch(1), NOW)
    (name,) = names(tmp_path)
    assert name.startswith("t-0.")
    assert name.endswith("-delete")
    clock.ms += 999
    assert await manager.remove_deleted() == 0
    clock.ms += 1
    assert await manager.remove_deleted() == 1
    assert names(tmp_path) == set()
    assert len(region.read()) == len(batch(3)), "who still sends it has it"
    manager.close()


async def test_a_deletion_that_a_crash_has_cut_short_is_finished(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec()), batch(3), NOW)
    manager.delete(TP)
    abandon(manager)
    manager = opened(tmp_path)
    assert await manager.remove_deleted() == 1
    assert names(tmp_path) == set()
    manager.close()


async def test_a_deletion_of_which_only_the_metadata_knows_is_finished(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec()), batch(3), NOW)
    append(manager.create(spec(topic="other", topic_id=bytes(16))), batch(3), NOW)
    abandon(manager)
    manager = LogManager.open(tmp_path, runtime=Runtime.new(HandClock()), settings=Settings(), node_id=1)
    manager.load([], deleted=[TOPIC_ID])
    assert await manager.remove_deleted() == 1
    assert names(tmp_path) == {"other-0"}
    manager.close()


def test_a_name_of_the_greatest_length_can_be_deleted() -> None:
    longest = TopicPartition("t" * 249, 99999)
    assert len(renamed(longest, "-delete")) == 255
    assert partition_of(str(longest)) == longest
    assert partition_of(renamed(longest, "-delete")) is None
    assert partition_of("t-00") is None
    assert partition_of("t") is None


async def test_dropped_segments_go_in_a_worker(tmp_path: Path) -> None:
    clock = HandClock()
    manager = opened(tmp_path, clock=clock)
    log = manager.create(spec(retention_ms=1000, file_delete_delay_ms=100, **SMALL))
    for _ in range(20):
        append(log, batch(1), NOW)
    clock.ms += 2000
    assert await manager.apply_retention() > 0
    assert list((tmp_path / "t-0").glob("*.deleted"))
    assert await manager.remove_deleted() == 0
    clock.ms += 100
    assert await manager.remove_deleted() > 0
    assert not list((tmp_path / "t-0").glob("*.deleted"))
    manager.close()


# Checkpoints


async def test_the_soft_checkpoint_writes_only_what_has_changed(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    logs = [manager.create(spec(number, index_interval_bytes=10)) for number in range(3)]
    await manager.soft_checkpoint()
    before = (tmp_path / STATE_FILE).stat().st_ino
    await manager.soft_checkpoint()
    assert (tmp_path / STATE_FILE).stat().st_ino == before, "nothing new, nothing written"
    for _ in range(3):
        append(logs[1], batch(1), NOW)
    await manager.soft_checkpoint()
    state = read_state(tmp_path)
    assert state is not None
    assert not state.clean
    assert [entry.log_end_offset for entry in state.partitions.values()] == [0, 3, 0]
    assert (tmp_path / "t-1" / f"{0:020d}.index").stat().st_size > 0, "index entries are on the disk with it"
    manager.delete(TopicPartition("t", 1))
    await manager.soft_checkpoint()
    state = read_state(tmp_path)
    assert state is not None
    assert [name.partition for name in state.partitions] == [0, 2]
    manager.close()


async def test_a_rolled_segment_is_synced_soon_and_becomes_the_recovery_point(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec(**SMALL))
    for _ in range(20):
        append(log, batch(1), NOW)
    active = log.segments[-1].base_offset
    assert active
    await manager.soft_checkpoint()
    assert log.recovery_point == active
    await manager.checkpoint()
    assert (tmp_path / checkpoints.RECOVERY_POINTS).read_text() == f"0\n1\nt 0 {active}\n"
    abandon(manager)


async def test_flush_ms_syncs_in_time(tmp_path: Path) -> None:
    clock = HandClock()
    manager = opened(tmp_path, clock=clock)
    log = manager.create(spec(flush_ms=5000))
    append(log, batch(1), NOW)
    await manager.soft_checkpoint()
    assert log.recovery_point == 0
    clock.ms += 5000
    await manager.soft_checkpoint()
    assert log.recovery_point == 1
    append(log, batch(1), NOW)
    await manager.soft_checkpoint()
    assert log.recovery_point == 1, "the time counts from the first record that is not synced"
    log.config = config(flush_ms=0)
    await manager.soft_checkpoint()
    assert log.recovery_point == 2, "a change holds at once"
    manager.close()


async def test_log_start_offsets_are_written_at_their_interval(tmp_path: Path) -> None:
    clock = HandClock()
    manager = opened(tmp_path, clock=clock, log_flush_start_offset_checkpoint_interval_ms="2000")
    log = manager.create(spec())
    append(log, batch(3), NOW)
    log.delete_records_before(2)
    await manager.soft_checkpoint()
    assert not (tmp_path / checkpoints.LOG_START_OFFSETS).exists()
    clock.ms += 2000
    await manager.soft_checkpoint()
    assert (tmp_path / checkpoints.LOG_START_OFFSETS).read_text() == "0\n1\nt 0 2\n"
    manager.close()


async def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    clock = HandClock()
    manager = opened(tmp_path, clock=clock, producer_id_expiration_ms="1000")
    log = manager.create(spec())
    append(log, batch(1, producer_id=5, producer_epoch=0, base_sequence=0), NOW)
    assert await manager.expire_producers() == 0
    clock.ms += 1000
    assert await manager.expire_producers() == 1
    assert not log.has_producers
    manager.close()


@pytest.mark.long
async def test_the_loop_is_not_held_by_many_partitions(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    for number in range(500):
        manager.create(spec(number))
    turns = 0
    over = trio.Event()

    async def count() -> None:
        nonlocal turns
        while not over.is_set():
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await manager.soft_checkpoint()
        over.set()
    assert turns > 3
    manager.close()


def test_a_stop_that_cannot_be_recorded_is_an_unclean_one(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    append(manager.create(spec()), batch(2), NOW)
    (tmp_path / f"{STATE_FILE}.tmp").mkdir()
    manager.close()
    assert not (tmp_path / CLEAN_SHUTDOWN).exists()
    (tmp_path / f"{STATE_FILE}.tmp").rmdir()
    manager = opened(tmp_path, spec())
    assert manager.logs[TP].log_end_offset == 2
    manager.close()


# Crash points: a process that dies at each of them

_CHILD = """
import sys
from pathlib import Path
import trio
from support.logs import NOW, append, batch
from support.managers import opened, spec
directory = Path(sys.argv[1])
manager = opened(directory)
log = manager.create(spec(segment_bytes=1000, index_interval_bytes=100, file_delete_delay_ms=0))
other = manager.create(spec(1, file_delete_delay_ms=0))
async def main():
    for number in range(30):
        append(log, batch(1), NOW)
        print("acknowledged", number + 1, flush=True)
        if number % 7 == 3:
            await manager.soft_checkpoint()
            await manager.checkpoint()
    manager.delete(other.topic_partition)
    await manager.remove_deleted()
trio.run(main)
manager.close()
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "point",
    [
        "append.staged", "append.written:9", "append.published:11", "roll.before", "roll.sealed",
        "roll.snapshot-written", "roll.file-created", "roll.done:2", "producer-snapshot.written",
        "producer-snapshot.renamed:2", "checkpoint.synced", "checkpoint.written", "checkpoint.renamed",
        "checkpoint.written:2", "soft-checkpoint.written", "soft-checkpoint.renamed:3", "topic-delete.renamed",
        "topic-delete.removed", "shutdown.checkpointed", "",
    ],
)  # fmt: skip
def test_nothing_acknowledged_is_lost_at_any_crash_point(tmp_path: Path, point: str) -> None:
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LEAFCUTTR_CRASH_POINT": point, "PYTHONPATH": tests},
    )
    assert done.returncode == (-9 if point else 0), done.stderr
    acknowledged = done.stdout.count("acknowledged")
    manager = opened(tmp_path, spec(**SMALL))
    log = manager.logs[TP]
    assert log.offline is None
    assert acknowledged <= log.log_end_offset <= acknowledged + 1
    assert len(read_all(log)) == log.log_end_offset * len(batch(1))
    trio.run(manager.inspect)
    assert log.offline is None
    assert append(log, batch(1), NOW) == log.log_end_offset - 1
    manager.close()


# Several directories


def both(tmp_path: Path, *specs: LogSpec) -> LogManager:
    """A manager of two directories, `a` and `b`, with these logs loaded."""
    found = [DataDirectory.open(tmp_path / name, node_id=1) for name in ("a", "b")]
    manager = LogManager(found, Runtime.new(HandClock()), Settings(), CalmDisk())
    manager.load(specs)
    return manager


def spread(tmp_path: Path, *, killed: bool = False) -> tuple[list[LogSpec], dict[TopicPartition, str]]:
    """Four partitions, two in each directory, with as many records as their number and one; where each is."""
    specs = [spec(number) for number in range(4)]
    manager = both(tmp_path)
    for each in specs:
        log = manager.create(each)
        append(log, batch(each.partition + 1), NOW)
    where = {name: log.directory.parent.name for name, log in manager.logs.items()}
    assert sorted(where.values()) == ["a", "a", "b", "b"]
    if killed:
        abandon(manager)
    else:
        assert manager.close()
    return specs, where


@pytest.mark.parametrize("killed", [False, True])
def test_each_directory_loads_the_partitions_that_it_holds(tmp_path: Path, killed: bool) -> None:
    specs, where = spread(tmp_path, killed=killed)
    manager = both(tmp_path, *specs)
    assert manager.stopped_cleanly is not killed
    assert {name: log.directory.parent.name for name, log in manager.logs.items()} == where
    assert [manager.logs[each.topic_partition].log_end_offset for each in specs] == [1, 2, 3, 4]
    for directory in manager.directories:
        held = {str(name) for name in directory.logs}
        assert (
            held
            == names(directory.path)
            == {str(name) for name in where if where[name] == directory.path.name}
        )
    manager.close()


@pytest.mark.parametrize("also_lost", [STATE_FILE, checkpoints.RECOVERY_POINTS])
def test_a_partition_whose_folder_is_lost_is_made_anew_in_no_other_directory(
    tmp_path: Path, also_lost: str
) -> None:
    specs, where = spread(tmp_path)
    lost = next(name for name in where if where[name] == "b")
    shutil.rmtree(tmp_path / "b" / str(lost))
    (tmp_path / "b" / also_lost).unlink()
    manager = both(tmp_path, *specs)
    assert manager.logs[lost].offline == f"its folder {tmp_path / 'b' / str(lost)} is missing"
    assert not (tmp_path / "a" / str(lost)).exists()
    manager.close()


def test_of_two_folders_of_one_partition_the_second_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    specs, where = spread(tmp_path)
    twice = next(name for name in where if where[name] == "a")
    copy = Path(shutil.copytree(tmp_path / "a" / str(twice), tmp_path / "b" / str(twice)))
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    manager = both(tmp_path, *specs)
    assert manager.logs[twice].directory == tmp_path / "a" / str(twice)
    assert f"{tmp_path / 'b'} holds folders of partitions that no topic has" in caplog.text
    manager.close()
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_an_empty_partition_without_a_folder_is_made_again(tmp_path: Path) -> None:
    specs, _ = spread(tmp_path)
    manager = both(tmp_path, *specs, spec(4))
    log = manager.logs[TopicPartition("t", 4)]
    assert (log.offline, log.directory.parent.name) == (None, "a")
    manager.close()
