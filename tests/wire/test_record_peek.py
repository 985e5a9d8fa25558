"""What validators see of records that are not taken out agrees with the records, on sound bytes and on damaged ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leafcuttr.wire import record_peek, record_runs
from leafcuttr.wire.batch import HEADER_SIZE
from leafcuttr.wire.errors import EndlessNumber, MalformedMessage, MalformedRecord, WireError
from leafcuttr.wire.loose_records import take_apart
from leafcuttr.wire.primitives import write_varlong
from leafcuttr.wire.record_peek import TooManyHeaders, compile_early, peek_records
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.peek import Peek, PeekedBatch
from support.gates_slice import sampled

ALL = Peek(5, 5, ("a", "__value_schema_id", "\udcff"))
PEEKS = [
    ALL,
    Peek(value_bytes=5),
    Peek(key_bytes=0),
    Peek(key_bytes=3, value_bytes=0),
    Peek(headers=("a",)),
    Peek(value_bytes=70),
    Peek(key_bytes=10_000, value_bytes=10_000),
]


def encoded(records: Sequence[Record]) -> bytes:
    return bytes(encode_batch(records)[HEADER_SIZE:])


def expected(data: bytes, count: int, peek: Peek) -> PeekedBatch | None:
    """By the reader of whole records; None if that refuses them."""
    try:
        records = take_apart(data, count, 0).records
    except MalformedMessage:
        return None

    def first(content: bytes | None, most: int) -> bytes | None:
        return None if content is None else content[:most]

    return PeekedBatch(
        count,
        [first(one.key, peek.key_bytes) for one in records] if peek.key_bytes is not None else [],
        [first(one.value, peek.value_bytes) for one in records] if peek.value_bytes is not None else [],
        {
            name: [tuple(content for header, content in one.headers if header == name) for one in records]
            for name in peek.headers
        },
    )


def peeked(data: bytes, count: int, peek: Peek) -> PeekedBatch | None:
    # Bytes behind the records show whether any of them is read.
    view = memoryview(data + b"\x80" * 64)[: len(data)]
    try:
        return peek_records(view, count, peek)
    except MalformedMessage:
        return None


def check(data: bytes, count: int, peeks: Sequence[Peek] = PEEKS) -> None:
    for peek in peeks:
        assert peeked(data, count, peek) == expected(data, count, peek)


contents = st.none() | st.binary(max_size=12) | st.sampled_from([63, 64, 65, 300, 8191, 8192]).map(bytes)
names = st.sampled_from(["", "a", "b", "__value_schema_id", "\udcff", "é" * 40])
headers = st.lists(st.tuples(names, contents), max_size=3).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> list[Record]:
    """Runs of records of one layout, whose values may have different lengths, and others between them."""
    records: list[Record] = []
    for _ in range(draw(st.integers(1, 3))):
        key, value, heads = draw(contents), draw(contents), draw(headers)
        lengths = (
            draw(st.lists(st.integers(0, 20) | st.integers(70, 300), max_size=5)) if value is not None else []
        )
        step = draw(st.sampled_from([0, 0, 1, 7]))
        for number in range(draw(st.sampled_from([1, 3, 40, 70, 200]))):
            if lengths and value is not None:
                value = (value * 300 or b"x" * 300)[: lengths[number % len(lengths)]]
            records.append(Record(len(records), len(records) * step, key, value, heads))
    return records


@given(batches(), st.data())
@settings(max_examples=sampled(150), deadline=None)
def test_it_agrees_with_the_records(records: list[Record], data: st.DataObject) -> None:
    whole = bytearray(encoded(records))
    for _ in range(data.draw(st.sampled_from([0, 0, 1, 2]))):
        at = data.draw(st.integers(0, len(whole) - 1))
        byte = data.draw(st.sampled_from([0, 1, 3, 0x7F, 0x80, 0x81, 0xFF]) | st.integers(0, 255))
        match data.draw(st.sampled_from("sid")):
            case "s":
                whole[at] = byte
            case "i":
                whole[at:at] = bytes([byte]) * data.draw(st.integers(1, 11))
            case "d" if len(whole) > 1:
                del whole[at]
            case _:
                pass
    count = len(records) + data.draw(st.sampled_from([0, 0, 0, -1, 1]))
    check(bytes(whole), count, [data.draw(st.sampled_from(PEEKS)), ALL])


def alike(count: int, value: bytes = b"\0\0\0\0\1" + bytes(95), **fields: Any) -> list[Record]:
    return [Record(n, 0, b"key%04d" % n, value, **fields) for n in range(count)]


def test_a_run_is_not_walked_over_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of equal lengths and of different ones."""
    heads = (("a", b"1234"), ("b", None))
    lengths = [Record(n, 0, b"key%04d" % n, bytes(100 + n % 41), heads) for n in range(500)]
    for records in (alike(500), alike(500, headers=heads), alike(3000), lengths, alike(500, b"\7" * 9000)):
        data = encoded(records)
        due = [expected(data, len(records), peek) for peek in PEEKS]
        with monkeypatch.context() as patched:
            patched.setattr(record_peek, "_walk_for", None)
            for peek, wanted in zip(PEEKS[:-1], due, strict=False):
                assert peek_records(memoryview(data), len(records), peek) == wanted


