"""Segments on disk: scanned, opened again, cut."""

from pathlib import Path

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.segment.segment import Segment
from support.logs import NOW, append, batch, make_log
from support.segments import filled, reopened


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


def test_truncate_takes_the_index_entries_along(tmp_path: Path) -> None:
    log = filled(tmp_path)
    segment = reopened(log)
    position, header = list(segment.scan())[30]
    segment.truncate(position)
    assert all(at < position for _, at in segment.index.entries())
    assert all(offset < header.base_offset for _, offset in segment.time_index.entries())
