"""Recovery of one partition from real files with real damage: what is kept, what is cut, what is refused."""

import os
from pathlib import Path

import pytest

from leafcuttr.errors import OutOfOrderSequence, StorageError
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.layout import checkpoints
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager
from leafcuttr.offline.verify import verify_directory
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, append, batch, read_all
from support.managers import TOPIC_ID, abandon, opened, spec

TP = TopicPartition("t", 0)
SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100}


def filled(directory: Path, batches: int = 20, **overrides: object) -> tuple[LogManager, bytes]:
    """A new directory with one partition; the manager, and every byte of the log."""
    manager = opened(directory)
    log = manager.create(spec(**overrides))
    for _ in range(batches):
        append(log, batch(3), NOW)
    return manager, read_all(log)


def again(directory: Path, **overrides: object) -> Log:
    manager = opened(directory, spec(**overrides))
    log = manager.logs[TP]
    abandon(manager)
    return log


def forget_state(directory: Path) -> None:
    """As another boot of the machine finds it."""
    (directory / STATE_FILE).unlink(missing_ok=True)


def indexes_of(log: Log) -> list[tuple[list[tuple[int, ...]], list[tuple[int, ...]]]]:
    return [(segment.index.entries(), segment.time_index.entries()) for segment in log.segments]


def test_everything_written_is_there_after_a_kill_without_any_checkpoint(tmp_path: Path) -> None:
    manager, data = filled(tmp_path, **SMALL)
    segments = [s.base_offset for s in manager.logs[TP].segments]
    assert len(segments) > 2
    abandon(manager)
    log = again(tmp_path, **SMALL)
    assert (log.offline, log.log_start_offset, log.log_end_offset) == (None, 0, 60)
    assert [s.base_offset for s in log.segments] == segments
    assert read_all(log) == data


async def test_what_lies_behind_the_soft_checkpoint_is_read(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 10, **SMALL)
    log = manager.logs[TP]
    await manager.soft_checkpoint()
    for _ in range(17):
        append(log, batch(2), NOW)
    data, sizes = read_all(log), log.segment_sizes()
    abandon(manager)
    log = again(tmp_path, **SMALL)
    assert log.log_end_offset == 64
    assert log.segment_sizes() == sizes
    assert read_all(log) == data


@pytest.mark.parametrize("preallocated", [False, True])
async def test_an_end_that_went_with_its_disk_is_cut_though_the_file_kept_its_size(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, preallocated: bool
) -> None:
    """The machine has not lost its power, its disk has: it was pulled out, and came back."""
    settings = {"preallocate": preallocated, "segment_bytes": 1 << 20}
    manager, data = filled(tmp_path, 10, **settings)
    log = manager.logs[TP]
    await manager.soft_checkpoint()
    path, kept = Path(log.segments[-1].path(".log")), len(data) // 2
    abandon(manager)
    with path.open("r+b") as file:
        file.seek(kept)
        file.write(bytes(len(data) - kept))
    log = again(tmp_path, **settings)
    assert (log.offline, log.log_end_offset) == (None, 15)
    assert read_all(log) == data[:kept]
    assert "the last checkpoint knew of offsets up to" in caplog.text
    assert append(log, batch(), NOW) == 15


async def test_indexes_after_a_soft_recovery_are_those_of_a_full_one(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 10, index_interval_bytes=100)
    await manager.soft_checkpoint()
    for number in range(10):
        append(manager.logs[TP], batch(2, timestamp=NOW + number), NOW)
    abandon(manager)
    soft = again(tmp_path, index_interval_bytes=100)
    soft_indexes = indexes_of(soft)
    for suffix in (".index", ".timeindex"):
        (tmp_path / "t-0" / f"{0:020d}{suffix}").unlink()
    forget_state(tmp_path)
    full = again(tmp_path, index_interval_bytes=100)
    for (offsets, times), (all_offsets, all_times) in zip(soft_indexes, indexes_of(full), strict=True):
        assert len(all_offsets) - len(offsets) <= 1
        assert all(entry[1] % len(batch(2)) == 0 or entry in all_offsets for entry in offsets)
        assert offsets == sorted(set(offsets))
        assert times == sorted(set(times))
        assert all_times[-1] == times[-1]


@pytest.mark.parametrize("soft", [True, False])
async def test_the_log_is_cut_at_the_first_bad_batch(tmp_path: Path, soft: bool) -> None:
    manager, data = filled(tmp_path, 4)
    if soft:
        await manager.soft_checkpoint()
    for _ in range(4):
        append(manager.logs[TP], batch(3), NOW)
    abandon(manager)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    damaged = bytearray(path.read_bytes())
    damaged[len(data) + len(batch(3)) + 70] ^= 1
    path.write_bytes(damaged)
    log = again(tmp_path)
    assert log.log_end_offset == 15
    assert path.stat().st_size == len(data) + len(batch(3))
    assert append(log, batch(1), NOW) == 15