@pytest.mark.parametrize("size", [10, 20, 150, 9000])
@pytest.mark.parametrize("more", [0, 41])
def test_a_run_goes_on_where_offset_deltas_take_two_bytes(size: int, more: int) -> None:
    """Unless the lengths of records take a byte more as well, or three, which are not stepped over at once."""
    records = [Record(n, 0, b"k%03d" % n, bytes(size + n * 7 % (more + 1))) for n in range(200)]
    data = memoryview(encoded(records))
    run, _ = record_runs.take_run(data, 0, 0, 200, Peek(value_bytes=5), record_runs.Taken([], [], {}))
    if size in (20, 150):
        assert run == 200 or (size, more) == (20, 41)
    check(bytes(data), 200)


@pytest.mark.parametrize("overlong", [False, True])
def test_lengths_that_are_wrong_in_all_records_whose_offset_deltas_take_two_bytes(overlong: bool) -> None:
    """They claim a byte more than there is. Or the length takes the byte that is the attributes', so that what looks
    like the offset delta is the timestamp's."""
    records = [Record(n, 0, b"k", b"v" * 20) for n in range(100)]
    data = bytearray(encoded(records))
    length = data[0]
    for n in range(64, 100):
        at = len(encoded(records[:n]))
        assert data[at] == length + 2
        data[at] = length | 0x80 if overlong else length + 4
    assert expected(bytes(data), 100, ALL) is None
    check(bytes(data), 100)


def test_a_value_that_is_too_long_for_the_sum_of_lengths() -> None:
    """With what is beside it, its length is 2**14 more than that of the record, which two bytes do not tell apart. The
    length of the next record is where that of the value should be."""
    records = [Record(n, 0, bytes(10), bytes(100 + n % 2)) for n in range(60)]
    next_one = encoded([Record(n, 0, bytes(10), bytes(8172)) for n in range(42)])[-8191:]
    crafted = b"\x9c\0" + b"\0\0" + bytes((2 * 40, 20)) + bytes(10)
    after = len(encoded(records[:42]))
    data = encoded(records[:40]) + crafted + next_one + encoded(records)[after:]
    assert next_one[:2] == b"\xfa\x7f"
    assert expected(data, 60, ALL) is None
    check(data, 60)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("count", [31, 32, 33, 63, 64, 65, 95, 96, 97, 128, 512, 8191, 8192, 8200, 8300])
def test_any_count_of_records_that_are_alike(count: int) -> None:
    check(encoded(alike(count, b"\0\0\0\0\1")), count)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", [0, 1, 63, 64, 98, 99])
