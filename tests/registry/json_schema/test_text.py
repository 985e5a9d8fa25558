"""JSON texts are read strictly and written as Confluent's registry writes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.json_schema.text import MAX_DEPTH, TextError, decode, read, write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert read(write(value), exact=False) == value


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('{ "b" : 1 , "a" : [ true, null ] }', '{"b":1,"a":[true,null]}'),
        ('{"n": 1.10, "e": 1e5, "z": -0.0, "s": 0.0000001}', '{"n":1.10,"e":1E+5,"z":0.0,"s":1E-7}'),
        ('"\\u00e9\\/"', '"é/"'),
        ("[[], {}]", "[[],{}]"),
    ],
)
def test_the_canonical_text(text: str, canonical: str) -> None:
    assert write(read(text, exact=True)) == canonical


def test_in_the_order_of_names() -> None:
    assert write({"b": {"d": 1, "c": 2}, "a": [{"z": 1, "y": 2}]}, ordered=True) == (
        '{"a":[{"y":2,"z":1}],"b":{"c":2,"d":1}}'
    )


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ('{"a": 1,\n "b": {"c": 1,\n "c": 2}}', 'the key "c" is there twice in one object at line 3', 3),
        ('{"a": 1, "\\u0061": 2}', 'the key "a" is there twice in one object at line 1', 1),
        (
            '{"a": "b: [{", "c": [{"a": 1}, {"a": 1}],\n"c": 1}',
            'the key "c" is there twice in one object at line 2',
            2,
        ),
        ('{"a": 1,\n"a": 2,\n"b": 3}', 'the key "a" is there twice in one object at line 2', 2),
        ("[1,\n2,]", "not JSON: Expecting value at line 2 column 3", 2),
        ("NaN", "NaN is no JSON", None),
        ("[-Infinity]", "-Infinity is no JSON", None),
        ("1e999", 'the number "1e999" is beyond the range of a double', None),
        ("9" * 1001, "a number has 1001 digits, 1000 are allowed", None),
        ('["\\ud800"]', "a string has a half of a surrogate pair, \\uD800 to \\uDFFF alone", None),
        ('{"\\udc00": 1}', "a string has a half of a surrogate pair, \\uD800 to \\uDFFF alone", None),
        ("\n" + "[" * (MAX_DEPTH + 1), f"objects and arrays are nested deeper than {MAX_DEPTH} at line 2", 2),
        ('{"a":' * 100_000, f"objects and arrays are nested deeper than {MAX_DEPTH} at line 1", 1),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_what_is_refused(text: str, message: str, line: int | None, exact: bool) -> None:
    with pytest.raises(TextError) as refused:
        read(text, exact=exact)
    assert (str(refused.value), refused.value.line) == (message, line)


def test_what_is_just_allowed() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert write(read(deep, exact=True)) == deep
    assert read('["\\ud83d\\ude00"]', exact=False) == ["😀"]
    assert read("1e308", exact=False) == 1e308
    assert read("0.1", exact=True) == Decimal("0.1")
    assert read('{"a": [' + "{}, " * MAX_DEPTH + "{}]}", exact=True)["a"][0] == {}


def test_bytes_that_are_no_utf_8() -> None:
    with pytest.raises(TextError, match="not UTF-8: invalid start byte at byte 1"):
        decode(b"a\xff")
