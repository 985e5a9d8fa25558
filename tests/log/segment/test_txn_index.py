"""The transaction index by itself: what is on disk and what is pending are one sequence of entries."""

import struct
from pathlib import Path

import pytest

from leafcuttr.log.files.open_file import NotCached
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.segment.txn_index import AbortedTransaction, TransactionIndex

ENTRY = 34


def entry(number: int) -> AbortedTransaction:
    """Transactions one behind the other, ten offsets each; the marker is the last of them."""
    return AbortedTransaction(number, number * 10, number * 10 + 9, number * 10 + 10)


def index_of(folder: Path, *, on_disk: int = 0, pending: int = 0) -> TransactionIndex:
    index = TransactionIndex(str(folder / f"{0:020d}.txnindex"), FilePool())
    for number in range(on_disk):
        index.append(entry(number))
    if on_disk:
        index.flush()
    for number in range(on_disk, on_disk + pending):
        index.append(entry(number))
    return index


def again(index: TransactionIndex) -> TransactionIndex:
    return TransactionIndex(index.path, FilePool())


def test_the_file_is_kafkas(tmp_path: Path) -> None:
    index = index_of(tmp_path, on_disk=1)
    assert Path(index.path).read_bytes() == struct.pack(">hqqqq", 0, 0, 0, 9, 10)


@pytest.mark.parametrize(
    ("on_disk", "pending"), [(0, 0), (0, 3), (3, 0), (2, 2), (1, 5), (1023, 3), (1024, 1), (2500, 2)]
)
def test_entries_are_read_from_the_disk_and_from_memory(tmp_path: Path, on_disk: int, pending: int) -> None:
    """More of them, too, than are read at once."""
    index = index_of(tmp_path, on_disk=on_disk, pending=pending)
    assert len(index) == on_disk + pending
    assert index.aborted() == [entry(number) for number in range(on_disk + pending)]
    assert Path(index.path).exists() == bool(on_disk)
    if on_disk:
        assert Path(index.path).stat().st_size == on_disk * ENTRY


def test_flushing_makes_the_file_at_the_first_entry(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    index.flush()
    assert not Path(index.path).exists()
    index.append(entry(0))
    index.flush()
    index.append(entry(1))
    index.flush()
    assert Path(index.path).stat().st_size == 2 * ENTRY
    assert again(index).aborted() == [entry(0), entry(1)]


def test_a_file_that_is_there_but_empty_is_written_to(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    Path(index.path).touch()
    index.append(entry(0))
    index.flush()
    assert again(index).aborted() == [entry(0)]


@pytest.mark.parametrize(("on_disk", "pending"), [(0, 5), (5, 0), (2, 3)])
@pytest.mark.parametrize(
    ("offset", "kept"),
    [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (29, 2), (30, 3), (49, 4), (50, 5), (99, 5)],
)
def test_markers_behind_a_cut_go(tmp_path: Path, on_disk: int, pending: int, offset: int, kept: int) -> None:
    index = index_of(tmp_path, on_disk=on_disk, pending=pending)
    index.forget_from(offset)
    assert index.aborted() == [entry(number) for number in range(kept)]
    index.append(entry(7))
    index.flush()
    assert again(index).aborted() == [*(entry(number) for number in range(kept)), entry(7)]


def test_nothing_goes_of_nothing(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    index.forget_from(5)
    assert (len(index), index.aborted(), index.overlapping(0, 100)) == (0, [], ([], False))
    assert not Path(index.path).exists()


@pytest.mark.parametrize(("on_disk", "pending"), [(0, 5), (5, 0), (2, 3)])
@pytest.mark.parametrize(
    ("from_offset", "up_to", "found", "complete"),
    [
        (0, 10, [0], True),  # the first leaves a last stable offset of 10: nothing before it is undecided
        (0, 11, [0, 1], True),
        (9, 10, [0], True),
        (10, 20, [1], True),
        (10, 21, [1, 2], True),
        (19, 20, [1], True),
        (49, 50, [4], True),
        (40, 51, [4], False),
        (50, 60, [], False),
        (0, 1, [0], True),
        (0, 99, [0, 1, 2, 3, 4], False),
    ],
)
def test_who_reads_a_range_gets_the_transactions_in_it(
    tmp_path: Path, on_disk: int, pending: int, from_offset: int, up_to: int, found: list[int], complete: bool
) -> None:
    index = index_of(tmp_path, on_disk=on_disk, pending=pending)
    assert index.overlapping(from_offset, up_to) == ([entry(number) for number in found], complete)


def test_a_transaction_that_began_earlier_may_end_behind_one_that_began_later(tmp_path: Path) -> None:
    """So that one begins behind the range says nothing of the next."""
    index = index_of(tmp_path)
    short, long = AbortedTransaction(1, 20, 25, 0), AbortedTransaction(2, 0, 30, 31)
    index.append(short)
    index.append(long)
    assert index.overlapping(0, 20) == ([long], True)
    assert index.overlapping(0, 21) == ([short, long], True)


def test_who_may_not_block_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any entry that has to be read; what is pending needs no disk."""
    index = index_of(tmp_path, on_disk=3)

    def not_cached(*_: object) -> int:
        raise BlockingIOError

    monkeypatch.setattr("os.preadv", not_cached)
    with pytest.raises(NotCached):
        index.overlapping(0, 10, may_block=False)
    with pytest.raises(NotCached):
        list(index._from(0, False))
    assert index.aborted() == [entry(0), entry(1), entry(2)]
    assert index.overlapping(0, 10) == ([entry(0)], True)
    assert index_of(tmp_path / "none", pending=2).overlapping(0, 10, may_block=False) == ([entry(0)], True)


@pytest.mark.parametrize("left", [0, ENTRY - 1, ENTRY, 2 * ENTRY + 5])
def test_a_file_that_has_become_shorter_gives_what_is_whole(tmp_path: Path, left: int) -> None:
    index = index_of(tmp_path, on_disk=3, pending=1)
    with Path(index.path).open("r+b") as file:
        file.truncate(left)
    assert index.aborted() == [entry(number) for number in range(left // ENTRY)]


def test_a_flush_in_the_middle_of_reading_shows_no_entry_twice(tmp_path: Path) -> None:
    """Another thread may flush: what was pending when the reading began is in the file by now."""
    index = index_of(tmp_path, on_disk=1025, pending=2)
    reading = index._from(0, True)
    found = [next(reading)]
    index.flush()
    found.extend(reading)
    assert [fields[1] for fields in found] == list(range(1027))
