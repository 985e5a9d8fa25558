"""JSON texts to columns: what Arrow's reader makes of many is what Python's makes of each."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_spark.formats.json.reading import JsonDecoder
from leafcuttr_spark.formats.types import type_of_ddl
from support.gates_slice import sampled

DDL = (
    "a BIGINT, b STRING, c DOUBLE, d BOOLEAN, e STRUCT<x: INT, y: ARRAY<STRING>>, f ARRAY<STRUCT<z: TINYINT>>"
)


def decoder(ddl: str) -> JsonDecoder:
    return JsonDecoder(type_of_ddl(ddl))


def slowly(ddl: str) -> JsonDecoder:
    made = decoder(ddl)
    made._pieces._fast = None
    return made


def binary(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary())


def decoded(ddl: str, *texts: str) -> Any:
    found = decoder(ddl).decode(binary(*(text.encode() for text in texts)))
    assert found.errors == {}
    found.values.validate(full=True)
    return found.values.to_pylist(maps_as_pydicts="strict")


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f", "x", "y", "z", "g"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from(["\\", '"', "}", "{", "\n", "\x00", "\ud800", "é", "[1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
GOOD = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.text(max_size=5),
        "c": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53),
        "d": st.none() | st.booleans(),
        "e": st.none()
        | st.fixed_dictionaries(
            {"x": st.integers(-9, 9), "y": st.none() | st.lists(st.text(max_size=2), max_size=2)}
        ),
        "f": st.lists(st.none() | st.fixed_dictionaries({"z": st.integers(-128, 127)}), max_size=2),
        "more": VALUES,
    },
)
TEXTS = st.one_of(
    GOOD.map(lambda value: json.dumps(value, ensure_ascii=False)),
    GOOD.map(json.dumps),
    GOOD.map(lambda value: json.dumps(value, indent="\t")),
    st.dictionaries(NAMES, VALUES, max_size=5).map(json.dumps),
    VALUES.map(json.dumps),
    st.sampled_from(
        ["", " ", "{}{}", "{} ", " {}", "{", "}", "{}\n{}", '{"a":1,"a":2}', '{"a":1}{"a":2}', "nul", "null", "{]}",
         '{"b":"\\ud800"}', '{"b":"\\u0000"}', '{"c":1e400}', '{"c":NaN}', '{"a":01}', '{"a":-0}', '{"a":1.0}',
         '{"a":1e2}', '{"a":1,}', "{'a':1}", '{"b":"\t"}', '{"a":1}//', '{"f":[{},{}]}', '{"\\u0061":5}', "\ufeff{}",
         '{"g":NaN}', '{"g":[-Inf]}', '{"g":-Infinity }', '{"b":"NaN"}', '{"c":-Infinity}']
    ),
)  # fmt: skip


@pytest.mark.long
@given(
    st.lists(TEXTS | st.binary(max_size=6).map(lambda data: data.decode("latin-1")), max_size=6),
    st.booleans(),
)
@settings(max_examples=sampled(600), deadline=None)
def test_many_at_a_time_is_as_one_by_one(texts: list[str], broken: bool) -> None:
    values = [text.encode("utf-8", "surrogatepass") for text in texts]
    if broken and values:
        values[0] = values[0][:-1] + b"\xff" + values[0][-1:]
    found, expected = decoder(DDL).decode(binary(*values)), slowly(DDL).decode(binary(*values))
    assert found.errors == expected.errors
    assert found.values.to_pylist() == expected.values.to_pylist()
    found.values.validate(full=True)


@given(st.lists(GOOD, min_size=1, max_size=5), st.sampled_from([None, 2]))
@settings(max_examples=sampled(100), deadline=None)
def test_plain_objects_are_read_many_at_a_time(rows: list[Any], indent: int | None) -> None:
    made = decoder(DDL)
    texts = (json.dumps(row, ensure_ascii=False, indent=indent) for row in rows)
    values = binary(*(text.encode("utf-8", "replace") for text in texts))
    assert made._fast(values).to_pylist() == slowly(DDL).decode(values).values.to_pylist()


def test_types_that_arrow_s_reader_has_not() -> None:
    ddl = "t TIMESTAMP, l TIMESTAMP_NTZ, d DATE, n DECIMAL(5,2), b BINARY, m MAP<STRING, INT>, f FLOAT, s STRING"
    text = (
        '{"t":"2026-01-31T10:00:00.5+01:00","l":"9999-12-31T23:59:59.999999","d":"0001-01-01","n":123.45,"b":"AAE=",'
        '"m":{"a":1},"f":0.5,"s":{"x":[1,null,"é"]}}'
    )
    assert decoded(ddl, text, "{}", "null") == [
        {
            "t": datetime(2026, 1, 31, 9, 0, 0, 500000, UTC),
            "l": datetime(9999, 12, 31, 23, 59, 59, 999999),
            "d": date(1, 1, 1),
            "n": Decimal("123.45"),
            "b": b"\0\1",
            "m": {"a": 1},
            "f": 0.5,
            "s": '{"x":[1,null,"é"]}',
        },
        dict.fromkeys("tldnbmfs"),
        None,
    ]
    assert decoded("t TIMESTAMP", '{"t":"2026-01-31 10:00"}') == [
        {"t": datetime(2026, 1, 31, 10, tzinfo=UTC)}
    ]
    assert decoded("n DECIMAL(20,2)", '{"n":123456789012345678.25}', '{"n":"7.5"}') == [
        {"n": Decimal("123456789012345678.25")},
        {"n": Decimal("7.50")},
    ]
    assert decoded("ARRAY<INT>", "[1,2]") == [[1, 2]]


@pytest.mark.parametrize(
    ("ddl", "text", "said"),
    [
        ("a INT", '{"a":2147483648}', "a is 2147483648, where an integer from -2147483648 to 2147483647"),
        ("a INT", '{"a":1.5}', "a is 1.5, where an integer"),
        ("a INT", '{"a":true}', "a is true, where an integer"),
        (
            "a STRUCT<b: ARRAY<DATE>>",
            '{"a":{"b":["2026-01-31","soon"]}}',
            r'a.b\[1\] is "soon", where a text as 2026',
        ),
        ("a TIMESTAMP", '{"a":"10000-01-01T00:00:00Z"}', "a is .*, where a text as"),
        ("a TIMESTAMP_NTZ", '{"a":"2026-01-01T00:00:00Z"}', "a is"),
        ("a DECIMAL(3,1)", '{"a":12.34}', "Rescaling|loss"),
        ("a DECIMAL(3,1)", '{"a":"NaN"}', "where a number"),
        ("a BINARY", '{"a":"?"}', "where base64"),
        ("a MAP<STRING, INT>", '{"a":{"k":"v"}}', r"a\['k'\] is \"v\""),
        ("a INT", "[]", r"the value is \[\], where an object"),
        ("a INT", "[" * 100_000, "recursion"),
        ("a INT", '{"b":' + "[" * 100_000 + "]" * 100_000 + "}", "recursion"),
        ("a DOUBLE", '{"a":' + "9" * 5000 + "}", "limit|too large|a is"),
        ("a INT", '{"a":Infinity}', "Infinity is no JSON"),
    ],
)
def test_what_is_none_is_said_in_one_line(ddl: str, text: str, said: str) -> None:
    found = decoder(ddl).decode(binary(text.encode(), b'{"a":null}'))
    assert list(found.errors) == [0]
    (line,) = found.errors.values()
    import re

    assert re.search(said, line) and "\n" not in line and len(line) <= 320
    assert found.values.to_pylist() == [None, {"a": None}]


def test_a_value_of_ten_megabytes() -> None:
    large = b'{"a":"' + b"x" * 10_000_000 + b'"}'
    found = decoder("a STRING").decode(binary(large, b'{"a":"y"}', large[:-1], b"[" + large * 3))
    assert list(found.errors) == [2, 3]
    assert len(found.values[0].as_py()["a"]) == 10_000_000


def test_keys_of_maps_are_texts() -> None:
    with pytest.raises(ValueError, match="the keys of a map in JSON are texts"):
        decoder("m MAP<INT, INT>")
