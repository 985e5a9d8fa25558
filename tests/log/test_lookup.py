"""From times and epochs to offsets."""

from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.log.log import Log
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch
from support.logs import NOW, make_log

times = st.integers(NOW - 20, NOW + 20)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.lists(times, min_size=1, max_size=4), st.booleans()), max_size=25),
    times,
    st.sampled_from([0, 300, 4096]),
    st.data(),
)
def test_times_equal_a_linear_scan(
    batches: list[tuple[list[int], bool]], wanted: int, interval: int, data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        log = make_log(Path(folder), segment_bytes=900, index_interval_bytes=interval)
        records: list[int] = []
        for stamps, compressed in batches:
            codec = Codec.GZIP if compressed else Codec.NONE
            log.append(
                encode_batch([Record(i, t, None, b"v") for i, t in enumerate(stamps)], codec=codec), NOW
            )
            records += stamps
        start = data.draw(st.integers(0, len(records)))
        log.delete_records_before(start)
        expected = as_kafka(log, records, wanted, start)
        assert trio.run(log.offset_for_timestamp, wanted) == expected
        if records:
            first = log.segments[0].base_offset  # DeleteRecords leaves the segment that it ends in
            left = records[first:]
            assert trio.run(log.max_timestamp_offset) == (max(left), first + left.index(max(left)), 0)
        log.flush_indexes()
        assert trio.run(log.offset_for_timestamp, wanted) == expected


def as_kafka(log: Log, records: list[int], wanted: int, start: int) -> tuple[int, int, int] | None:
    """In the first segment with such a time, the first record from `start` on that has it or a later one."""
    bases = [segment.base_offset for segment in log.segments]
    for base, end in zip(bases, [*bases[1:], len(records)], strict=True):
        if any(t >= wanted for t in records[base:end]):
            left = (at for at in range(max(base, start), end) if records[at] >= wanted)
            offset = next(left, None)
            return None if offset is None else (records[offset], offset, 0)
    return None


def test_an_empty_log_has_no_times(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    assert trio.run(log.offset_for_timestamp, 0) is None
    assert trio.run(log.max_timestamp_offset) is None


def test_leader_epochs(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.leader_epoch = 4
    log.append(encode_batch([Record(i, NOW, None, b"v") for i in range(3)]), NOW)
    log.delete_records_before(1)
    assert log.offset_for_leader_epoch(4) == (4, 3)
    assert log.offset_for_leader_epoch(5) == (-1, -1)
    assert log.offset_for_leader_epoch(-1) == (-1, -1)
    assert log.offset_for_leader_epoch(2) == (2, 1)
