"""Reads: every offset finds its batch, ranges are whole batches, limits hold."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.errors import OffsetOutOfRange, StorageError
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.files.open_file import NotCached
from leafcuttr.log.read.read import CURSORS
from leafcuttr.wire.batch import COUNT_AT, MAGIC_AT, parse
from support.gates_slice import sampled
from support.logs import NOW, append, batch, make_log, read_all, write_now


@settings(max_examples=sampled(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 900), st.booleans()), min_size=1, max_size=40),
    st.integers(0, 6000),
    st.sampled_from([0, 1000, 4096]),
    st.data(),
)
def test_reads_equal_a_linear_scan(
    shapes: list[tuple[int, int, bool]], max_bytes: int, interval: int, data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        log = make_log(Path(folder), segment_bytes=8000, index_interval_bytes=interval)
        batches: list[tuple[int, int, bytes]] = []
        for count, size, flush in shapes:
            content = batch(count, size=size)
            view = memoryview(content)
            base = log.stage(view, Origin.CLIENT, now_ms=NOW).base_offset
            write_now(log)
            batches.append((base, base + count, bytes(content)))
            if flush:
                log.flush_indexes()
        assert read_all(log) == b"".join(content for _, _, content in batches)
        offset = data.draw(st.integers(0, log.log_end_offset - 1))
        up_to = data.draw(st.integers(0, log.log_end_offset))
        read = log.read(offset, max_bytes, at_least_one=True, up_to=up_to)
        if offset >= up_to:
            assert read.region is None
            return
        rest = [content for base, end, content in batches if end > offset and base < up_to]
        got = read.region.read() if read.region else b""
        if not got:
            # Only where the end lies inside the batch that holds the offset.
            assert next(end for base, end, _ in batches if end > offset) > up_to
            return
        assert b"".join(rest).startswith(got)
        assert len(got) <= max(max_bytes, len(rest[0]))
        at = 0
        while at < len(got):
            header = parse(got, at)
            at += header.size
        assert at == len(got)
        assert read.next_offset == header.next_offset
        none = log.read(offset, len(rest[0]) - 1, at_least_one=False, up_to=up_to)
        assert none.region is None


def test_out_of_range(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(3), NOW)
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100, at_least_one=True)
    assert log.read(3, 100, at_least_one=True) == (None, 3)


def test_a_sequential_reader_needs_no_lookup(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for _ in range(100):
        append(log, batch(size=500), NOW)
    read = log.read(0, 5000, at_least_one=True)
    assert log.cursors is not None and read.region is not None
    assert log.cursors[read.next_offset] == (log.segments[0], read.region.length)


def test_a_region_outlives_its_segment(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=300)
    for _ in range(10):
        append(log, batch(size=200), NOW)
    content, region = read_all(log, 0), log.read(0, 1000, at_least_one=True).region
    assert region is not None
    log.delete_records_before(10)
    log.delete_scheduled_files(NOW + 10**9, at_most=1000)
    log.close()
    assert region.read() == content[: region.length]


async def test_off_loop_warms_and_asks_again(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(), NOW)
    file = log.segments[0].open_file()
    asked: list[bool] = []

    def ask(may_block: bool) -> int:
        asked.append(may_block)
        if len(asked) < 3:
            raise NotCached(file, 0, 10)
        return log.log_end_offset

    assert await log.off_loop(ask) == 1
    assert asked == [False, False, False]


def test_damage_that_a_read_meets_takes_the_partition_offline(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for _ in range(3):
        append(log, batch(size=100), NOW)
    size = len(batch(size=100))
    with open(log.segments[0].path(".log"), "r+b") as file:  # noqa: PTH123
        file.seek(size + MAGIC_AT)
        file.write(b"\7")
    with pytest.raises(StorageError, match=f"at byte {size}: magic 7"):
        log.read(2, 1000, at_least_one=True)
    assert log.offline is not None and f"at byte {size}: magic 7" in log.offline


def test_a_range_that_fits_exactly_is_given_whole(tmp_path: Path) -> None:
    log = make_log(tmp_path, index_interval_bytes=0)
    for _ in range(5):
        append(log, batch(size=100), NOW)
    size = len(batch(size=100))
    for number in range(1, 6):
        for more, count in ((0, number), (size - 1, number), (-1, number - 1)):
            read = log.read(0, number * size + more, at_least_one=False)
            length = 0 if read.region is None else read.region.length
            assert (length, read.next_offset) == (count * size, count)


def test_what_lies_before_the_log_start_is_out_of_range(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(5), NOW)
    log.delete_records_before(2)
    for offset in (0, 1):
        with pytest.raises(OffsetOutOfRange, match="in the range 2 to 5"):
            log.read(offset, 1000, at_least_one=True)
    assert log.read(2, 1000, at_least_one=True).next_offset == 5


def test_few_readers_are_remembered_and_the_oldest_goes_first(tmp_path: Path) -> None:
    log = make_log(tmp_path, index_interval_bytes=0)
    for _ in range(3 * CURSORS):
        append(log, batch(size=100), NOW)
    size = len(batch(size=100))
    for offset in range(2 * CURSORS):
        log.read(offset, size, at_least_one=True)
    assert log.cursors is not None
    assert list(log.cursors) == list(range(CURSORS + 1, 2 * CURSORS + 1))


def test_a_reader_at_the_end_of_a_segment_goes_on_in_the_next(tmp_path: Path) -> None:
    """It is remembered behind the last batch of a segment that is rolled only then."""
    log = make_log(tmp_path, segment_bytes=500)
    append(log, batch(size=300), NOW)
    assert log.read(0, 1000, at_least_one=True).next_offset == 1
    append(log, batch(size=400), NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    read = log.read(1, 1000, at_least_one=True)
    assert read.region is not None and read.region.position == 0
    assert (parse(read.region.read()).base_offset, read.next_offset) == (1, 2)


def test_a_compacted_log_may_have_nothing_at_its_end(tmp_path: Path) -> None:
    """Kafka's compaction leaves no batch there; another log is damaged then."""
    for policy in ("compact", "delete"):
        log = make_log(tmp_path / policy, cleanup_policy=(policy,))
        append(log, batch(3, key=b"k"), NOW)
        log.log_end_offset = log.next_offset = 5
        if policy == "compact":
            assert log.read(3, 1000, at_least_one=True) == (None, 3)
        else:
            with pytest.raises(StorageError, match="offset 3 is not there"):
                log.read(3, 1000, at_least_one=True)


