"""The sparse indexes against plain lists, in memory, on disk and in between."""

import itertools
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.segment.index import OffsetIndex, TimeIndex

steps = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000), st.booleans()), max_size=60)


@given(steps, st.integers(-1, 4000), st.integers(-1, 400_000))
def test_offset_index_is_a_bisect(steps: list[tuple[int, int, bool]], offset: int, position: int) -> None:
    with TemporaryDirectory() as folder:
        index = OffsetIndex(f"{folder}/0.index", FilePool())
        index.create()
        entries = []
        at_offset = at_position = 0
        for more, bytes_, flush in steps:
            at_offset, at_position = at_offset + more, at_position + bytes_
            index.append(at_offset, at_position)
            entries.append((at_offset, at_position))
            if flush:
                index.flush()
        assert index.entries() == entries
        assert index.position_for(offset) == max((p for o, p in entries if o <= offset), default=0)
        assert index.boundary_at_most(position) == max((p for _, p in entries if p <= position), default=0)
        index.flush()
        assert OffsetIndex(index.path, FilePool()).entries() == entries
        assert Path(index.path).stat().st_size == 8 * len(entries)


@given(steps, st.integers(0, 60))
def test_truncate(steps: list[tuple[int, int, bool]], keep: int) -> None:
    with TemporaryDirectory() as folder:
        index = OffsetIndex(f"{folder}/0.index", FilePool())
        index.create()
        entries = [(number, number * 100) for number in range(len(steps))]
        for entry, (_, _, flush) in zip(entries, steps, strict=True):
            index.append(*entry)
            if flush:
                index.flush()
        index.truncate(min(keep, len(entries)))
        assert index.entries() == entries[:keep]
        index.append(1000, 200_000)
        index.flush()
        assert index.last() == (1000, 200_000)
        assert len(index) == min(keep, len(entries)) + 1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=30), st.integers(0, 35))
def test_time_index_ascends_in_both_columns(pairs: list[tuple[int, int]], timestamp: int) -> None:
    with TemporaryDirectory() as folder:
        index = TimeIndex(f"{folder}/0.timeindex", FilePool())
        index.create()
        for pair in pairs:
            index.maybe_append(*pair)
        entries = index.entries()
        assert all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(entries))
        assert index.offset_before(timestamp) == max((o for t, o in entries if t < timestamp), default=0)


@given(st.lists(st.lists(st.tuples(st.integers(-1, 30), st.integers(0, 30)), max_size=8), max_size=8))
def test_several_entries_at_once_are_as_one_after_the_other(steps: list[list[tuple[int, int]]]) -> None:
    with TemporaryDirectory() as folder:
        single, several = (TimeIndex(f"{folder}/{name}.timeindex", FilePool()) for name in "ab")
        single.create()
        several.create()
        for pairs in steps:
            several.append_rising(pairs)
            for pair in pairs:
                single.maybe_append(*pair)
            assert several.entries() == single.entries()
        assert all(timestamp >= 0 for timestamp, _ in single.entries())


def test_which_times_are_entries(tmp_path: Path) -> None:
    """A later time counts, also for the same offset; never an earlier offset, nor a batch without a time."""
    index = TimeIndex(str(tmp_path / "0.timeindex"), FilePool())
    index.create()
    for entry in ((-1, 1), (5, 3), (6, 3), (6, 4), (5, 4), (7, 2), (7, 5)):
        index.maybe_append(*entry)
    assert index.entries() == [(5, 3), (6, 3), (7, 5)]


def test_an_index_without_a_file_is_empty(tmp_path: Path) -> None:
    index = OffsetIndex(str(tmp_path / "0.index"), FilePool())
    assert (len(index), index.entries(), index.last(), index.position_for(7)) == (0, [], None, 0)


def test_half_an_entry_at_the_end_of_the_file_is_none(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(OffsetIndex.ENTRY.pack(3, 100) + b"\0\0\0\7")
    index = OffsetIndex(str(path), FilePool())
    assert index.entries() == [(3, 100)]


def test_what_a_write_leaves_is_written_and_what_comes_meanwhile_stays_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write may take a part only; the loop goes on appending while a worker thread flushes."""
    index = OffsetIndex(str(tmp_path / "0.index"), FilePool())
    index.create()
    for number in range(4):
        index.append(number, number * 100)
    real, writes = os.pwrite, []

    def write(fd: int, data: bytes, at: int) -> int:
        if not writes:
            index.append(4, 400)
        writes.append(at)
        return real(fd, data[:11], at)

    monkeypatch.setattr(os, "pwrite", write)
    index.flush()
    assert writes == [0, 11, 22]
    entries = [(number, number * 100) for number in range(5)]
    assert index.entries() == entries
    assert OffsetIndex(index.path, FilePool()).entries() == entries[:4]
    index.flush()
    assert OffsetIndex(index.path, FilePool()).entries() == entries


def test_a_large_index_is_searched_in_runs(tmp_path: Path) -> None:
    index = OffsetIndex(str(tmp_path / "0.index"), FilePool())
    index.create()
    for number in range(5000):
        index.append(number * 3, number * 4100)
        if number == 4500:
            index.flush()
    for number in range(0, 5000, 7):
        assert index.position_for(number * 3 + 2) == number * 4100
        assert index.boundary_at_most(number * 4100 + 4099) == number * 4100