def test_any_byte_of_a_run_may_be_wrong(place: int) -> None:
    """Each byte of a record, in turn, in a run of such: as it is read alone."""
    records = [
        Record(n, 1000 * n, b"k%03d" % n, bytes(70 + n % 3), (("a", b"xy"), ("b", b""))) for n in range(100)
    ]
    data = encoded(records)
    begins = len(encoded(records[:place]))
    ends = len(encoded(records[: place + 1])) if place + 1 < 100 else len(data)
    for at in range(begins, ends):
        if begins + 20 < at < ends - 12:
            continue  # of the value, which says nothing
        for change in (1, 0x80, 2, 0xFF):
            wrong = bytearray(data)
            wrong[at] ^= change
            check(bytes(wrong), 100, [ALL, Peek(value_bytes=71), Peek(headers=("a",))])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", [1, 63, 64, 99])
def test_any_byte_of_records_of_one_size_may_be_wrong(place: int) -> None:
    """What is changed is the same in all but this one, which is where it should be."""
    records = [Record(n, 1000, b"k%03d" % n, b"\0" * 20, (("a", b"xy"),)) for n in range(100)]
    data = encoded(records)
    begins = len(encoded(records[:place]))
    for at in range(begins, len(encoded(records[: place + 1]))):
        for change in (1, 2, 0x80):
            wrong = bytearray(data)
            wrong[at] ^= change
            check(bytes(wrong), 100, [ALL, Peek(value_bytes=5)])


def test_records_of_one_size_whose_lengths_would_take_a_byte_more() -> None:
    """64 records of 64 bytes, and others of 65, which need two bytes for their lengths, and have one, which is 0."""
    records = [Record(n, 0, b"k", b"v" * 56) for n in range(100)]
    data = bytearray(encoded(records[:64]))
    assert len(data) == 64 * 64
    for n in range(64, 100):
        last = n == 99
        data += one(
            n, length=b"\xfe\0" if last else b"\0", rest=b"\2k\x70" + b"v" * (55 + (not last)) + b"\0"
        )
    data[-57] -= 2 * 1  # the length of the last value, which is a byte shorter
    assert len(data) == 64 * 64 + 36 * 65
    assert expected(bytes(data), 100, ALL) is None
    check(bytes(data), 100)


def test_lengths_that_make_up_for_each_other_are_refused() -> None:
    """A value that takes a byte too many, of the record behind it: the sum of all is right."""
    records = [Record(n, 0, None, bytes(80 + n % 2)) for n in range(64)]
    data = bytearray(encoded(records))
    at = len(encoded(records[:40])) + 6
    assert data[at : at + 2] == b"\xa0\1"  # the length of its value, 80
    data[at] += 2
    assert expected(bytes(data), 64, ALL) is None
    check(bytes(data), 64)


def test_names_that_differ_in_a_run() -> None:
    records = [
        Record(n, 0, b"k", b"v" * 100, (("a" if n % 5 else "b", b"1"), ("__value_schema_id", b"\0" * 17)))
        for n in range(200)
    ]
    check(encoded(records), 200)


def test_headers_that_are_missing_repeated_or_null() -> None:
    for heads in (
        (),
        (("a", None),),
        (("a", b""), ("a", b"2"), ("b", b"3")),
        (("a", b"1"), ("a", None)),
        (("\udcff", b"1"), ("", b"2")),
    ):
        check(encoded(alike(100, headers=heads)), 100)
        check(encoded(alike(3, headers=heads)), 3)
    found = peek_records(memoryview(encoded(alike(40, headers=(("a", None), ("a", b"2"))))), 40, ALL)
    assert found.headers["a"] == [(None, b"2")] * 40
    assert found.headers["__value_schema_id"] == [()] * 40


def test_what_was_not_asked_for_is_empty() -> None:
    data = memoryview(encoded(alike(100)))
    assert peek_records(data, 100, Peek(key_bytes=3)) == PeekedBatch(100, [b"key"] * 100, [], {})
    assert peek_records(data, 100, Peek(value_bytes=0)) == PeekedBatch(100, [], [b""] * 100, {})


def one(offset: int, *, length: bytes | None = None, time: bytes = b"\0", rest: bytes = b"\1\2v\0") -> bytes:
    body = bytearray(b"\0" + time)
    write_varlong(body, offset)
    body += rest
    out = bytearray(length or b"")
    if length is None:
        write_varlong(out, len(body))
    return bytes(out + body)