@pytest.mark.parametrize(("empty", "first"), [((), 0), ((0,), 1), ((0, 1), 2), ((0, 1, 2, 3), 0), ((1,), 0)])
def test_batches_without_records_are_passed_over_where_one_with_records_follows(
    tmp_path: Path, empty: tuple[int, ...], first: int
) -> None:
    """As compaction leaves them; two batches in each segment."""
    size = len(batch(size=100))
    log = make_log(tmp_path, segment_bytes=2 * size)
    for _ in range(4):
        append(log, batch(size=100), NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    for offset in empty:
        with open(log.segments[offset // 2].path(".log"), "r+b") as file:  # noqa: PTH123
            file.seek(offset % 2 * size + COUNT_AT)
            file.write(bytes(4))
    read = log.read(0, 1000, at_least_one=True)
    assert read.region is not None
    assert parse(read.region.read()).base_offset == first
    if first == 2:
        read = log.read(1, 1000, at_least_one=True)
        assert read.region is not None and read.region.position == 0, "the next segment from its beginning"


def test_a_read_that_nothing_fits_into_opens_no_file(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for _ in range(3):
        append(log, batch(), NOW)
    while log.pool.release_one():
        pass
    read = log.read(1, 0, at_least_one=False, up_to=None)
    assert (read.region, read.next_offset) == (None, 1)
    assert len(log.pool) == 0
    with pytest.raises(OffsetOutOfRange):
        log.read(4, 0, at_least_one=False, up_to=None)
    assert log.read(1, 0, at_least_one=True, up_to=None).region is not None
