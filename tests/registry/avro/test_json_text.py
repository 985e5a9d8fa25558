"""JSON texts as Jackson reads and writes them."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.avro.json_text import (
    MOST_BYTES,
    MOST_LEVELS,
    dump,
    escaped,
    java_double,
    load,
    quoted,
)
from leafcuttr_sdk.schemas import SchemaError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_is_read(value: Any) -> None:
    assert load(dump(value)) == value
    assert json.loads(dump(value)) == value


def test_the_order_of_keys_is_kept() -> None:
    assert dump(load('{ "b" : 1 , "a" : [ 2 , { } ] }')) == '{"b":1,"a":[2,{}]}'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1.0", "1.0"),
        ("1", "1"),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("1e3", "1000.0"),
        ("9999999.0", "9999999.0"),
        ("1e7", "1.0E7"),
        ("12345678.5", "1.23456785E7"),
        ("0.001", "0.001"),
        ("0.00099", "9.9E-4"),
        ("1E-5", "1.0E-5"),
        ("1e300", "1.0E300"),
        ("1.7976931348623157e308", "1.7976931348623157E308"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("true", "true"),
        ("null", "null"),
        ('"\\u0041\\/\\u001f\\u007f"', '"A/\\u001F\x7f"'),
    ],
)
def test_as_java_writes_it(text: str, shown: str) -> None:
    assert dump(load(text)) == shown


def test_numbers_that_are_not_finite_are_strings() -> None:
    assert [java_double(one) for one in (math.nan, math.inf, -math.inf)] == [
        '"NaN"',
        '"Infinity"',
        '"-Infinity"',
    ]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_comes_back(value: float) -> None:
    assert float(java_double(value)) == value


def test_strings() -> None:
    assert quoted('a"\\\b\f\n\r\t\x00é') == '"a\\"\\\\\\b\\f\\n\\r\\t\\u0000é"'
    assert escaped("a/b~c") == "a~1b~0c"


def test_comments_are_left_out_before_and_within() -> None:
    assert load('// one\n{"a": /* " */ 1, "b": "// no /* comment */"}') == {
        "a": 1,
        "b": "// no /* comment */",
    }
    with pytest.raises(SchemaError) as raised:
        load("/* one\n\n */ nul")
    assert raised.value.line == 3


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        (" \n", 1, "empty"),
        ('{"a":\n 1,}', 2, "line 2"),
        ('{"a": 1} {"b": 2}', 1, "not JSON"),
        ('{"a":\n "NaN", "b": NaN}', 2, "NaN at line 2"),
        ('["Infinity",\n\n-Infinity]', 3, "-Infinity at line 3"),
        ("[1e999]", None, "too large"),
        (f"[{'1' * 1001}]", None, "digits"),
        ('"\ud800"', 1, "not UTF-8"),
        ("[" * (MOST_LEVELS + 1), 1, "nested"),
    ],
)
def test_what_is_no_json(text: str, line: int | None, words: str) -> None:
    with pytest.raises(SchemaError) as raised:
        load(text)
    assert raised.value.line == line
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_key_that_comes_twice() -> None:
    with pytest.raises(SchemaError, match=r"^/fields/1/a~1b: the key 'type' comes twice") as raised:
        load('{"fields": [{}, {"a/b": {"type": 1, "x": 2, "type": 1}}]}')
    assert raised.value.path == "/fields/1/a~1b"


@pytest.mark.parametrize(
    "text", ['{"a": ["\\ud83d"]}', '{"a": ["\\uDC00x"]}', '{"a": {"0": "\\ude00\\ud83d"}}']
)
def test_a_lone_surrogate(text: str) -> None:
    with pytest.raises(SchemaError, match="lone surrogate") as raised:
        load(text)
    assert raised.value.path == "/a/0"


def test_a_lone_surrogate_in_a_key() -> None:
    with pytest.raises(SchemaError, match="lone surrogate") as raised:
        load('{"a": {"\\ud800": 1}}')
    str(raised.value).encode()
    raised.value.path.encode()


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert load('"\\ud83d\\ude00"') == "\U0001f600"


def test_a_text_that_is_too_long() -> None:
    assert load('"' + "x" * (MOST_BYTES - 2) + '"')
    for text in ('"' + "x" * (MOST_BYTES - 1) + '"', '"' + "é" * (MOST_BYTES // 2) + '"'):
        with pytest.raises(SchemaError, match="longer than"):
            load(text)


def test_nesting_that_is_allowed() -> None:
    assert load("[" * MOST_LEVELS + "]" * MOST_LEVELS)
    # As many of them, and not within one another.
    assert load("[" + ",".join(["[]"] * 5000) + ', "[[[["]')


@pytest.mark.alone
@pytest.mark.parametrize(
    "text",
    [
        "/*" * 500_000,
        "//" * 500_000,
        '"' + '\\"' * 500_000,
        '"' + '\\"' * 499_999 + "\\",
        "{" + '"' * 1_000_000,
        "[" * 1_000_000,
    ],
    ids=["comments", "lines", "quotes", "backslash", "strings", "arrays"],
)
def test_hostile_texts_take_time_in_proportion(text: str) -> None:
    started = time.process_time()
    with pytest.raises(SchemaError):
        load(text + "//" if text[0] == '"' else text)
    assert time.process_time() - started < 2