def test_half_a_batch_is_cut(tmp_path: Path) -> None:
    manager, data = filled(tmp_path, 4)
    abandon(manager)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    with path.open("ab") as file:
        file.write(bytes(batch(1))[:40])
    assert again(tmp_path).log_end_offset == 12
    assert path.read_bytes() == data


@pytest.mark.parametrize("soft", [True, False])
async def test_zeros_at_the_end_are_cut(tmp_path: Path, soft: bool) -> None:
    manager, data = filled(tmp_path, 4)
    if soft:
        await manager.soft_checkpoint()
    abandon(manager)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    os.truncate(path, len(data) + 10_000)
    assert again(tmp_path).log_end_offset == 12
    assert path.read_bytes() == data


def test_segments_behind_the_cut_go(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, **SMALL)
    second, third = (s.base_offset for s in manager.logs[TP].segments[1:3])
    abandon(manager)
    path = tmp_path / "t-0" / f"{second:020d}.log"
    os.truncate(path, path.stat().st_size - 1)
    log = again(tmp_path, **SMALL)
    assert log.log_end_offset == third - 3
    left = {name.name for name in (tmp_path / "t-0").iterdir()}
    assert f"{second:020d}.log" in left
    assert not any(name.startswith(f"{third:020d}") for name in left)


def test_a_missing_index_is_written_anew(tmp_path: Path) -> None:
    manager, data = filled(tmp_path, index_interval_bytes=100)
    before = indexes_of(manager.logs[TP])
    abandon(manager)
    for suffix in (".index", ".timeindex"):
        (tmp_path / "t-0" / f"{0:020d}{suffix}").unlink()
    log = again(tmp_path, index_interval_bytes=100)
    assert indexes_of(log) == before
    assert read_all(log) == data


def test_damage_before_the_recovery_point_takes_the_partition_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager, data = filled(tmp_path, 4)
    manager.close()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    forget_state(tmp_path)
    path = tmp_path / "t-0" / f"{0:020d}.log"
    damaged, third = bytearray(data), len(data) // 2
    damaged[third + 70] ^= 1  # in its records, which its CRC covers; each other byte: see test_rescan
    path.write_bytes(damaged)
    log = again(tmp_path)
    assert log.offline is not None
    assert f"at byte {third}: the CRC of the batch does not match (offset 6, synced up to 12)" in log.offline
    assert path.read_bytes() == damaged, "nothing is cut that was synced"
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        f"t-0 is offline: {log.offline}"
    ]
    with pytest.raises(StorageError):
        append(log, batch(1), NOW)
    with pytest.raises(StorageError):
        log.read(0, 100, at_least_one=True)


def test_a_log_that_has_grown_shorter_since_the_clean_stop_is_offline(tmp_path: Path) -> None:
    manager, data = filled(tmp_path, 4)
    manager.close()
    path = tmp_path / "t-0" / f"{0:020d}.log"
    os.truncate(path, len(data) - 5)
    log = again(tmp_path)
    assert log.offline == f"{path} has {len(data) - 5} bytes, {len(data)} were synced"


async def test_a_log_shorter_than_the_soft_checkpoint_is_read_from_the_recovery_point(tmp_path: Path) -> None:
    manager, data = filled(tmp_path, 4)
    await manager.soft_checkpoint()
    abandon(manager)
    os.truncate(tmp_path / "t-0" / f"{0:020d}.log", len(data) - 5)
    log = again(tmp_path)
    assert (log.offline, log.log_end_offset) == (None, 9)


def test_a_missing_folder_is_damage(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 4)
    manager.close()
    (tmp_path / "t-0").rename(tmp_path / "elsewhere")
    log = again(tmp_path)
    assert log.offline == f"its folder {tmp_path / 't-0'} is missing"
    assert not (tmp_path / "t-0").exists()


def test_a_missing_folder_of_a_log_that_never_had_data_is_made_again(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 0)
    abandon(manager)
    (tmp_path / "t-0").rename(tmp_path / "elsewhere")
    log = again(tmp_path)
    assert (log.offline, log.log_end_offset) == (None, 0)
    assert checkpoints.read_topic_id(tmp_path / "t-0" / checkpoints.PARTITION_METADATA) == TOPIC_ID


def test_a_folder_of_another_topic_id_is_not_taken(tmp_path: Path) -> None:
    manager, data = filled(tmp_path, 4)
    abandon(manager)
    manager = opened(tmp_path, spec(topic_id=bytes(16)))
    offline = manager.logs[TP].offline
    assert offline is not None
    assert "holds data of another topic (id AAECAwQFBgcICQoLDA0ODw" in offline
    assert (tmp_path / "t-0" / f"{0:020d}.log").read_bytes() == data
    abandon(manager)


