"""Stepping over records without looking inside: against a plain reading of the same bytes, number by number."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leafcuttr.wire import record_lengths
from leafcuttr.wire.errors import EndlessNumber, MalformedRecord
from leafcuttr.wire.record_lengths import check_record_lengths
from parity.batches import varint
from support.gates_slice import sampled


def filled(lengths: list[int], byte: int = 0) -> bytes:
    """Records of these lengths, all of one byte inside: what is inside must not matter."""
    return b"".join(varint(length) + bytes([byte]) * length for length in lengths)


def plainly(data: bytes, count: int) -> str:
    """What the format says of these bytes, read one number after another."""
    at = 0
    for _ in range(count):
        value = shift = 0
        while True:
            if at == len(data):
                return "malformed"
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift == 35:
                return "endless"
        value &= 0xFFFFFFFF
        length = (value >> 1) ^ -(value & 1)
        if not 0 <= length <= len(data) - at:
            return "malformed"
        at += length
    return "whole" if at == len(data) else "malformed"


def walked(data: bytes, count: int) -> str:
    try:
        check_record_lengths(memoryview(data), count)
    except EndlessNumber:
        return "endless"
    except MalformedRecord:
        return "malformed"
    return "whole"


RUN = st.tuples(st.sampled_from([0, 1, 7, 62, 63, 64, 65, 127, 128, 300, 8191, 8192]), st.integers(1, 40))
LENGTHS = st.lists(RUN, max_size=12).map(
    lambda runs: [length for length, count in runs for _ in range(count)]
)


@settings(max_examples=sampled(300))
@given(LENGTHS, st.sampled_from([0, 0x80, 0xFF, 0x7F]), st.integers(-2, 2))
@example([100] * 5000, 0, 0)
@example([100] * 15 + [101] * 17 + [100] * 16 + [0] * 300, 0xFF, 0)
@example([63, 64] * 400, 0xFF, 0)
def test_whole_records_are_taken_and_no_other_number_of_them(lengths: list[int], byte: int, off: int) -> None:
    data, count = filled(lengths, byte), max(len(lengths) + off, 0)
    assert walked(data, count) == plainly(data, count)
    assert walked(data, len(lengths)) == "whole"


@settings(max_examples=sampled(500))
@given(LENGTHS, st.data())
def test_a_byte_that_is_wrong_is_seen_as_by_a_plain_reading(lengths: list[int], data: st.DataObject) -> None:
    whole = bytearray(filled(lengths))
    for _ in range(data.draw(st.integers(1, 3))):
        if whole:
            at = data.draw(st.integers(0, len(whole) - 1))
            whole[at] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF]))
    cut = data.draw(st.sampled_from([0, 0, 1, 5]))
    damaged = bytes(whole[: len(whole) - cut])
    assert walked(damaged, len(lengths)) == plainly(damaged, len(lengths))


@settings(max_examples=sampled(500))
@given(st.binary(max_size=200), st.integers(0, 40))
def test_any_bytes_are_seen_as_by_a_plain_reading(data: bytes, count: int) -> None:
    assert walked(data, count) == plainly(data, count)


def test_lengths_that_no_two_neighbours_share() -> None:
    chance = random.Random(5)
    lengths = [chance.randint(0, 12_000) for _ in range(700)]
    data = filled(lengths, 0xFE)
    assert walked(data, 700) == "whole"
    assert walked(data, 699) == walked(data, 701) == walked(data[:-1], 700) == "malformed"


@pytest.mark.parametrize(
    ("data", "count", "said"),
    [
        (b"\xff" * 40, 1, "the length of record 0 takes more than 5 bytes"),
        (filled([4, 4]) + b"junk", 2, "4 bytes follow the last of 2 records"),
        (filled([4, 4]), 3, "the bytes end before record 2"),
        (filled([4]) + b"\x8e", 2, "record 1 ends in the middle of its length"),
        (filled([4]) + varint(-9) + bytes(9), 2, "record 1 claims -9 bytes with 9 left"),
        (filled([4] * 20) + varint(9) + bytes(8), 21, "record 20 claims 9 bytes with 8 left"),
        (filled([4, 5] * 20) + varint(9) + bytes(8), 41, "record 40 claims 1 bytes more than are left"),
        (filled([100] * 20) + varint(300) + bytes(8), 21, "record 20 claims 300 bytes with 8 left"),
    ],
)
def test_the_reason_names_the_record(data: bytes, count: int, said: str) -> None:
    with pytest.raises(MalformedRecord, match=f"^{said}$"):
        check_record_lengths(memoryview(data), count)


class Counting:
    """A view that counts its slices, and the bytes taken out of it by them."""

    def __init__(self, data: bytes) -> None:
        self.view = memoryview(data)
        self.slices = self.taken = 0

    def __len__(self) -> int:
        return len(self.view)

    def __bytes__(self) -> bytes:
        return bytes(self.view)

    def __getitem__(self, at: Any) -> Any:
        found = self.view[at]
        if isinstance(found, memoryview):
            self.slices += 1
            self.taken += len(found)
        return found


@pytest.mark.parametrize("run", [16, 17, 150, 5000])
def test_runs_that_end_again_and_again_are_not_compared_again_and_again(run: int) -> None:
    lengths = [length for turn in range(40_000 // run) for length in [20 + turn % 2] * run]
    records = Counting(filled(lengths))
    check_record_lengths(cast(memoryview, records), len(lengths))
    assert records.taken <= 10 * len(lengths)


def test_a_long_run_is_compared_by_a_few_slices() -> None:
    records = Counting(filled([20] * 100_000))
    check_record_lengths(cast(memoryview, records), 100_000)
    assert records.slices <= 8


def test_of_a_length_of_five_bytes_32_bits_count() -> None:
    assert walked(b"\x88\x80\x80\x80\x70" + bytes(4), 1) == "whole"
    assert walked(b"\x88\x80\x80\x80\x08" + bytes(4), 1) == "malformed"


def padded(length: int, width: int) -> bytes:
    """A record whose length is written in more bytes than it needs."""
    raw = length << 1
    number = bytes(raw >> 7 * at & 0x7F | 0x80 for at in range(width - 1)) + bytes([raw >> 7 * (width - 1)])
    return number + bytes(length)


WIDTHS = st.lists(
    st.tuples(st.lists(st.integers(1, 5), min_size=1, max_size=7), st.integers(1, 60)), min_size=1, max_size=6
)


@settings(max_examples=sampled(300))
@given(WIDTHS, st.integers(0, 3), st.data())
@example([([3], 9000)], 1, cast("Any", None))
@example([([5], 9000)], 1, cast("Any", None))
@example([([1, 1, 1, 3], 4000)], 1, cast("Any", None))
def test_lengths_in_more_bytes_than_they_need(
    runs: list[tuple[list[int], int]], spread: int, data: st.DataObject | None
) -> None:
    widths = [width for pattern, times in runs for width in pattern * times]
    whole = bytearray(b"".join(padded(at % (spread + 1), width) for at, width in enumerate(widths)))
    count = len(widths)
    assert walked(whole, count) == "whole"
    assert walked(whole, count - 1) == walked(whole, count + 1) == "malformed"
    if data is not None:
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(whole) - 1))
            whole[at] = data.draw(st.sampled_from([0, 2, 0x7F, 0x80, 0x81, 0x8F, 0xFE, 0xFF]))
        assert walked(bytes(whole), count) == plainly(bytes(whole), count)


def test_longer_records_among_lengths_in_more_bytes_than_they_need() -> None:
    """Every bit of a length counts there too."""
    row = [(1, 3), (5000, 2), (1, 3), (2, 3), (63, 2), (8191, 2)]
    data = b"".join(padded(length, width) for length, width in row * 20)
    assert walked(data, 120) == plainly(data, 120) == "whole"
    assert walked(data[:-1], 120) == "malformed"


@pytest.mark.parametrize("widths", [[3], [5], [1, 3], [2, 2, 2, 4]])
def test_a_step_in_four_at_most_costs_an_exception(
    widths: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs more than a microsecond, and used to cost a copy of the window besides: 20,000 such records held the
    loop for 30 ms."""
    count, looks, copied = 12_000, 0, 0
    size, take = record_lengths._size, record_lengths._from

    def counted_size(records: memoryview, at: int, index: int) -> int:
        nonlocal looks
        looks += 1
        return size(records, at, index)

    def counted_take(records: memoryview, start: int, window: int) -> Any:
        nonlocal copied
        taken = take(records, start, window)
        copied += len(taken) if isinstance(taken, bytes) else 0
        return taken

    data = b"".join(padded(at % 3, widths[at % len(widths)]) for at in range(count))
    monkeypatch.setattr(record_lengths, "_size", counted_size)
    monkeypatch.setattr(record_lengths, "_from", counted_take)
    assert walked(data, count) == "whole"
    assert looks < count / 20
    assert copied < 15 * len(data)
