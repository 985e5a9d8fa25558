"""Indexes written anew from a segment's file, and the damage that this must notice."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.segment.rebuild import index_fits, rebuild_indexes
from leafcuttr.log.segment.scan import DamagedSegmentError
from leafcuttr.log.segment.segment import Segment
from support.gates_slice import sampled
from support.segments import filled, reopened


@pytest.mark.parametrize("from_batch", [0, 1, 30, 59])
def test_rebuilt_indexes_equal_the_written_ones(tmp_path: Path, from_batch: int) -> None:
    log = filled(tmp_path)
    index, times = log.segments[0].index.entries(), log.segments[0].time_index.entries()
    segment = reopened(log)
    position, header = list(segment.scan())[from_batch]
    if from_batch == 0:
        Path(segment.path(".index")).write_bytes(b"rubbish!" * 10)
        segment.largest_timestamp = -1
    rebuilt = rebuild_indexes(segment, 500, from_position=position, next_offset=header.base_offset)
    assert (rebuilt.end_position, rebuilt.next_offset, rebuilt.damage) == (log.size, 120, None)
    segment.seal()
    assert segment.time_index.entries()[-1] == times[-1]
    if from_batch == 0:
        assert (segment.index.entries(), segment.time_index.entries()) == (index, times)
    offsets = dict(segment.index.entries())
    assert all(h.last_offset not in offsets or offsets[h.last_offset] == at for at, h in segment.scan())


@settings(max_examples=sampled(40), deadline=None)
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
    rebuilt = rebuild_indexes(segment, 500)
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
    rebuilt = rebuild_indexes(segment, 500)
    assert (rebuilt.end_position, rebuilt.next_offset) == (log.size, 120)
    assert isinstance(rebuilt.damage, DamagedSegmentError) and "zeros" in rebuilt.damage.reason
    segment.truncate(rebuilt.end_position)
    assert Path(segment.path(".log")).stat().st_size == log.size


@settings(max_examples=sampled(60), deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_scanned_without_harm(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("log")
    (folder / "00000000000000000000.log").write_bytes(data)
    segment = Segment.open(str(folder), 0, pool=FilePool())
    rebuilt = rebuild_indexes(segment, 4096)
    assert rebuilt.end_position <= len(data)
    assert (rebuilt.damage is None) == (rebuilt.end_position == len(data))


def test_index_entries_fit_the_file_that_they_were_made_from(tmp_path: Path) -> None:
    segment = reopened(filled(tmp_path))
    positions = [position for position, _ in segment.scan()]
    assert all(index_fits(segment, position) for position in (*positions, segment.size))


def test_index_entries_of_another_file_do_not_fit(tmp_path: Path) -> None:
    log = filled(tmp_path)
    path = Path(log.segments[0].path(".index"))
    written = path.read_bytes()
    last = len(written) - 8
    for wrong in (
        written[:last] + (int.from_bytes(written[last : last + 4]) + 1).to_bytes(4) + written[last + 4 :],
        written[: last + 4] + (int.from_bytes(written[last + 4 :]) - 1).to_bytes(4),
        written[: last + 4] + (-1).to_bytes(4, signed=True),
    ):
        path.write_bytes(wrong)
        assert not index_fits(reopened(log), log.size)
        assert index_fits(reopened(log), 0)