@pytest.mark.parametrize(
    "wrong",
    [
        one(40, rest=b"\3\2v\0"),
        one(40, rest=b"\1\3\0"),
        one(40, rest=b"\1\2v\1"),
        one(40, rest=b"\1\2v\2\1\0"),
        one(40, rest=b"\1\2v\2\2a\3"),
        one(40, rest=b"\1\2v\2\x08a\0"),
        one(40, rest=b"\1\2v\x0a\0\0"),
        one(40, rest=b"\1\x82\x80\0v\0"),
        one(40, rest=b"\1\x82\x80\x80\x80\x80\0v\0"),
        one(40, time=b"\xff" * 9 + b"\2"),
        one(40, time=b"\x80" * 9 + b"\1"),
        one(41),
        one(-1),
        b"",
        b"\1",
        b"\xff",
        b"\x80" * 6,
    ],
)
def test_unusual_records_alone_and_in_a_run(wrong: bytes) -> None:
    good = [one(n) for n in range(120)]
    check(b"".join([*good[:40], wrong, *good[41:]]), 120)
    check(b"".join([*good[:40], wrong]), 41)
    for first in (wrong, *good[:1]):
        check(first, 1)


def test_the_words_name_the_record() -> None:
    data = b"".join([*(one(n) for n in range(70)), one(9)])
    with pytest.raises(MalformedRecord, match="record 70 has the offset delta 9"):
        peek_records(memoryview(data), 71, ALL)
    with pytest.raises(EndlessNumber, match="the length of record 1 takes more than 5 bytes"):
        peek_records(memoryview(one(0) + b"\x80" * 9), 2, ALL)
    for count, words in (
        (69, "bytes follow the last of 69"),
        (73, "record 72 ends in the middle of a number"),
    ):
        whole = b"".join(one(n) for n in range(72))
        with pytest.raises(MalformedRecord, match=words):
            peek_records(memoryview(whole), count, ALL)


def test_many_headers_are_left_to_those_that_have_the_time() -> None:
    many = (("a", b"1"),) * 20
    data = memoryview(encoded([Record(n, 0, None, bytes(n), many) for n in range(10)]))
    assert peek_records(data, 10, ALL, most_headers=200).headers["a"] == [(b"1",) * 20] * 10
    with pytest.raises(TooManyHeaders):
        peek_records(data, 10, ALL, most_headers=199)


def test_the_last_records_are_read_alone_where_a_row_would_go_beyond_the_end() -> None:
    """With 70 bytes of values asked for, and records that are shorter behind long ones."""
    records = [Record(n, 0, None, bytes(100 if n < 60 else 80)) for n in range(61)]
    check(encoded(records), 61, [Peek(value_bytes=80), Peek(value_bytes=81), Peek(value_bytes=100)])


@pytest.mark.parametrize("copied", [False, True])
def test_it_is_compiled_once(copied: bool) -> None:
    compile_early(ALL)
    assert record_peek._walk_for(ALL, copied) is record_peek._walk_for(Peek(9, 9, ("b",)), copied)


@example([1] * 200, 0, 1)
@example([127, 128, 16383] * 20, 16383, 2)
@given(
    st.lists(st.integers(0, 16383), min_size=1, max_size=200), st.integers(0, 128**3 - 1), st.integers(0, 3)
)
def test_sums_of_all_records_at_once(numbers: list[int], more: int, width: int) -> None:
    count = len(numbers)
    low, high = bytes(n & 0x7F | 0x80 for n in numbers), bytes(n >> 7 for n in numbers)
    ones = record_runs._ones(count)
    low_bits = 0x7F * ones
    digits = [int.from_bytes(column, "little") & low_bits for column in (low, high)]
    others = [(more >> 7 * at & 0x7F) * ones for at in range(width)]
    sums, carry = record_runs._sums(digits, others, low_bits)
    assert len(sums) == width
    lanes = [one.to_bytes(count, "little") for one in (*sums, carry)]
    for index, number in enumerate(numbers):
        due = number % 128**width + more % 128**width
        assert [lane[index] for lane in lanes] == [due >> 7 * at & 0x7F for at in range(width)] + [
            due >> 7 * width
        ]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_equal_lanes(lanes: list[int]) -> None:
    found = record_runs._equal_lanes(int.from_bytes(bytes(lanes), "little"), len(lanes))
    assert found == next((at for at, lane in enumerate(lanes) if lane), len(lanes))


