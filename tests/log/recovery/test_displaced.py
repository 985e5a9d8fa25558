"""Base offsets that were damaged in the file, where no CRC covers them: sound batches are not thrown away for it."""

from pathlib import Path

import pytest

from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, append, batch, read_all
from support.managers import abandon, opened, spec

TP = TopicPartition("t", 0)
SMALL = {"segment_bytes": 1000, "index_interval_bytes": 100}


def filled(directory: Path, **overrides: object) -> tuple[LogManager, Log, bytes]:
    manager = opened(directory)
    log = manager.create(spec(**overrides))
    for _ in range(20):
        append(log, batch(3), NOW)
    return manager, log, read_all(log)


def again(directory: Path, **overrides: object) -> Log:
    manager = opened(directory, spec(**overrides))
    abandon(manager)
    return manager.logs[TP]


def displace(log: Log, *offsets: int, by: int) -> None:
    """Change the base offsets of these batches in their files."""
    for segment in log.segments:
        for position, header in list(segment.scan()):
            if header.base_offset in offsets:
                with open(segment.path(".log"), "r+b") as file:  # noqa: PTH123
                    file.seek(position)
                    file.write((header.base_offset + by).to_bytes(8, "big", signed=True))


@pytest.mark.parametrize("by", [1, 256, 1 << 40, -1, -6])
@pytest.mark.parametrize("offsets", [(30,), (30, 33), (0,), (3, 30), (12,)])
def test_a_displaced_batch_is_put_back(
    tmp_path: Path, by: int, offsets: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    manager, log, data = filled(tmp_path, **SMALL)
    displace(log, *offsets, by=by)
    abandon(manager)
    log = again(tmp_path, **SMALL)
    assert (log.offline, log.log_end_offset, read_all(log)) == (None, 60, data)
    assert sum("given it back" in record.getMessage() for record in caplog.records) == len(offsets)


@pytest.mark.parametrize("by", [-3, -9])
@pytest.mark.parametrize("count", [5, 6])
def test_many_neighbours_that_were_put_lower_are_put_back(tmp_path: Path, by: int, count: int) -> None:
    """They agree with each other, but no gap leads down: only what goes up can be one."""
    manager, log, data = filled(tmp_path)
    displace(log, *range(30, 30 + 3 * count, 3), by=by)
    abandon(manager)
    log = again(tmp_path)
    assert (log.offline, log.log_end_offset, read_all(log)) == (None, 60, data)


@pytest.mark.parametrize("by", [1, 1000, -1, -6])
def test_the_name_of_the_next_segment_tells_of_the_last_batch_before_it(tmp_path: Path, by: int) -> None:
    manager, log, data = filled(tmp_path, **SMALL)
    last = log.segments[1].base_offset - 3
    displace(log, last, by=by)
    abandon(manager)
    log = again(tmp_path, **SMALL)
    assert (log.offline, log.log_end_offset, read_all(log)) == (None, 60, data)


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_a_gap_stays_though_few_batches_are_behind_it(tmp_path: Path, behind: int) -> None:
    manager, log, _ = filled(tmp_path)
    displace(log, *range(60 - 3 * behind - 3, 60, 3), by=5)
    data = Path(log.segments[0].path(".log")).read_bytes()
    abandon(manager)
    log = again(tmp_path)
    assert (log.offline, log.log_end_offset, read_all(log)) == (None, 65, data)


@pytest.mark.parametrize("by", [7, -7])
@pytest.mark.parametrize("power_lost", [False, True])
async def test_the_last_batch_is_put_back_unless_power_was_lost(
    tmp_path: Path, by: int, power_lost: bool
) -> None:
    manager, log, data = filled(tmp_path)
    await manager.soft_checkpoint()
    append(log, batch(3), NOW)
    whole = read_all(log)
    displace(log, 60, by=by)
    abandon(manager)
    if power_lost:
        (tmp_path / STATE_FILE).unlink()
    log = again(tmp_path)
    assert (log.log_end_offset, read_all(log)) == ((60, data) if power_lost else (63, whole))


@pytest.mark.parametrize("by", [1, 40, -1])
def test_where_it_was_synced_the_partition_goes_offline(tmp_path: Path, by: int) -> None:
    manager, log, _ = filled(tmp_path)
    log.flush()
    manager.directories[0].upkeep.write_offsets(manager.logs, manager.logs)
    before = Path(log.segments[0].path(".log")).read_bytes()
    displace(log, 30, by=by)
    abandon(manager)
    log = again(tmp_path)
    assert log.offline is not None and "30 is due" in log.offline and "synced up to 60" in log.offline
    assert len((tmp_path / "t-0" / f"{0:020d}.log").read_bytes()) == len(before)


@pytest.mark.parametrize("synced", [False, True])
def test_a_gap_that_the_log_goes_on_behind_stays(tmp_path: Path, synced: bool) -> None:
    manager, log, _ = filled(tmp_path)
    displace(log, *range(30, 60, 3), by=5)
    data = Path(log.segments[0].path(".log")).read_bytes()
    if synced:
        log.flush()
        manager.directories[0].upkeep.write_offsets(manager.logs, manager.logs)
    abandon(manager)
    log = again(tmp_path)
    assert (log.offline, log.log_end_offset, read_all(log)) == (None, 65, data)
