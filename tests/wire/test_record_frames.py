"""The generated readers of records agree with a plain one, on sound bytes and on damaged ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.log.cleaner.compaction.walk import max_timestamp, walk
from leafcuttr.wire.batch import HEADER_SIZE, parse
from leafcuttr.wire.entries import decode_entries
from leafcuttr.wire.errors import MalformedMessage, MalformedRecord
from leafcuttr.wire.loose_records import take_apart
from leafcuttr.wire.primitives import write_varlong
from leafcuttr.wire.record_frames import compile_frame
from leafcuttr.wire.record_layout import RECORD, Number
from leafcuttr.wire.record_summary import record_shapes, summarize_records
from leafcuttr.wire.records import Record, decode_records, encode_batch
from support.gates_slice import sampled

TOO_SHORT = "the bytes end here"
sizes = st.sampled_from([0, 1, 63, 64, 65, 8191, 8192, 8193])
maybe_bytes = st.none() | st.binary(max_size=90) | sizes.map(bytes)
headers = st.just(()) | st.lists(st.tuples(st.text(max_size=70), maybe_bytes), max_size=3).map(tuple)
times = st.integers(-1, 2**42) | st.sampled_from([0, 63, 64, 8191, 8192, 8193, 2**62, 2**63 - 1, -(2**63)])
rows = st.lists(st.tuples(times, maybe_bytes, maybe_bytes, headers), min_size=1, max_size=70)


class Refused(Exception):
    """The plain reader has found something wrong."""


class Plain:
    """Reads records number by number, from the layout's description in KIP-98."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, bits: int = 32) -> int:
        value = shift = 0
        while True:
            if self.at >= len(self.data):
                raise Refused(TOO_SHORT)
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift >= (70 if bits == 64 else 35):
                raise Refused("too many bytes")
        if value >> bits:
            raise Refused("too many bits")
        return value >> 1 if value % 2 == 0 else -(value >> 1) - 1

    def bytes_(self, end: int, least: int = -1) -> bytes | None:
        size = self.number()
        if size < least or self.at + max(size, 0) > end:
            raise Refused("a size that does not fit")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size : self.at]

    def record(self) -> tuple[int, int, bytes | None, bytes | None, tuple[Any, ...]]:
        length = self.number()
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise Refused("a length that does not fit")
        self.at += 1
        time, offset, key, value = self.number(64), self.number(), self.bytes_(end), self.bytes_(end)
        count = self.number()
        if count < 0 or 2 * count > end - self.at:
            raise Refused("a count that does not fit")
        found = []
        for _ in range(count):
            name = self.bytes_(end, least=0)
            assert name is not None
            found.append((name.decode("utf-8", "surrogateescape"), self.bytes_(end)))
        if self.at != end:
            raise Refused("it ends elsewhere")
        return time, offset, key, value, tuple(found)


def plain(
    data: bytes, count: int
) -> list[tuple[int, int, bytes | None, bytes | None, tuple[Any, ...]]] | None:
    reader = Plain(data)
    try:
        found = [reader.record() for _ in range(count)]
    except Refused:
        return None
    return found if reader.at == len(data) else None


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except MalformedMessage:
        return None


@given(rows, st.sampled_from([0, 0, 1, 2]), st.sampled_from([1, 1, 2, 300, 10_000]), st.data())
@settings(max_examples=sampled(300), deadline=None)
def test_all_readers_agree_with_a_plain_one(
    drawn: list[Any], damages: int, gap: int, data: st.DataObject
) -> None:
    records = [Record(number * gap, *row) for number, row in enumerate(drawn)]
    batch = encode_batch(records)
    for _ in range(damages):
        at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
        byte = data.draw(st.sampled_from([0, 1, 3, 0x7F, 0x80, 0x81, 0xFF]) | st.integers(0, 255))
        match data.draw(st.sampled_from("sid")):
            case "s":
                batch[at] = byte
            case "i":
                batch[at:at] = bytes([byte]) * data.draw(st.integers(1, 11))
            case "d" if len(batch) > HEADER_SIZE + 1:
                del batch[at]
    all_agree(bytes(batch))


