"""Columns to the rows that Spark gets."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.codec.decoding import Wanted, decode
from leafcuttr_spark.source.options import row_options
from leafcuttr_spark.source.rows import DecodeError, RowMaker, RowPlan, row_plan, tick_row

ORDERS = TopicPartition("orders", 3)
ALL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def rows(batch: bytes, names: tuple[str, ...] = ALL) -> list[dict[str, object]]:
    found = RowMaker(plan(names)).batches(decode(batch, Wanted(headers=True)), ORDERS)
    return [row for each in found for row in each.to_pylist()]


def plan(names: tuple[str, ...], **given: str) -> RowPlan:
    return row_plan(row_options({"subscribe": "orders", "columns": ",".join(names), **given}))


def test_rows_are_those_of_spark_s_connector() -> None:
    batch = encode_batch(
        [Record(0, 1_700_000_000_123, b"k", None, (("h", b"x"), ("h", None))), Record(1, -1, None, b"v")]
    )
    assert rows(batch) == [
        {
            "key": b"k",
            "value": None,
            "topic": "orders",
            "partition": 3,
            "offset": 0,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
            "timestampType": 0,
            "headers": [{"key": "h", "value": b"x"}, {"key": "h", "value": None}],
        },
        {
            "key": None,
            "value": b"v",
            "topic": "orders",
            "partition": 3,
            "offset": 1,
            "timestamp": datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
            "timestampType": 0,
            "headers": None,
        },
    ]


def test_only_the_columns_of_these_names_in_their_order() -> None:
    (row,) = rows(encode_batch([Record(0, 5, b"k", b"v")]), ("offset", "value"))
    assert list(row.items()) == [("offset", 0), ("value", b"v")]
    found = plan(("offset", "headers"))
    assert found.ddl == "`offset` bigint, `headers` array<struct<`key` string, `value` binary>>"
    assert plan(("offset", "value")).schema == pa.schema([("offset", pa.int64()), ("value", pa.binary())])


def test_times_that_spark_cannot_hold_are_its_first_and_last() -> None:
    batch = encode_batch([Record(0, 2**63 - 1, None, None), Record(1, -(2**63), None, None)])
    (found,) = RowMaker(plan(("timestamp",))).batches(decode(batch, Wanted()), ORDERS)
    first, last = found.column(0).cast(pa.int64()).to_pylist()
    assert first == -last == ((2**63) // 1000 - 1) * 1000


def test_a_time_in_the_year_9999() -> None:
    (row,) = rows(encode_batch([Record(0, 253402300799999, None, None)]), ("timestamp",))
    assert row["timestamp"] == datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)


NUMBERS = {"value.format": "json", "value.schema": "n INT", "key.format": "text"}


def test_keys_and_values_are_decoded() -> None:
    batch = encode_batch(
        [Record(0, 5, b"k", b'{"n": 7, "x": 1}'), Record(1, 5, b"\xff", b"seven"), Record(2, 5, None, None)]
    )
    names = ("key", "value", "error", "valueBytes", "keyBytes")
    made = plan(names, **NUMBERS)
    assert made.ddl.startswith("`key` string, `value` struct<`n` int>, `error` string,")
    (found,) = RowMaker(pickle.loads(pickle.dumps(made))).batches(decode(batch, Wanted()), ORDERS)
    good, bad, null = found.to_pylist()
    assert good == {
        "key": "k", "value": {"n": 7}, "error": None, "valueBytes": b'{"n": 7, "x": 1}', "keyBytes": b"k"
    }  # fmt: skip
    assert bad["key"] is None and bad["value"] is None and bad["valueBytes"] == b"seven"
    assert bad["error"] == (
        "key: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte;"
        " value: Expecting value: line 1 column 1 (char 0)"
    )
    assert null == dict.fromkeys(names)


def test_without_a_column_for_errors_the_first_bad_record_fails() -> None:
    batch = encode_batch([Record(0, 5, b"k", b"{}"), Record(1, 5, b"k", b"[]"), Record(2, 5, b"k", b"{")])
    with pytest.raises(
        DecodeError, match=r"orders-3: the record at offset 1 cannot be decoded: value: the value is \[\]"
    ):
        list(RowMaker(plan(("value",), **NUMBERS)).batches(decode(batch, Wanted()), ORDERS))


def test_rows_of_many_fields_come_in_small_batches() -> None:
    wide = {"value.format": "json", "value.schema": ", ".join(f"f{number} STRING" for number in range(4000))}
    made = plan(("offset", "value"), **wide)
    assert made.value.rows_at_once < 2200
    batch = encode_batch([Record(number, 5, None, None) for number in range(5000)])
    found = list(RowMaker(made).batches(decode(batch, Wanted()), ORDERS))
    assert max(each.num_rows for each in found) == made.value.rows_at_once
    assert [row for each in found for row in each.column("offset").to_pylist()] == list(range(5000))


def test_the_row_of_a_source_without_records_has_a_time_and_nothing_else() -> None:
    columns = (*ALL, "error")
    chosen = plan(columns, **{"value.format": "json", "value.schema": "id STRING, amount DOUBLE"})
    batch = tick_row(chosen, 1_700_000_000_123)
    assert batch.schema == chosen.schema
    (row,) = batch.to_pylist()
    assert row["timestamp"] == datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)
    assert {name for name, value in row.items() if value is not None} == {"timestamp"}
    assert tick_row(plan(("value",)), 5).to_pylist() == [{"value": None}]
