"""Reads: every offset finds its batch, ranges are whole batches, limits hold."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.errors import OffsetOutOfRange
from leafcuttr.log.files import NotCached
from leafcuttr.wire.batch import parse
from support.logs import NOW, batch, make_log, read_all


@settings(max_examples=60, deadline=None)
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
            base = log.stage(view, now_ms=NOW).base_offset
            log.commit()
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
    log.append(batch(3), NOW)
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100, at_least_one=True)
    assert log.read(3, 100, at_least_one=True) == (None, 3)


def test_a_sequential_reader_needs_no_lookup(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    for _ in range(100):
        log.append(batch(size=500), NOW)
    read = log.read(0, 5000, at_least_one=True)
    assert log.cursors is not None and read.region is not None
    assert log.cursors[read.next_offset] == (log.segments[0], read.region.length)


def test_a_region_outlives_its_segment(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=300)
    for _ in range(10):
        log.append(batch(size=200), NOW)
    content, region = read_all(log, 0), log.read(0, 1000, at_least_one=True).region
    assert region is not None
    log.delete_records_before(10)
    log.delete_scheduled_files(NOW + 10**9, at_most=1000)
    log.close()
    assert region.read() == content[: region.length]


async def test_off_loop_warms_and_asks_again(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.append(batch(), NOW)
    file = log.segments[0].open_file()
    asked: list[bool] = []

    def ask(may_block: bool) -> int:
        asked.append(may_block)
        if len(asked) < 3:
            raise NotCached(file, 0, 10)
        return log.log_end_offset

    assert await log.off_loop(ask) == 1
    assert asked == [False, False, False]
