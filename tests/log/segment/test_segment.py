"""Segments on disk: scanned, rebuilt, cut, and the damage that a scan must notice."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.log import Log
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.log.segment.segment import Segment
from support.logs import NOW, append, batch, make_log


def filled(folder: Path, batches: int = 60) -> Log:
    log = make_log(folder, index_interval_bytes=500)
    for number in range(batches):
        append(log, batch(2, size=60, timestamp=NOW + number), NOW)
    log.segments[0].seal()
    return log


def reopened(log: Log) -> Segment:
    return Segment.open(log.directory_name, 0, pool=FilePool())


def test_scan_finds_every_batch(tmp_path: Path) -> None:
    log = filled(tmp_path)
    found = list(reopened(log).scan(check_crc=True))
    assert [header.base_offset for _, header in found] == list(range(0, 120, 2))
    assert found[-1][0] + found[-1][1].size == log.size


def test_open_knows_size_and_largest_timestamp(tmp_path: Path) -> None:
    segment = reopened(filled(tmp_path))
    assert (segment.largest_timestamp, segment.offset_of_largest_timestamp()) == (NOW + 59, 119)
    assert segment.first_timestamp() == NOW


def test_a_largest_timestamp_from_a_checkpoint_is_found_again(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for number in range(20):
        append(log, batch(2, timestamp=NOW + number % 7), NOW)
    segment = Segment(log.directory_name, 0, pool=FilePool(), size=log.size, largest_timestamp=NOW + 6)
    assert segment.offset_of_largest_timestamp() == 13


@pytest.mark.parametrize("from_batch", [0, 1, 30, 59])
def test_rebuilt_indexes_equal_the_written_ones(tmp_path: Path, from_batch: int) -> None:
    log = filled(tmp_path)
    index, times = log.segments[0].index.entries(), log.segments[0].time_index.entries()
    segment = reopened(log)
    position, header = list(segment.scan())[from_batch]
    if from_batch == 0:
        Path(segment.path(".index")).write_bytes(b"rubbish!" * 10)
        segment.largest_timestamp = -1
    rebuilt = segment.rebuild_indexes(500, from_position=position, next_offset=header.base_offset)
    assert (rebuilt.end_position, rebuilt.next_offset, rebuilt.damage) == (log.size, 120, None)
    segment.seal()
    assert segment.time_index.entries()[-1] == times[-1]
    if from_batch == 0:
        assert (segment.index.entries(), segment.time_index.entries()) == (index, times)
    offsets = dict(segment.index.entries())
    assert all(h.last_offset not in offsets or offsets[h.last_offset] == at for at, h in segment.scan())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_ends_the_sound_part(
    tmp_path_factory: pytest.TempPathFactory, at: int, change: int
) -> None:
    log = filled(tmp_path_factory.mktemp("log"), 12)
    path = Path(log.segments[0].path(".log"))
    data = bytearray(path.read_bytes())
    at %= len(data)
    data[at] ^= change
    path.write_bytes(data)
    segment = reopened(log)
    rebuilt = segment.rebuild_indexes(500)
    size = log.size // 12
    if at % size in range(12, 16) or (at % size < 8 and rebuilt.damage is None):
        return  # the leader epoch, or a base offset that grew: not covered by the CRC
    assert rebuilt.damage is not None
    late = size if at % size < 8 else 0  # a base offset that grew is noticed at the next batch
    assert rebuilt.end_position <= at // size * size + late
    segment.truncate(rebuilt.end_position)
    assert [h.next_offset for _, h in segment.scan(check_crc=True)][-1:] in ([], [rebuilt.next_offset])


@pytest.mark.parametrize("count", [5000, 30], ids=["many", "fewer than a header"])
def test_zeros_at_the_end(tmp_path: Path, count: int) -> None:
    log = filled(tmp_path)
    with Path(log.segments[0].path(".log")).open("ab") as file:
        file.write(bytes(count))
    segment = reopened(log)
    rebuilt = segment.rebuild_indexes(500)
    assert (rebuilt.end_position, rebuilt.next_offset) == (log.size, 120)
    assert isinstance(rebuilt.damage, DamagedSegmentError) and "zeros" in rebuilt.damage.reason
    segment.truncate(rebuilt.end_position)
    assert Path(segment.path(".log")).stat().st_size == log.size


def test_truncate_takes_the_index_entries_along(tmp_path: Path) -> None:
    log = filled(tmp_path)
    segment = reopened(log)
    position, header = list(segment.scan())[30]
    segment.truncate(position)
    assert all(at < position for _, at in segment.index.entries())
    assert all(offset < header.base_offset for _, offset in segment.time_index.entries())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_scanned_without_harm(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("log")
    (folder / "00000000000000000000.log").write_bytes(data)
    segment = Segment.open(str(folder), 0, pool=FilePool())
    rebuilt = segment.rebuild_indexes(4096)
    assert rebuilt.end_position <= len(data)
    assert (rebuilt.damage is None) == (rebuilt.end_position == len(data))