def record_of(
    time: bytes = b"\0", offset: bytes = b"\0", key: bytes = b"\1", value: bytes = b"\1", heads: bytes = b"\0"
) -> bytes:
    one = b"\0" + time + offset + key + value + heads
    out = bytearray()
    write_varlong(out, len(one))
    return bytes(out) + one


NEGATIVE = {"-2": b"\3", "-2 in two bytes": b"\x83\0", "-2 in three": b"\x83\x80\0", "-100": b"\xc7\1"}
LONG = {f"{size} bytes": b"\x80" * (size - 1) + b"\0" for size in range(2, 12)}
LONG |= {f"null in {size} bytes": b"\x81" + b"\x80" * (size - 2) + b"\0" for size in range(2, 7)}
LONG |= {"null, and more than 32 bits": b"\x81\x80\x80\x80\x10"}
LONG |= {"more than 32 bits": b"\xff\xff\xff\xff\x1f", "more than 64 bits": b"\xff" * 9 + b"\2"}
HEADS = {
    "a key beyond the end": b"\2\x08a\0",
    "a value beyond the end": b"\2\2a\x04b",
    "a negative key": b"\2\1\0",
    "a negative value": b"\2\2a\3",
    "a value in two bytes": b"\2\2a\x82\0b",
    "null": b"\2\2a\1",
    "more than fit": b"\6\0\0\0\0",
    "fewer than fit": b"\2\0\0\0\0",
    "a negative count": b"\1",
}
MADE = {
    **{
        f"{field} {kind}": record_of(**{field: encoded})
        for field in ("key", "value", "heads")
        for kind, encoded in (NEGATIVE | LONG).items()
    },
    **{
        f"{f} {kind}": record_of(**{f: encoded}) for f in ("time", "offset") for kind, encoded in LONG.items()
    },
    **{f"headers, {kind}": record_of(heads=encoded) for kind, encoded in HEADS.items()},
    "a negative offset": record_of(offset=b"\1"),
    "a length of -7": b"\x0d" + record_of()[1:],
    "a length in two bytes": b"\x8c\0" + record_of()[1:],
    "a length of one too many": b"\x0e" + record_of()[1:],
    "a length of one too few": b"\x0a" + record_of()[1:],
}


