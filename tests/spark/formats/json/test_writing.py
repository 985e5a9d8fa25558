"""Columns to JSON texts: Python's reader and `reading` read what the rows had."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_spark.formats.json.reading import JsonDecoder
from leafcuttr_spark.formats.json.writing import json_writer
from leafcuttr_spark.formats.pieces import PieceError
from spark.formats.avro.test_writing import columns, structs
from support.gates_slice import sampled


@given(st.lists(columns(), min_size=1, max_size=4).map(structs), st.data())
@settings(max_examples=sampled(200), deadline=None)
def test_what_is_written_is_read(of: tuple[pa.DataType, st.SearchStrategy[Any]], data: st.DataObject) -> None:
    type_, values = of
    array = pa.array([None, *data.draw(st.lists(values, max_size=6))], type_).slice(1)
    try:
        made = json_writer(type_)(array)
    except PieceError as error:
        assert "NaN or infinite" in str(error)
        return
    for one in made.to_pylist():
        json.loads(one)
    found = JsonDecoder(type_).decode(made)
    assert found.errors == {}
    assert found.values.to_pylist() == array.to_pylist()


def test_texts() -> None:
    type_ = pa.struct(
        [
            ("a", pa.int64()),
            ('b"', pa.string()),
            ("n", pa.decimal128(20, 3)),
            ("t", pa.timestamp("us", "UTC")),
        ]
    )
    rows = [
        {"a": 1, 'b"': 'é"\\', "n": Decimal("12345678901234567.125"), "t": datetime(1, 1, 1, tzinfo=UTC)},
        {"a": None, 'b"': "\n\0"},
    ]
    assert json_writer(type_)(pa.array(rows, type_)).to_pylist() == [
        '{"a":1,"b\\"":"é\\"\\\\","n":12345678901234567.125,"t":"0001-01-01T00:00:00Z"}'.encode(),
        b'{"a":null,"b\\"":"\\n\\u0000","n":null,"t":null}',
    ]


@pytest.mark.parametrize("text", ['"', "\\", '\\"', '"\\n"', "\x1f", "é", ""])
def test_a_text(text: str) -> None:
    type_ = pa.struct([("a", pa.string())])
    (made,) = json_writer(type_)(pa.array([{"a": text}], type_)).to_pylist()
    assert json.loads(made) == {"a": text}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number(number: float) -> None:
    type_ = pa.struct([("a", pa.float64())])
    with pytest.raises(PieceError, match="a number is NaN or infinite"):
        json_writer(type_)(pa.array([{"a": number}], type_))