@pytest.mark.parametrize("cut", [1, 3, 150])
def test_the_last_of_records_of_different_lengths_goes_beyond_the_end(cut: int) -> None:
    records = [Record(n, 0, b"key%04d" % n, b"\0\0\0\0\1" + bytes(200 + n % 7)) for n in range(100)]
    data = encoded(records)
    with pytest.raises(MalformedRecord, match=r"record 99 claims \d+ bytes with \d+ left"):
        peek_records(memoryview(data + bytes(300))[: len(data) - cut], 100, Peek(value_bytes=5))


def test_it_takes_what_the_walk_over_records_takes() -> None:
    with pytest.raises(WireError):
        take_apart(b"\0", 1, 0)
    check(b"\0", 1)
    check(b"", 0)


@pytest.mark.parametrize("offset", [b"\x80\x80\0", b"\x80\0", b"\0"])
@pytest.mark.parametrize(
    "size", [b"\2", b"\x82\0", b"\x82\x80\x80\0", b"\x82\x80\x80\x80\x80\0", b"\x82" + b"\x80" * 9]
)
def test_a_run_of_numbers_in_more_bytes_than_they_need(offset: bytes, size: bytes) -> None:
    """The offset delta stays 0, which is wrong from the second record on."""
    body = b"\0\0" + offset + size + b"k" + b"\2v\0"
    records = bytes((2 * len(body),)) + body
    for count in (1, 100):
        check(records * count, count)


def test_a_header_value_beyond_its_record() -> None:
    with pytest.raises(MalformedRecord, match="a header value of 5 bytes does not fit into its record"):
        peek_records(memoryview(one(0, rest=b"\1\2v\2\2a\x0ab")), 1, ALL)


LIKE = [
    ((b"key", b"0123456789", (("a", b"1"),)), 0),
    ((b"key", b"0123456789", (("b", b"1"),)), 0),  # another header of one length
    ((b"key", b"0123456789", (("a", b"2"),)), 0),
    ((b"key", b"01234567890", ()), 0),
    ((b"keys", b"012345678", (("a", b"1"),)), 0),  # the same size in all, another size of the key
    ((None, b"0123456789abc", (("a", b"1"),)), 0),
    ((b"key", b"0123456789", (("a", b"1"),)), 3),  # another time
    ((b"key", b"0123456789", (("a", None),)), 0),
]


@cache
def of_like(place: int, count: int) -> bytes:
    (key, value, headers), delta = LIKE[place]
    return encoded([Record(index, 1000 + delta * index, key, value, headers) for index in range(count)])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("before", range(len(LIKE)))
@pytest.mark.parametrize("peek", [ALL, Peek(value_bytes=5), Peek(key_bytes=4, headers=("b",))])
def test_batches_one_after_the_other_that_begin_alike(peek: Peek, before: int) -> None:
    """The layout of the one before is used again only where it is that of this one."""
    batches = {place: {count: of_like(place, count) for count in (200, 50)} for place in range(len(LIKE))}
    due = {
        place: {count: expected(batches[place][count], count, peek) for count in (200, 50)}
        for place in batches
    }
    for number in range(len(LIKE)):
        for place, count in product((before, number), (200, 50, 200)):
            data = batches[place][count]
            assert peeked(data, count, peek) == due[place][count]
            # And where the first record is cut off, or the whole batch.
            for cut in (1, len(data) - 20, len(data) - 5):
                assert peeked(data[:-cut], count, peek) is None


def test_known_layouts_are_bounded() -> None:
    data = encoded([Record(index, 1000, None, b"x" * 100) for index in range(100)])
    for number in range(1000):
        peek_records(memoryview(data), 100, Peek(value_bytes=number % 90, headers=(str(number),)))
    assert len(record_runs._known) <= record_runs._MOST_KNOWN
