"""The last offsets that there are: what leads beyond them is refused, so that every answer can name its offsets."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from leafcuttr.errors import StorageError
from leafcuttr.log.layout.checkpoints import (
    LOG_START_OFFSETS,
    DamagedCheckpointError,
    read_leader_epochs,
    read_offsets,
)
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager
from leafcuttr.log.producers.snapshot import decode_snapshot, encode_snapshot
from leafcuttr.log.producers.state import BatchMetadata, ProducerEntry
from leafcuttr.log.segment.segment import LAST_BASE, MAX_RELATIVE, segment_name
from leafcuttr.wire.batch import stamp
from leafcuttr.wire.primitives import LONG_MAX
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, append, batch
from support.managers import opened, spec

TP = TopicPartition("t", 0)


def with_segment(directory: Path, base: int, *batches: bytearray) -> LogManager:
    """A manager of a partition that has this segment only, and of which no checkpoint tells."""
    first = opened(directory, spec())
    first.create(spec())
    first.close()
    folder = directory / "t-0"
    for path in (*folder.glob("0*"), *directory.glob("*checkpoint*"), directory / STATE_FILE):
        path.unlink()
    (folder / f"{segment_name(base)}.log").write_bytes(b"".join(map(bytes, batches)))
    return opened(directory, spec())


def at(offset: int) -> bytearray:
    found = batch()
    stamp(found, offset, len(found) - 12, 0)
    return found


@pytest.mark.parametrize("base", [LAST_BASE + 1, LONG_MAX, LONG_MAX + 1, 10**20 - 1])
def test_no_segment_begins_so_late(tmp_path: Path, base: int) -> None:
    manager = with_segment(tmp_path / "data", base)
    log = manager.logs[TP]
    assert log.offline is not None
    assert f"no segment begins behind offset {LAST_BASE}" in log.offline
    assert log.log_end_offset <= LONG_MAX
    manager.close()


def test_the_last_segment_is_served_and_no_other_begins(tmp_path: Path) -> None:
    manager = with_segment(tmp_path / "data", LAST_BASE, at(LAST_BASE))
    log = manager.logs[TP]
    assert (log.offline, log.log_end_offset) == (None, LAST_BASE + 1)
    assert append(log, batch(), NOW) == LAST_BASE + 1
    far = batch(timestamp=NOW + 10 * 365 * 86_400_000)  # with which a segment would begin
    for data in (far, far):
        with pytest.raises(StorageError, match="nearly the last there is"):
            append(log, data, NOW + 10 * 365 * 86_400_000)
    assert append(log, batch(), NOW) == LAST_BASE + 2
    assert log.log_end_offset + MAX_RELATIVE < LONG_MAX
    manager.close()
    again = opened(tmp_path / "data", spec())
    assert again.logs[TP].log_end_offset == LAST_BASE + 3
    again.close()


def test_a_log_does_not_go_on_so_late_either(tmp_path: Path) -> None:
    with_segment(tmp_path / "data", 0, at(0)).close()
    (tmp_path / "data" / STATE_FILE).unlink()
    (tmp_path / "data" / LOG_START_OFFSETS).write_text(f"0\n1\nt 0 {LONG_MAX}\n")
    manager = opened(tmp_path / "data", spec())
    assert f"no segment begins behind offset {LAST_BASE}" in (manager.logs[TP].offline or "")
    manager.close()


def test_checkpoints_of_numbers_that_are_no_offsets(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(f"0\n1\nt 0 {LONG_MAX}\n")
    assert read_offsets(path) == {TP: LONG_MAX}
    path.write_text(f"0\n1\nt 0 {LONG_MAX + 1}\n")
    with pytest.raises(DamagedCheckpointError, match="no offset is above"):
        read_offsets(path)
    path.write_text(f"0\n1\n0 {LONG_MAX}\n")
    assert read_leader_epochs(path) == [(0, LONG_MAX)]
    path.write_text(f"0\n1\n0 {LONG_MAX + 1}\n")
    with pytest.raises(DamagedCheckpointError, match="no offset is above"):
        read_leader_epochs(path)


@pytest.mark.parametrize("offset", [LONG_MAX, LONG_MAX - 1])
async def test_a_base_offset_that_has_been_damaged(tmp_path: Path, offset: int) -> None:
    """No CRC covers it. What comes of it must be no offset of an answer."""
    manager = with_segment(tmp_path / "data", 0, at(0))
    log = manager.logs[TP]
    append(log, batch(2), NOW + 1)
    path = log.directory / f"{segment_name(0)}.log"
    with path.open("r+b") as file:
        file.seek(len(at(0)))
        file.write(struct.pack(">q", offset))
    for ask in (log.max_timestamp_offset, lambda: log.offset_for_timestamp(NOW)):
        await _answers_with_longs(log, ask)
    with pytest.raises(StorageError, match="no offsets any more"):
        log.delete_records_before(1)
        await log.offset_for_timestamp(NOW)
    manager.close()


async def _answers_with_longs(log: Log, ask: object) -> None:
    try:
        found = await ask()  # type: ignore[operator]
    except StorageError:
        return
    assert found is None or found[1] <= LONG_MAX, log


@pytest.mark.parametrize("delta", [-(2**31), -1, 6])
def test_a_snapshot_of_a_batch_that_cannot_be(delta: int) -> None:
    """Of which a duplicate would be answered with an offset that is none."""
    entry = ProducerEntry(7, 0, (BatchMetadata(0, 5, 5, delta, NOW),), NOW, -1, -1)
    (read,) = decode_snapshot(encode_snapshot([entry]))
    assert read.batches == ()
    (sound,) = decode_snapshot(encode_snapshot([entry._replace(batches=(BatchMetadata(0, 5, 5, 5, NOW),))]))
    assert sound.batches
