"""What the loss of power leaves, made by hand, one case each: files that have their names but not their content,
indexes and snapshots that nobody has synced, a log that ends before its start. `crash/powerloss` makes all cases."""

from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.log import directory as directories
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, PARTITION_METADATA, RECOVERY_POINTS
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager
from leafcuttr.log.producers.snapshot import is_sound
from leafcuttr.runtime.runtime import Runtime
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, HandClock, append, batch, read_all, stage_marker, write_now
from support.managers import TOPIC_ID, abandon, opened, spec

TP = TopicPartition("t", 0)
FOLDER = "t-0"
SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100}


@pytest.fixture(autouse=True)
def restarted_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start is the first since the machine has been switched on."""
    boots = iter(range(1_000_000))
    monkeypatch.setattr(directories, "boot_id", lambda: f"boot {next(boots)}")


def filled(directory: Path, batches: int = 20, **overrides: object) -> tuple[LogManager, Log]:
    manager = opened(directory)
    log = manager.create(spec(**overrides))
    for number in range(batches):
        append(log, batch(3, key=b"k", producer_id=7, producer_epoch=0, base_sequence=number * 3), NOW)
    return manager, log


def again(directory: Path, **overrides: object) -> Log:
    manager = opened(directory, spec(**overrides))
    abandon(manager)
    return manager.logs[TP]


@pytest.mark.parametrize("content", [b"", bytes(43)], ids=["empty", "zeros"])
@pytest.mark.parametrize("name", [PARTITION_METADATA, LEADER_EPOCHS])
def test_a_small_file_that_has_lost_its_content_is_none(tmp_path: Path, name: str, content: bytes) -> None:
    manager, log = filled(tmp_path)
    data = read_all(log)
    abandon(manager)
    (tmp_path / FOLDER / name).write_bytes(content)
    log = again(tmp_path)
    assert log.offline is None
    assert read_all(log) == data


async def test_a_clean_stop_does_not_speak_for_the_small_files_of_an_empty_log(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 0)
    manager.close()
    names = (PARTITION_METADATA, LEADER_EPOCHS)
    before = [(tmp_path / FOLDER / name).read_bytes() for name in names]
    for name in names:
        (tmp_path / FOLDER / name).write_bytes(bytes(43))
    manager = opened(tmp_path, spec())
    await manager.inspect()
    manager.close()
    assert manager.logs[TP].offline is None
    assert [(tmp_path / FOLDER / name).read_bytes() for name in names] == before


def test_indexes_without_their_log_make_way(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 0)
    abandon(manager)
    (tmp_path / FOLDER / f"{0:020d}.log").unlink()
    log = again(tmp_path)
    assert log.offline is None
    assert append(log, batch(1, key=b"k"), NOW) == 0


def test_an_empty_log_that_a_clean_stop_knows_is_made_again(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 0)
    manager.close()
    for path in (tmp_path / FOLDER).iterdir():
        path.unlink()
    log = again(tmp_path)
    assert log.offline is None
    assert append(log, batch(1, key=b"k"), NOW) == 0


@pytest.mark.parametrize("lost", ["end", "folder", "files"])
def test_a_log_that_ends_before_its_start_goes_on_at_its_start(tmp_path: Path, lost: str) -> None:
    """Else what comes next would get offsets that count as deleted, and the start after that would hide it."""
    manager, log = filled(tmp_path, **SMALL)
    log.delete_records_before(50)
    manager.directories[0].upkeep.write_offsets(manager.logs, manager.logs)
    abandon(manager)
    folder = tmp_path / FOLDER
    for path in sorted(folder.iterdir()) if lost != "end" else sorted(folder.glob("*.log"))[1:]:
        path.unlink()
    if lost == "end":
        with next(folder.glob("*.log")).open("r+b") as file:
            file.truncate(0)
    elif lost == "folder":
        folder.rmdir()
    log = again(tmp_path, **SMALL)
    assert (log.offline, log.log_start_offset, log.log_end_offset) == (None, 50, 50)
    assert append(log, batch(3, key=b"k"), NOW) == 50
    log = again(tmp_path, **SMALL)
    assert (log.offline, log.log_start_offset, log.log_end_offset) == (None, 50, 53)


@pytest.mark.parametrize("compact", [True, False])
def test_nothing_comes_behind_a_gap_in_what_was_never_synced(tmp_path: Path, compact: bool) -> None:
    policy = {"cleanup_policy": ("compact",)} if compact else {}
    manager, _ = filled(tmp_path, **SMALL, **policy)
    abandon(manager)
    logs = sorted((tmp_path / FOLDER).glob("*.log"))
    assert len(logs) > 2
    logs[1].write_bytes(b"")
    log = again(tmp_path, **SMALL, **policy)
    assert log.log_end_offset == int(logs[1].stem)
    assert not logs[2].exists()


def test_gaps_that_compaction_has_left_stay_where_the_recovery_point_is_lost(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, **SMALL, cleanup_policy=("compact",))
    abandon(manager)
    logs = sorted((tmp_path / FOLDER).glob("*.log"))
    for suffix in (".log", ".index", ".timeindex", ".snapshot"):
        logs[1].with_suffix(suffix).unlink()
    (tmp_path / RECOVERY_POINTS).unlink()
    assert again(tmp_path, **SMALL, cleanup_policy=("compact",)).log_end_offset == 60


def test_an_index_of_aborted_transactions_is_made_again_whatever_is_in_it(tmp_path: Path) -> None:
    manager, log = filled(tmp_path, 1)
    log.roll()
    append(log, batch(1, key=b"k", producer_id=3, producer_epoch=0, base_sequence=0, transactional=True), NOW)
    stage_marker(log, 3, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    write_now(log)
    log.flush_indexes()
    before = log.segments[1].txn_index.aborted()
    assert len(before) == 1
    abandon(manager)
    (tmp_path / FOLDER / f"{3:020d}.txnindex").write_bytes(bytes(34 * 3))
    log = again(tmp_path)
    assert log.segments[1].txn_index.aborted() == before


def test_indexes_that_have_grown_since_a_clean_stop_are_not_trusted(tmp_path: Path) -> None:
    manager, log = filled(tmp_path, 10, index_interval_bytes=100)
    manager.close()
    manager = opened(tmp_path, spec(index_interval_bytes=100))
    log = manager.logs[TP]
    for number in range(10, 20):
        append(log, batch(3, timestamp=NOW + number), NOW)
    log.flush_indexes()
    entries = log.segments[0].index.entries()
    abandon(manager)
    path = tmp_path / FOLDER / f"{0:020d}.timeindex"
    path.write_bytes(path.read_bytes()[:12] + bytes(12 * 30))
    log = again(tmp_path, index_interval_bytes=100)
    assert log.log_end_offset == 60
    found, times = log.segments[0].index.entries(), log.segments[0].time_index.entries()
    assert found == sorted(set(found))
    assert times == sorted(set(times))
    assert abs(len(found) - len(entries)) <= 1


def test_snapshots_that_have_lost_their_content_go(tmp_path: Path) -> None:
    manager, log = filled(tmp_path, **SMALL)
    before = log.producers.dump()
    abandon(manager)
    for path in (tmp_path / FOLDER).glob("*.snapshot"):
        path.write_bytes(b"")
    log = again(tmp_path, **SMALL)
    assert [entry[0] for entry in log.producers.dump()] == [entry[0] for entry in before]
    assert all(map(is_sound, (tmp_path / FOLDER).glob("*.snapshot")))


@pytest.mark.parametrize("content", [b"", bytes(300)], ids=["empty", "zeros"])
def test_an_empty_folder_that_does_not_say_whose_it_is_goes(tmp_path: Path, content: bytes) -> None:
    """Of a deleted topic: the loss of power has taken what was in it, and given it back its name."""
    manager, _ = filled(tmp_path, 0)
    abandon(manager)
    (tmp_path / FOLDER / f"{0:020d}.log").write_bytes(content)
    (tmp_path / FOLDER / PARTITION_METADATA).write_bytes(b"")
    abandon(opened(tmp_path))
    assert not (tmp_path / FOLDER).exists()


def test_a_deleted_topic_does_not_stand_in_the_way_of_a_new_one_of_its_name(tmp_path: Path) -> None:
    """The old folder has been renamed, the new one too, and the loss of power has taken both new names."""
    manager, _ = filled(tmp_path)
    abandon(manager)
    manager = LogManager.open(tmp_path, runtime=Runtime.new(HandClock()), settings=Settings(), node_id=1)
    manager.load([spec(topic_id=bytes(range(16, 32)))], deleted=[TOPIC_ID])
    abandon(manager)
    log = manager.logs[TP]
    assert (log.offline, log.log_end_offset) == (None, 0)


def test_a_start_knows_whether_the_last_stop_was_a_clean_one(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path)
    assert manager.stopped_cleanly
    abandon(manager)
    manager = opened(tmp_path, spec())
    assert not manager.stopped_cleanly
    manager.close()
    manager = opened(tmp_path, spec())
    assert manager.stopped_cleanly
    abandon(manager)
