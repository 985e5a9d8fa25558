"""Keys, values and headers: from JSON to bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_http.errors import ApiError
from leafcuttr_http.records import ALL_JSON, BINARY, TEXT_KEYS, Format, convert
from leafcuttr_sdk import Record

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("format", "raw", "key", "value"),
    [
        (TEXT_KEYS, {"key": "text", "value": {"a": [1, 2.5]}}, b"text", b'{"a":[1,2.5]}'),
        (TEXT_KEYS, {"key": {"b": 1, "a": 2}, "value": "text"}, b'{"b":1,"a":2}', b'"text"'),
        (TEXT_KEYS, {"key": 7, "value": False}, b"7", b"false"),
        (TEXT_KEYS, {"key": "", "value": ""}, b"", b'""'),
        (TEXT_KEYS, {"key": None, "value": None}, None, None),
        (TEXT_KEYS, {}, None, None),
        (
            TEXT_KEYS,
            {"key": "\u00fc\U0001f600", "value": "\u00fc"},
            "\u00fc\U0001f600".encode(),
            '"ü"'.encode(),
        ),
        (TEXT_KEYS, {"value": 10**400}, None, b"1" + b"0" * 400),
        (ALL_JSON, {"key": "text", "value": 1}, b'"text"', b"1"),
        (ALL_JSON, {"key": None, "value": None}, None, None),
        (BINARY, {"key": "a2V5", "value": ""}, b"key", b""),
        (BINARY, {"value": "AP8="}, None, b"\x00\xff"),
    ],
)
def test_keys_and_values(format: Format, raw: Any, key: bytes | None, value: bytes | None) -> None:
    assert convert(raw, format) == (Record(value, key), None)


def test_everything_that_a_record_can_have() -> None:
    raw = {
        "key": "k",
        "value": 1,
        "partition": 3,
        "timestamp": 1_700_000_000_000,
        "headers": [
            {"name": "a", "value": "ü"},
            {"name": "a", "value_base64": "AP8="},
            {"name": "none", "value": None},
            {"name": "nothing"},
        ],
    }
    headers = (("a", "ü".encode()), ("a", b"\x00\xff"), ("none", None), ("nothing", None))
    assert convert(raw, TEXT_KEYS) == (Record(b"1", b"k", headers, 1_700_000_000_000), 3)
    assert convert({"headers": {"a": "x", "b": None}}, TEXT_KEYS)[0].headers == (("a", b"x"), ("b", None))


@pytest.mark.parametrize(
    ("format", "raw", "code", "says"),
    [
        (TEXT_KEYS, [], 42206, "has to be an object"),
        (TEXT_KEYS, {"Value": 1}, 42206, "no member 'Value'"),
        (TEXT_KEYS, {"partition": -1}, 42206, "partition has to be a whole number"),
        (TEXT_KEYS, {"partition": True}, 42206, "partition has to be a whole number"),
        (TEXT_KEYS, {"partition": 1.5}, 42206, "partition has to be a whole number"),
        (TEXT_KEYS, {"partition": 2**31}, 42206, "partition has to be a whole number"),
        (TEXT_KEYS, {"timestamp": "now"}, 42206, "timestamp has to be a whole number"),
        (TEXT_KEYS, {"timestamp": 2**63}, 42206, "timestamp has to be a whole number"),
        (TEXT_KEYS, {"headers": "x"}, 42206, "headers has to be a list"),
        (TEXT_KEYS, {"headers": [{"value": "x"}]}, 42206, "headers has to have objects with name"),
        (TEXT_KEYS, {"headers": [{"name": "n", "value": 1}]}, 42206, "header 'n' has to be a string"),
        (TEXT_KEYS, {"headers": [{"name": "n", "value_base64": "?"}]}, 42206, "header 'n' value_base64"),
        (TEXT_KEYS, {"headers": [{"name": "n", "value": "", "value_base64": ""}]}, 42206, "not both"),
        (TEXT_KEYS, {"headers": {"\ud800": "x"}}, 42207, "surrogate"),
        (TEXT_KEYS, {"key": "\ud800"}, 42207, "key has half of a surrogate pair"),
        (TEXT_KEYS, {"value": ["\udfff"]}, 42207, "value has half of a surrogate pair"),
        (TEXT_KEYS, {"value": float("inf")}, 42207, "value has a number too large"),
        (BINARY, {"value": 1}, 42206, "value has to be a string in base64"),
        (BINARY, {"value": "a"}, 42206, "value is not base64"),
        (BINARY, {"key": "a2V5\n"}, 42206, "key is not base64"),
        (BINARY, {"key": "ü"}, 42206, "key is not base64"),
    ],
)
def test_what_is_wrong_with_a_record(format: Format, raw: Any, code: int, says: str) -> None:
    with pytest.raises(ApiError) as caught:
        convert(raw, format)
    assert caught.value.code == code
    assert says in str(caught.value)


@given(ANY, ANY)
def test_what_is_stored_is_what_was_sent(key: Any, value: Any) -> None:
    try:
        record, _ = convert({"key": key, "value": value}, ALL_JSON)
    except ApiError as error:
        assert error.code == 42207
        return
    assert (record.key is None) == (key is None)
    assert record.value is None or json.loads(record.value) == value
    assert record.key is None or json.loads(record.key) == key


@given(st.binary())
def test_binary_is_exact(value: bytes) -> None:
    assert convert({"value": base64.b64encode(value).decode()}, BINARY)[0].value == value


@given(ANY)
def test_any_json_is_a_record_or_an_error(raw: Any) -> None:
    for format in (TEXT_KEYS, ALL_JSON, BINARY):
        for place in (raw, {"headers": raw}, {"partition": raw}, {"key": raw}):
            try:
                convert(place, format)
            except ApiError as error:
                assert error.status == 422
