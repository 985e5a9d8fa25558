"""When a new segment begins, and what is on disk then. Each setting is changed on a log in use."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import trio

from leafcuttr.log.append.rules import Origin
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.log import Log
from leafcuttr.log.producers.snapshot import read_snapshot
from leafcuttr.log.segment.segment import MAX_RELATIVE, Segment
from support.logs import NOW, append, batch, make_log, resources, write_now


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def change(log: Log, **settings: Any) -> None:
    log.config = replace(log.config, **settings)


def test_segment_bytes(tmp_path: Path) -> None:
    log, size = make_log(tmp_path), len(batch())
    for _ in range(4):
        append(log, batch(), NOW)
    assert bases(log) == [0]
    change(log, segment_bytes=2 * size)
    for _ in range(4):
        append(log, batch(), NOW)
    assert bases(log) == [0, 4, 6]
    assert [segment.size for segment in log.segments] == [4 * size, 2 * size, 2 * size]


def test_one_commit_over_several_segments(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=2 * len(batch()))
    for _ in range(7):
        log.stage(memoryview(batch()), Origin.CLIENT, now_ms=NOW)
    assert bases(log) == [0]
    write_now(log)
    assert bases(log) == [0, 2, 4, 6]
    assert log.log_end_offset == 7


def test_roll_with_next(tmp_path: Path) -> None:
    """The next batch begins a segment, once; what is being written at the time counts as before it."""
    log = make_log(tmp_path)
    log.roll_with_next()  # nothing is there to end
    append(log, batch(), NOW)
    log.stage(memoryview(batch()), Origin.CLIENT, now_ms=NOW)
    log.roll_with_next()
    log.roll_with_next()
    log.stage(memoryview(batch()), Origin.CLIENT, now_ms=NOW)
    log.roll_with_next()  # the segment that is asked for has not begun yet
    log.stage(memoryview(batch()), Origin.CLIENT, now_ms=NOW)
    write_now(log)
    assert bases(log) == [0, 2]
    assert log.log_end_offset == 4


def test_segment_ms_counts_by_the_records(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(timestamp=NOW), NOW)
    append(log, batch(timestamp=NOW + 60_000), NOW)
    assert bases(log) == [0]
    change(log, segment_ms=60_000)
    append(log, batch(timestamp=NOW + 60_000), NOW)
    assert bases(log) == [0]
    append(log, batch(timestamp=NOW + 60_001), NOW)
    assert bases(log) == [0, 3]


def test_segment_ms_counts_by_the_clock_for_records_without_time(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_ms=1000)
    append(log, batch(timestamp=-1), NOW)
    append(log, batch(timestamp=-1), NOW + 1000)
    assert bases(log) == [0]
    append(log, batch(timestamp=-1), NOW + 1001)
    assert bases(log) == [0, 2]


def test_segment_jitter_ms(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_ms=100_000)
    assert log.roll_jitter_ms == 0
    seen = set()
    for _ in range(20):
        change(log, segment_jitter_ms=50_000)
        seen.add(log.roll_jitter_ms)
        change(log, segment_jitter_ms=0)
    assert len(seen) > 1
    assert all(0 <= jitter < 50_000 for jitter in seen)
    log.roll_jitter_ms = 40_000
    append(log, batch(), NOW)
    append(log, batch(timestamp=NOW + 60_001), NOW)
    assert bases(log) == [0, 1]


def test_segment_index_bytes_and_index_interval_bytes(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_index_bytes=48, index_interval_bytes=0)
    for number in range(12):
        append(log, batch(timestamp=NOW + number), NOW)
    # Three entries fill the time index of 48 bytes (Kafka keeps one place free); the first batch has none.
    assert bases(log) == [0, 4, 8]
    change(log, index_interval_bytes=1_000_000)
    for number in range(12):
        append(log, batch(timestamp=NOW + number), NOW)
    assert len(log.segments[-1].index) <= 3
    assert bases(log) == [0, 4, 8, 12]
    change(log, segment_index_bytes=1_000_000)


def test_relative_offsets_stay_within_four_bytes(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(), NOW)
    log.next_offset = log.log_end_offset = MAX_RELATIVE
    append(log, batch(), NOW)
    assert bases(log) == [0]
    append(log, batch(), NOW)
    assert bases(log) == [0, MAX_RELATIVE + 1]


def test_preallocate(tmp_path: Path) -> None:
    log = make_log(tmp_path, preallocate=True, segment_bytes=20_000)
    assert Path(log.segments[0].path(".log")).stat().st_size == 20_000
    append(log, batch(size=12_000), NOW)
    append(log, batch(size=12_000), NOW)
    assert Path(log.segments[0].path(".log")).stat().st_size == log.segments[0].size < 20_000
    assert Path(log.segments[1].path(".log")).stat().st_size == 20_000
    change(log, preallocate=False)
    append(log, batch(size=12_000), NOW)
    assert Path(log.segments[2].path(".log")).stat().st_size == log.segments[2].size
    log.seal()
    assert Path(log.segments[1].path(".log")).stat().st_size == log.segments[1].size


def test_an_evicted_file_is_trimmed_too(tmp_path: Path) -> None:
    log = make_log(tmp_path, preallocate=True, segment_bytes=20_000)
    append(log, batch(), NOW)
    log.segments[0].close()
    log.seal()
    assert Path(log.segments[0].path(".log")).stat().st_size == log.segments[0].size


def test_a_roll_writes_the_producer_snapshot(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(2, producer_id=4, producer_epoch=0, base_sequence=0), NOW)
    log.roll()
    append(log, batch(2, producer_id=4, producer_epoch=0, base_sequence=2), NOW)
    log.seal()
    first, second = (read_snapshot(tmp_path / f"{offset:020d}.snapshot") for offset in (2, 4))
    assert [table.get(4).last_sequence for table in (first, second)] == [1, 3]  # type: ignore[union-attr]


def test_an_empty_segment_does_not_roll(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.roll()
    assert bases(log) == [0]


def test_a_log_opens_from_numbers_alone(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=1000)
    for _ in range(9):
        append(log, batch(size=300), NOW)
    log.seal()
    pool = FilePool()
    segments = [
        Segment(str(tmp_path), base, pool=pool, size=size, largest_timestamp=latest)
        for base, size, latest in log.segment_sizes()
    ]
    again = Log(
        log.topic_partition,
        tmp_path,
        log.config,
        segments=segments,
        log_end_offset=9,
        resources=resources(pool=pool),
    )
    assert len(pool) == 0, "nothing is opened before it is needed"
    assert append(again, batch(size=300), NOW) == 9
    assert len(again.segments) >= len(log.segments)
    assert trio.run(again.offset_for_timestamp, NOW) == (NOW, 0, 0)
