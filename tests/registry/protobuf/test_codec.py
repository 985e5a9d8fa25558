"""Data of messages, to JSON and back."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pool
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.protobuf.builtin import NAMES
from leafcuttr_sdk.schemas import DataError
from registry.protobuf.parsing import parsed

SCHEMA = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
message M {
  int64 big_number = 1; string name = 2; repeated int32 many = 3; map<string, N> by_name = 4; E e = 5; bytes raw = 6;
  optional int32 maybe = 7; oneof o { int32 x = 8; string y = 9; } google.protobuf.Timestamp at = 10;
  google.protobuf.Struct any_json = 11; google.protobuf.Any any = 12; double d = 13;
  message N { M m = 1; bool b = 2; message Deep {} }
}
message Second { M.N n = 1; }
enum E { A = 0; B = 1; }
"""
VALUE = {
    "bigNumber": "9007199254740993",
    "name": "ü",
    "many": [1, -2],
    "byName": {"k": {"b": True}},
    "e": "B",
    "raw": "/w==",
    "maybe": 0,
    "y": "",
    "at": "2024-01-02T03:04:05.000600Z",
    "anyJson": {"a": [1.0, None, {"b": "c"}]},
    "any": {"@type": "x/Second", "n": {"b": True}},
    "d": "NaN",
}


def test_the_json_mapping() -> None:
    codec = parsed(SCHEMA).codec()
    data = codec.encode(VALUE)
    codec.check(data)
    assert codec.decode(data) == VALUE
    # Names of the text are taken too.
    assert codec.encode({"big_number": 5}) == b"\x08\x05"


def test_defaults_are_shown_but_for_fields_with_presence() -> None:
    assert parsed(SCHEMA).codec().decode(b"") == {
        "bigNumber": "0", "name": "", "many": [], "byName": {}, "e": "A", "raw": "", "d": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("indexes", "name"), [((0,), "M"), ((0, 0), "M.N"), ((0, 0, 0), "M.N.Deep"), ((1,), "Second")]
)
def test_message_indexes(indexes: tuple[int, ...], name: str) -> None:
    schema = parsed(SCHEMA)
    assert schema.codec(indexes).name == schema.message_name(indexes) == name


@pytest.mark.parametrize("indexes", [(), (2,), (-1,), (0, 1), (1, 0), (0, 0, 0, 0)])
def test_message_indexes_that_lead_nowhere(indexes: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="indexes"):
        parsed(SCHEMA).codec(indexes)


def test_entries_of_maps_count_where_the_schema_was_a_descriptor() -> None:
    """As in the message indexes of the clients that register a text, or a descriptor."""
    text = 'syntax = "proto3"; message M { map<int32, int32> a = 1; message N {} }'
    assert parsed(text).message_name((0, 0)) == "M.N"
    described = parsed(parsed(text).formatted("serialized"))
    assert [described.message_name((0, at)) for at in (0, 1)] == ["M.AEntry", "M.N"]
    assert parsed(described.canonical).message_name((0, 1)) == "M.N"


@pytest.mark.parametrize(
    ("data", "saying"),
    [
        (b"\x0f", "no message M"),
        (b"\x08", "no message M"),
        (b"\x12\x05a", "no message M"),
        (b"\x12\x01\xff", "no message M"),
    ],
)
def test_bytes_that_are_no_message(data: bytes, saying: str) -> None:
    codec = parsed(SCHEMA).codec()
    for refuse in (codec.check, codec.decode):
        with pytest.raises(DataError, match=saying) as caught:
            refuse(data)
        assert "\n" not in str(caught.value)


def test_required_fields() -> None:
    codec = parsed("message M { required int32 a = 1; optional M m = 2; }").codec()
    codec.check(b"\x08\x01")
    for refuse in (codec.check, codec.decode):
        with pytest.raises(DataError, match=r"lacks required fields: m\.a"):
            refuse(b"\x08\x01\x12\x00")
    with pytest.raises(DataError, match="lacks required fields: a"):
        codec.encode({})
    wide = parsed("message M { required int32 a = 1; required int32 b = 2; repeated M m = 3; }").codec()
    with pytest.raises(DataError, match=r"lacks required fields: m\[1\]\.a, m\[1\]\.b$"):
        wide.check(b"\x08\1\x10\1\x1a\4\x08\1\x10\1\x1a\0")
    with pytest.raises(DataError, match="lacks required fields: of messages that it has"):
        wide.check(b"\x08\1\x10\1" + b"\x1a\4\x08\1\x10\1" * 1500 + b"\x1a\0")