@pytest.mark.parametrize("name", MADE)
def test_all_readers_agree_on_what_no_encoder_writes(name: str) -> None:
    batch = bytearray(encode_batch([Record(0, 0, None, None), Record(1, 0, None, None)]))
    sound = bytes(batch[HEADER_SIZE:])
    all_agree(bytes(batch[:HEADER_SIZE]) + sound[: len(sound) // 2] + record_of(offset=b"\2"))
    again = MADE[name]
    batch[23:27] = bytes(4)  # the last offset delta
    batch[57:61] = (1).to_bytes(4, "big")
    all_agree(bytes(batch[:HEADER_SIZE]) + again)


@pytest.mark.parametrize("null", [b"\1", b"\x81\0", b"\x81\x80\0"])
def test_values_that_are_null_in_a_run_of_one_shape(null: bytes) -> None:
    """The bulk reader of keys takes such runs apart by columns."""
    empty = b"\x80" * (len(null) - 1) + b"\0"
    values = [null if number % 3 == 1 else empty for number in range(50)]
    records = b"".join(record_of(key=b"\2k", value=value) for value in values)
    batch = bytearray(encode_batch([Record(number, 0, b"k", b"") for number in range(50)]))
    all_agree(bytes(batch[:HEADER_SIZE]) + records)


def all_agree(whole: bytes) -> None:
    header = parse(whole)
    payload, base, count = whole[HEADER_SIZE:], header.base_timestamp, header.count
    due = plain(payload, count)

    def known(change: Callable[..., Any]) -> Any:
        return None if due is None else [change(*each) for each in due]

    assert outcome(lambda: [tuple(one) for one in decode_records(whole)]) == known(
        lambda time, offset, key, value, heads: (offset, wrapped(base + time), key, value, heads)
    )
    assert outcome(lambda: decode_entries(header, whole)) == known(
        lambda time, offset, key, value, heads: (offset, key, value)
    )
    if due is not None:  # what is inside of headers is not looked at, so more may be accepted
        shapes = [tuple(one) for one in record_shapes(payload, count)]
        assert shapes == [(time, offset, key is not None) for time, offset, key, _, _ in due]
        walked = walk(payload, 0, len(payload), count)
        assert walked.keys == [each[2] for each in due]
        assert walked.nulls == [number for number, each in enumerate(due) if each[3] is None]
        largest = max(wrapped(base + each[0]) for each in due)
        assert max_timestamp(payload, walked.bounds[:-1], base) == largest
    loose = outcome(lambda: take_apart(payload, count, base))
    if due is None or [each[1] for each in due] != list(range(count)):
        assert loose is None
    else:
        assert [tuple(one) for one in loose.records] == known(
            lambda time, offset, key, value, heads: (value, key, heads, wrapped(base + time))
        )
    summary = outcome(lambda: summarize_records(memoryview(payload), count, header.last_offset_delta))
    offsets = [] if due is None else [each[1] for each in due]
    ascending = all(b > a for a, b in zip([-1, *offsets], offsets, strict=False))
    if due is None or not ascending or offsets[-1] > header.last_offset_delta:
        assert summary is None
    else:
        deltas = [each[0] for each in due]
        assert summary == (min(deltas), max(deltas), any(each[2] is None for each in due))


def stepped(data: bytes, at: int, total: int) -> int:
    """What the frames of these tests have the signature of."""
    raise NotImplementedError


def steps(*lines: str) -> str:
    return "\n".join(["def read(data, at, total):", *(f"    {line}" for line in lines), "    return at"])


FIELDS = [f"@skip {field.name}" for field in RECORD[1:]]


def test_a_frame_names_all_fields_in_their_order() -> None:
    end = ["@end length total:", "    raise Bad(f'{length} bytes are claimed')"]
    read = compile_frame(stepped, steps(*end, *FIELDS), misfit="{field}")
    (record,) = [bytes(encode_batch([Record(0, 0, b"k", b"v", (("h", b"1"),))])[HEADER_SIZE:])]
    assert read(record, 0, len(record)) == len(record)
    with pytest.raises(MalformedRecord, match=f"{len(record) - 1} bytes are claimed"):
        read(record, 0, len(record) - 1)
    with pytest.raises(AssertionError, match="name all fields"):
        compile_frame(stepped, steps(*end, *FIELDS[:-1]), misfit="")
    with pytest.raises(AssertionError, match="the next field is key"):
        compile_frame(stepped, steps(*end, *FIELDS[:3], FIELDS[4], FIELDS[3], *FIELDS[5:]), misfit="")


def test_the_layout_is_that_of_the_documentation() -> None:
    numbers = [field.name for field in RECORD if isinstance(field, Number)]
    assert [field.name for field in RECORD] == [
        "length", "attributes", "timestamp_delta", "offset_delta", "key", "value", "headers",
    ]  # fmt: skip
    assert numbers == ["length", "timestamp_delta", "offset_delta"]


def test_nothing_is_compiled_before_its_first_use() -> None:
    code = (
        "import leafcuttr.wire.record_frames as frames\n"
        "made = []\n"
        "real = frames.compile_frame\n"
        "frames.compile_frame = lambda *a, **k: made.append(1) or real(*a, **k)\n"
        "from leafcuttr.wire import entries, loose_records, record_summary, records\n"
        "assert not made\n"
        "batch = records.encode_batch([records.Record(0, 0, b'k', b'v')])\n"
        "for _ in range(3):\n"
        "    assert len(list(records.decode_records(batch))) == 1\n"
        "    assert len(record_summary.RecordsSummary._fields) == 3\n"
        "assert made == [1], made\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("headers, a key beyond the end", "a header key of 4 bytes does not fit into its record"),
        ("headers, a value beyond the end", "a header value of 2 bytes does not fit into its record"),
        ("headers, a negative key", "a header key of -1 bytes does not fit into its record"),
        ("headers, more than fit", "3 headers do not fit into 4 bytes"),
        ("key -100", "record 0 has a key of -100 bytes"),
        ("value -2", "record 0 has a value of -2 bytes"),
        ("a negative offset", "record 0 has the offset delta -1"),
        ("a length of one too many", "record 0 claims 7 bytes with 6 left"),
    ],
)
def test_what_is_wrong_is_said(name: str, said: str) -> None:
    with pytest.raises(MalformedRecord, match=said):
        take_apart(MADE[name], 1, 0)
