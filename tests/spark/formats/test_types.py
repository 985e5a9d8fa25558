"""Spark's DDL, written and read."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from leafcuttr_spark.formats.types import TypeTextError, columns_ddl, ddl, fields_in, list_of, type_of_ddl
from spark.formats.avro.test_writing import columns
from support.gates_slice import sampled


@given(columns(3))
@settings(max_examples=sampled(200), deadline=None)
def test_what_is_written_is_read(of: tuple[pa.DataType, object]) -> None:
    type_ = of[0]
    assert type_of_ddl(ddl(type_)) == type_
    row = pa.struct([("a `b`", type_), ("b", pa.int8())])
    assert type_of_ddl(columns_ddl((field.name, field.type) for field in row)) == row


def test_all_names() -> None:
    text = """
        a BYTE, b Short NOT NULL COMMENT 'it''s', c LONG, d REAL, e VARCHAR(10), f DEC, g NUMERIC(5), h: TIMESTAMP_LTZ,
        `i.j` ARRAY<MAP<STRING, STRUCT<x: INT, `y z` DATE NOT NULL>>>, k struct<>, l void
    """.replace("''", "\\'")
    assert type_of_ddl(text) == pa.struct(
        [
            ("a", pa.int8()),
            ("b", pa.int16()),
            ("c", pa.int64()),
            ("d", pa.float32()),
            ("e", pa.string()),
            ("f", pa.decimal128(10, 0)),
            ("g", pa.decimal128(5, 0)),
            ("h", pa.timestamp("us", "UTC")),
            ("i.j", list_of(pa.map_(pa.string(), pa.struct([("x", pa.int32()), ("y z", pa.date32())])))),
            ("k", pa.struct([])),
            ("l", pa.null()),
        ]
    )
    assert type_of_ddl("ARRAY<INT>") == list_of(pa.int32())
    assert type_of_ddl("decimal") == pa.decimal128(10, 0)
    assert fields_in(type_of_ddl("a INT, b ARRAY<STRUCT<x: INT>>")) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "'the end' is no type"),
        ("a INTEGR", "'INTEGR' is no type; allowed are boolean, tinyint"),
        ("a INT b", "'b' stands where 'the end' is expected"),
        ("a INT,", "'the end' stands where the name of a column is expected"),
        ("a INT, a INT", "a name comes twice"),
        ("a ARRAY<INT", "'the end' stands where '>' is expected"),
        ("a DECIMAL(39)", "a decimal has 1 to 38 digits"),
        ("a DECIMAL(5,6)", "a decimal has 1 to 38 digits"),
        ("a DECIMAL(x)", "'x' stands where a number is expected"),
        ("a ?", "'?' does not belong into a type"),
        ("a " + "ARRAY<" * 100 + "INT" + ">" * 100, "nested deeper than 32"),
        (", ".join(f"f{number} INT" for number in range(5001)), "more than 5000 fields"),
        ("a INT COMMENT b", "COMMENT has no text"),
        ("a INT NOT x", "NULL is expected"),
    ],
)
def test_what_is_no_type(text: str, said: str) -> None:
    with pytest.raises(TypeTextError) as caught:
        type_of_ddl(text)
    assert said in str(caught.value)


def test_types_that_spark_has_not() -> None:
    with pytest.raises(ValueError, match="Spark has no type uint8"):
        ddl(pa.uint8())