def test_a_missing_partition_metadata_is_written_again(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 1)
    abandon(manager)
    (tmp_path / "t-0" / checkpoints.PARTITION_METADATA).write_bytes(b"")
    assert again(tmp_path).offline is None
    assert checkpoints.read_topic_id(tmp_path / "t-0" / checkpoints.PARTITION_METADATA) == TOPIC_ID


@pytest.mark.parametrize("how", ["soft", "state", "full"])
async def test_producers_are_remembered(tmp_path: Path, how: str) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec(**SMALL))
    for sequence in range(0, 30, 2):
        append(log, batch(2, producer_id=7, producer_epoch=1, base_sequence=sequence), NOW)
        if sequence == 20 and how == "soft":
            await manager.soft_checkpoint()
    if how == "state":
        await manager.soft_checkpoint()
    abandon(manager)
    log = again(tmp_path, **SMALL)
    entry = log.producers.get(7)
    assert entry is not None
    assert (entry.epoch, entry.last_sequence, len(entry.batches)) == (1, 29, 5)
    repeated = batch(2, producer_id=7, producer_epoch=1, base_sequence=20)
    assert log.stage(memoryview(repeated), Origin.CLIENT, now_ms=NOW).duplicate
    with pytest.raises(OutOfOrderSequence):
        append(log, batch(2, producer_id=7, producer_epoch=1, base_sequence=40), NOW)
    assert append(log, batch(2, producer_id=7, producer_epoch=1, base_sequence=30), NOW) == 30


def test_producers_come_from_the_snapshot_where_their_batches_are_not_read(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec(**SMALL))
    append(log, batch(2, producer_id=7, producer_epoch=0, base_sequence=0), NOW)
    for _ in range(20):
        append(log, batch(3), NOW)
    assert len(log.segments) > 2
    manager.close()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    forget_state(tmp_path)
    assert again(tmp_path, **SMALL).producers.get(7) is not None
    for snapshot in (tmp_path / "t-0").glob("*.snapshot"):
        snapshot.write_bytes(b"not a snapshot at all")
    assert again(tmp_path, **SMALL).producers.get(7) is not None, "replayed from the headers"


async def test_segments_that_retention_has_dropped_are_not_missed(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, **SMALL)
    log = manager.logs[TP]
    await manager.soft_checkpoint()
    log.delete_records_before(30)
    start = log.segments[0].base_offset
    assert start > 0
    abandon(manager)
    log = again(tmp_path, **SMALL)
    assert (log.offline, log.log_end_offset) == (None, 60)
    assert log.log_start_offset >= start
    assert log.pending_deletes, "their files are removed after the start"


async def test_the_log_start_offset_is_kept(tmp_path: Path) -> None:
    manager, _ = filled(tmp_path, 4)
    manager.logs[TP].delete_records_before(5)
    await manager.checkpoint()
    abandon(manager)
    assert (tmp_path / checkpoints.LOG_START_OFFSETS).read_text() == "0\n1\nt 0 5\n"
    assert again(tmp_path).log_start_offset == 5
    forget_state(tmp_path)
    assert again(tmp_path).log_start_offset == 5


def test_the_state_of_another_boot_is_not_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leafcuttr.log import directory as directories

    first, data = filled(tmp_path, 4)
    first.directories[0]._record.take(TP, first.logs[TP], TOPIC_ID)
    import trio

    trio.run(first.directories[0]._record.write)
    abandon(first)
    monkeypatch.setattr(directories, "boot_id", lambda: "another")
    os.truncate(tmp_path / "t-0" / f"{0:020d}.log", len(data) - 1)
    assert again(tmp_path).log_end_offset == 9


def test_a_damaged_state_file_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    manager, _ = filled(tmp_path, 4)
    manager.close()
    path = tmp_path / STATE_FILE
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert again(tmp_path).log_end_offset == 12
    assert "CRC does not match" in caplog.text


def test_an_empty_preallocated_segment_is_empty_after_a_clean_stop(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec(preallocate=True, segment_bytes=1 << 20))
    assert Path(log.segments[0].path(".log")).stat().st_size == 1 << 20
    manager.close()
    assert Path(log.segments[0].path(".log")).stat().st_size == 0
    assert not verify_directory(tmp_path).problems
    log = again(tmp_path, preallocate=True, segment_bytes=1 << 20)
    assert (log.offline, append(log, batch(), NOW)) == (None, 0)


def test_a_preallocated_segment_ends_where_its_records_end(tmp_path: Path) -> None:
    manager, data = filled(tmp_path, 4, preallocate=True, segment_bytes=1 << 20)
    abandon(manager)
    log = again(tmp_path, preallocate=True, segment_bytes=1 << 20)
    assert (log.log_end_offset, log.size) == (12, len(data))
