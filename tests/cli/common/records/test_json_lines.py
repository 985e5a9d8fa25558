"""JSON lines by themselves: any record survives both ways, and any text is a record or a ValueError."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.cli.common.records.formats import known_formats
from leafcuttr.cli.common.records.json_lines import MEMBERS, Codecs, OutRecord, read_line, write_line
from leafcuttr.cli.common.records.own_formats import HexFormat, TextFormat
from leafcuttr_sdk.formats import FormatError, Place

NAMES = ("text", "json", "hex", "base64")
DATA = (
    st.none()
    | st.binary(max_size=30)
    | st.sampled_from([b"null", b'{"a": 1.10}', b'"x"', b"\n", "\u2028".encode()])
)
HEADERS = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), DATA), max_size=4)


class Message:
    """What confluent-kafka hands out."""

    def __init__(self, record: OutRecord) -> None:
        self._record = record

    def topic(self) -> str:
        return 't"opic'

    def partition(self) -> int | None:
        return self._record.partition

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int | None]:
        return 1, self._record.timestamp

    def key(self) -> bytes | None:
        return self._record.key

    def value(self) -> bytes | None:
        return self._record.value

    def headers(self) -> Any:
        return self._record.headers or None


def codecs(key: str, value: str) -> Codecs:
    known = known_formats()
    return Codecs("t", known.get(key).open({}), known.get(value).open({}))


@given(
    DATA,
    DATA,
    HEADERS,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
)
def test_any_record_survives(
    value: bytes | None,
    key: bytes | None,
    headers: Any,
    partition: int,
    timestamp: int,
    of_key: str,
    of_value: str,
) -> None:
    record = OutRecord(value, key, headers, partition, timestamp)
    try:
        line = write_line(Message(record), codecs(of_key, of_value))
    except FormatError as error:
        assert "json" in (of_key, of_value)
        assert str(error).startswith(("key: ", "value: "))
        return
    assert "\n" not in line
    json.loads(line)
    assert read_line(line.encode(), codecs(of_key, of_value)) == record


class NamesHeaders(HexFormat):
    """Bytes, and after them what `Place` says of the record."""

    needs_headers = True

    def decode(self, data: bytes, place: Place) -> str:
        return f"{data.decode()} {place}"


def test_who_needs_headers_gets_them() -> None:
    record = OutRecord(b"v", b"k", [("a", b"1"), ("a", None)], 0, 0)
    line = json.loads(write_line(Message(record), Codecs("t", NamesHeaders(), HexFormat())))
    assert line["key"] == f"k {Place('t', 'key', (('a', b'1'), ('a', None)))}" and line["value"] == "76"
    line = json.loads(
        write_line(
            Message(OutRecord(b"v", partition=0, timestamp=0)), Codecs("t", TextFormat(), NamesHeaders())
        )
    )
    assert line["value"] == f"v {Place('t', 'value')}"
    assert Place("t", "value") == Place("t", "value", ())


def test_headers_are_made_for_who_needs_them_alone() -> None:
    def headers() -> Any:
        raise AssertionError

    codecs = Codecs("t", NamesHeaders(), TextFormat())
    assert codecs.need_headers and codecs.of_record("value", headers)[1] == Place("t", "value")
    assert codecs.of_record("key", lambda: None)[1] == Place("t", "key")
    assert not Codecs("t", TextFormat(), HexFormat()).need_headers


WORDS = st.sampled_from(
    [
        *(f'"{name}"' for name in sorted(MEMBERS)),
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "null",
        "1",
        '"x"',
        "1e999",
        "-0",
        '"\\ud800"',
        "NaN",
        '{"name": "a", "value": "b"}',
        "true",
        " ",
    ]
)


@given(st.binary(max_size=40) | st.lists(WORDS, max_size=12).map(lambda words: "".join(words).encode()))
def test_any_line_is_a_record_or_a_value_error(line: bytes) -> None:
    for name in NAMES:
        try:
            assert isinstance(read_line(line, codecs(name, name)), OutRecord)
        except ValueError as error:
            assert str(error)


@given(
    st.dictionaries(
        st.sampled_from(sorted(MEMBERS)),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.lists(st.integers(), max_size=2)
        | st.dictionaries(st.text(max_size=3), st.text(max_size=3)),
    )
)
def test_members_of_any_kind(members: dict[str, Any]) -> None:
    try:
        record = read_line(json.dumps(members).encode(), codecs("text", "text"))
    except ValueError as error:
        assert str(error)
        return
    if isinstance(members.get("value"), str):
        assert record.value == members["value"].encode("utf-8", "surrogateescape")
    for name, value in record.headers or []:
        name.encode()
        assert value is None or isinstance(value, bytes)


@pytest.mark.parametrize("written", ["1.10", "1e2", "123456789012345678901234567890", '{"b":1,  "a":[ ]}'])
def test_documents_are_cut_out_as_they_are_written(written: str) -> None:
    record = read_line(f'{{"value":{written} , "key": {written}}}'.encode(), codecs("text", "json"))
    assert record.key == record.value == written.encode()
