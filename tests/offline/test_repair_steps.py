"""What the steps of a repair write, each on its own."""

import shutil
from pathlib import Path

import pytest

from leafcuttr.log.files.failed_sync import mark
from leafcuttr.log.layout.checkpoints import (
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_offsets,
    write_offsets,
)
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.layout.suffixes import DAMAGED
from leafcuttr.offline.repair_steps import make_partition, rewrite_log, settle_checkpoints
from leafcuttr.offline.sound_ranges import SoundRange, sound_ranges
from leafcuttr.wire.batch import parse
from leafcuttr_sdk import TopicPartition

FIXTURE = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1" / "segments-0"
STEM = f"{11:020d}"
TP = TopicPartition("segments", 0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with one partition, whose log begins at offset 11 and ends at 40."""
    shutil.copytree(FIXTURE, tmp_path / "segments-0")
    (tmp_path / "segments-0" / f"{0:020d}.log").unlink()
    return tmp_path


def test_what_is_taken_out_is_kept_and_covered_by_an_empty_batch(data: Path) -> None:
    log = data / "segments-0" / f"{STEM}.log"
    before = log.read_bytes()
    [whole] = sound_ranges(log, 11)
    size = parse(before).size
    gone = whole._replace(start=size, first_offset=parse(before, size).base_offset)
    rest = SoundRange(size + parse(before, size).size, whole.end, gone.first_offset + 1, 22, 0)
    rewrite_log(log, 11, [whole._replace(end=size, next_offset=12), rest], 22)
    taken = log.with_name(log.name + DAMAGED).read_bytes()
    assert taken == before[size : rest.start]
    after = log.read_bytes()
    filler = parse(after, size)
    assert (filler.base_offset, filler.last_offset, filler.count) == (12, 12, 0)
    assert after[:size] + after[size + filler.size :] == before[:size] + before[rest.start :]


def test_checkpoints_fit_the_logs_once_settled(data: Path) -> None:
    gone = TopicPartition("gone", 0)
    write_offsets(data / RECOVERY_POINTS, {TP: 3, gone: 1})
    write_offsets(data / LOG_START_OFFSETS, {TP: 99, gone: 1})
    (data / STATE_FILE).touch()
    settle_checkpoints(data)
    assert read_offsets(data / RECOVERY_POINTS) == {TP: 40}
    assert read_offsets(data / LOG_START_OFFSETS) == {TP: 40}
    assert not (data / STATE_FILE).exists()


def test_the_recovery_point_stays_where_a_sync_has_failed(data: Path) -> None:
    write_offsets(data / RECOVERY_POINTS, {TP: 30})
    mark(str(data / "segments-0"))
    settle_checkpoints(data)
    assert read_offsets(data / RECOVERY_POINTS) == {TP: 30}


def test_a_partition_is_made_at_an_offset(tmp_path: Path) -> None:
    make_partition(tmp_path / "t-0", bytes(range(16)), 7)
    assert sorted(path.name for path in (tmp_path / "t-0").iterdir()) == [
        f"{7:020d}.index",
        f"{7:020d}.log",
        f"{7:020d}.timeindex",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
