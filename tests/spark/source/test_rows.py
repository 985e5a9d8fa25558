"""Columns to the rows that Spark gets."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.codec.decoding import Wanted, decode
from leafcuttr_spark.source.rows import ddl_of, record_batches, schema_of

ORDERS = TopicPartition("orders", 3)
ALL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


def rows(batch: bytes, names: tuple[str, ...] = ALL) -> list[dict[str, object]]:
    found = record_batches(decode(batch, Wanted(headers=True)), ORDERS, names)
    return [row for each in found for row in each.to_pylist()]


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
    assert ddl_of(("offset", "headers")) == "offset bigint, headers array<struct<key: string, value: binary>>"
    assert schema_of(("offset", "value")) == pa.schema([("offset", pa.int64()), ("value", pa.binary())])


def test_times_that_spark_cannot_hold_are_its_first_and_last() -> None:
    batch = encode_batch([Record(0, 2**63 - 1, None, None), Record(1, -(2**63), None, None)])
    (found,) = record_batches(decode(batch, Wanted()), ORDERS, ("timestamp",))
    first, last = found.column(0).cast(pa.int64()).to_pylist()
    assert first == -last == ((2**63) // 1000 - 1) * 1000


def test_a_time_in_the_year_9999() -> None:
    (row,) = rows(encode_batch([Record(0, 253402300799999, None, None)]), ("timestamp",))
    assert row["timestamp"] == datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)