@pytest.mark.parametrize(
    "value", [{"\ud800": 1}, {"m": {"\udfff": {}}}, {"s": "\ud800"}, {"k": {"\ud800": 1}}]
)
def test_names_and_texts_that_are_no_unicode(value: Any) -> None:
    text = "message M { optional int32 a = 1; optional M m = 2; optional string s = 3; map<string, int32> k = 4; }"
    with pytest.raises(DataError, match="the value is no message M"):
        parsed(text).codec().encode(value)


def test_a_map_key_that_is_no_text_beside_required_fields_that_are_missing() -> None:
    """protobuf's own search for them ends the process here."""
    codec = parsed("message M { required int32 a = 1; map<string, M> m = 2; }").codec()
    codec.check(b"\x08\1\x12\7\x0a\1\xff\x12\2\x08\1")
    for refuse in (codec.check, codec.decode):
        with pytest.raises(DataError, match="lacks required fields: of messages that it has"):
            refuse(b"\x08\1\x12\5\x0a\1\xff\x12\0")
        with pytest.raises(DataError, match="lacks required fields: a"):
            refuse(b"\x12\5\x0a\1\xff\x12\0")


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        "a",
        [],
        {"nothing": 1},
        {"name": 1},
        {"bigNumber": "a"},
        {"e": "C"},
        {"many": 1},
        {"x": 1, "y": "a"},
    ],
)
def test_values_that_are_no_message(value: object) -> None:
    with pytest.raises(DataError):
        parsed(SCHEMA).codec().encode(value)  # type: ignore[arg-type]


def test_depth_is_bounded() -> None:
    codec = parsed('syntax = "proto3"; message M { M m = 1; }').codec()
    value: dict[str, object] = {}
    for _ in range(5000):
        value = {"m": value}
    with pytest.raises(DataError):
        codec.encode(value)  # type: ignore[arg-type]
    data = b""
    for _ in range(150):
        size = len(data)
        data = b"\x0a" + (bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7))) + data
    for refuse in (codec.check, codec.decode):
        with pytest.raises(DataError):
            refuse(data)


def test_a_date_that_json_has_not() -> None:
    data = parsed(SCHEMA).codec().encode({})
    codec = parsed(SCHEMA).codec()
    assert data == b""
    with pytest.raises(DataError, match="no JSON form"):
        codec.decode(b"\x52\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f")


def test_an_any_of_an_unknown_type() -> None:
    codec = parsed(SCHEMA).codec()
    with pytest.raises(DataError):
        codec.encode({"any": {"@type": "x/Nothing"}})


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(data: bytes) -> None:
    codec = parsed(SCHEMA).codec()
    try:
        codec.check(data)
        value = codec.decode(data)
    except DataError:
        return
    assert isinstance(value, dict)


def test_nothing_gets_into_the_pool_of_the_process() -> None:
    parsed('syntax = "proto3"; package only.here; message Hostile {}').codec()
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("only.here.Hostile")
    # Two schemas may say different things of one name.
    one = parsed('syntax = "proto3"; message A { int32 a = 1; }').codec()
    two = parsed('syntax = "proto3"; message A { string a = 1; }').codec()
    assert one.decode(b"\x08\x01") == {"a": 1}
    assert two.decode(b"\x0a\x01a") == {"a": "a"}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_what_is_built_in_can_be_imported(name: str) -> None:
    schema = parsed(f'syntax = "proto3"; import public "{name}";')
    if schema.record_name is not None and name not in (
        "google/type/calendar_period.proto",
        "google/type/dayofweek.proto",
        "google/type/month.proto",
    ):
        assert schema.codec().name == schema.record_name


def test_a_message_larger_than_the_runtime_can_hold() -> None:
    fields = "".join(f"string a{at} = {at};" for at in range(1, 10_001))
    schema = parsed(f'syntax = "proto3"; message M {{ {fields} }}')
    assert schema.record_name == "M"
    with pytest.raises(DataError, match="more fields than"):
        schema.codec()


def test_json_names_that_are_the_same_in_proto2() -> None:
    codec = parsed("message M { optional int32 a_b = 1; optional int32 aB = 2; }").codec()
    assert codec.decode(b"\x08\x01\x10\x02") == {"a_b": 1, "aB": 2}
