"""From times and epochs to offsets."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.errors import StorageError
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS
from leafcuttr.log.log import Log
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch
from support.gates_slice import sampled
from support.logs import NOW, append, make_log

times = st.integers(NOW - 20, NOW + 20)


@settings(max_examples=sampled(60), deadline=None)
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
            append(
                log, encode_batch([Record(i, t, None, b"v") for i, t in enumerate(stamps)], codec=codec), NOW
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
    append(log, encode_batch([Record(i, NOW, None, b"v") for i in range(3)]), NOW)
    log.delete_records_before(1)
    assert log.offset_for_leader_epoch(4) == (4, 3)
    assert log.offset_for_leader_epoch(5) == (-1, -1)
    assert log.offset_for_leader_epoch(-1) == (-1, -1)
    assert log.offset_for_leader_epoch(2) == (2, 1)


def test_epochs_that_cannot_be_read_are_no_answer(tmp_path: Path) -> None:
    """Only an epoch before the current one asks for them."""
    log = make_log(tmp_path)
    log.leader_epoch = 4
    (log.directory / LEADER_EPOCHS).write_bytes(b"\xff\xfe")
    assert log.offset_for_leader_epoch(4) == (4, 0)
    with pytest.raises(StorageError, match="The leader epochs of t-0 cannot be read"):
        log.offset_for_leader_epoch(3)


def test_epochs_of_what_is_deleted_end_where_the_log_begins(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.leader_epoch = 4
    append(log, encode_batch([Record(i, NOW, None, b"v") for i in range(9)]), NOW)
    (log.directory / LEADER_EPOCHS).write_text("0\n3\n1 0\n2 3\n4 6\n")
    assert [log.offset_for_leader_epoch(epoch) for epoch in (0, 1, 2, 3, 4)] == [
        (0, 0), (1, 3), (2, 6), (2, 6), (4, 9),
    ]  # fmt: skip
    log.delete_records_before(5)
    assert [log.offset_for_leader_epoch(epoch) for epoch in (0, 1, 2)] == [(0, 5), (1, 5), (2, 6)]


@pytest.mark.parametrize("size", [10, 20_000])
def test_records_have_the_time_at_which_their_batch_was_appended(tmp_path: Path, size: int) -> None:
    """With LogAppendTime, whatever their deltas say."""
    log = make_log(tmp_path, message_timestamp_type="LogAppendTime")
    records = [Record(i, NOW - 1000 + i, None, b"v" * size) for i in range(3)]
    append(log, encode_batch(records), NOW)
    append(log, encode_batch(records), NOW + 5)
    assert trio.run(log.offset_for_timestamp, NOW - 2000) == (NOW, 0, 0)
    assert trio.run(log.offset_for_timestamp, NOW + 1) == (NOW + 5, 3, 0)
    assert trio.run(log.max_timestamp_offset) == (NOW + 5, 3, 0)


def test_records_without_a_time_are_not_found(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, encode_batch([Record(0, -1, None, b"v")]), NOW)
    assert trio.run(log.max_timestamp_offset) is None
    assert trio.run(log.offset_for_timestamp, 0) is None


def test_where_all_records_of_the_first_segment_with_such_a_time_are_deleted_there_is_no_answer(
    tmp_path: Path,
) -> None:
    """As in Kafka, for as long as that segment is there: a later one is not searched."""
    log = make_log(tmp_path, segment_bytes=200)
    for timestamp in (NOW + 9, NOW, NOW, NOW + 9):
        append(log, encode_batch([Record(0, timestamp, None, b"v")]), NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    assert trio.run(log.offset_for_timestamp, NOW + 5) == (NOW + 9, 0, 0)
    log.delete_records_before(1)
    assert trio.run(log.offset_for_timestamp, NOW + 5) is None
    assert trio.run(log.offset_for_timestamp, NOW) == (NOW, 1, 0)
    log.delete_records_before(2)
    log.apply_retention(NOW)
    assert [segment.base_offset for segment in log.segments] == [2]
    assert trio.run(log.offset_for_timestamp, NOW + 5) == (NOW + 9, 3, 0)
