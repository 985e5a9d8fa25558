"""Columns of records to the rows that Spark gets, with the names and types of its Kafka connector."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.codec.decoding import Columns
from leafcuttr_spark.codec.headers import HEADERS
from leafcuttr_spark.codec.varints import Longs

_DDL: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key: string, value: binary>>",
}
_MICROSECONDS: Final = pa.timestamp("us", "UTC")
_LAST_MS: Final = (1 << 63) // 1000 - 1
"""Times of records are longs of milliseconds, those of Spark of microseconds."""

Make = Callable[[Columns, TopicPartition], pa.Array]


def ddl_of(names: Iterable[str]) -> str:
    """The schema as Spark's DDL."""
    return ", ".join(f"{name} {_DDL[name]}" for name in names)


def record_batches(
    found: Iterable[Columns], of: TopicPartition, names: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """The columns of these names."""
    schema = schema_of(names)
    for columns in found:
        yield pa.RecordBatch.from_arrays([_MAKERS[name](columns, of) for name in names], schema=schema)


def schema_of(names: Iterable[str]) -> pa.Schema:
    """The same schema as Arrow's."""
    return pa.schema([pa.field(name, _TYPES[name]) for name in names])


def _timestamps(milliseconds: Longs) -> pa.Array:
    """Times that Spark cannot hold become the first or last that it can."""
    micros = np.clip(milliseconds, -_LAST_MS, _LAST_MS) * 1000
    return pa.Array.from_buffers(_MICROSECONDS, len(micros), [None, pa.py_buffer(micros)])


_MAKERS: Final[dict[str, Make]] = {
    "key": lambda columns, of: columns.keys,
    "value": lambda columns, of: columns.values,
    "topic": lambda columns, of: pa.repeat(of.topic, len(columns.offsets)),
    "partition": lambda columns, of: pa.array(np.full(len(columns.offsets), of.partition, np.int32)),
    "offset": lambda columns, of: pa.array(columns.offsets),
    "timestamp": lambda columns, of: _timestamps(columns.timestamps),
    "timestampType": lambda columns, of: pa.array(columns.timestamp_types),
    "headers": lambda columns, of: columns.headers,
}
_TYPES: Final = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": _MICROSECONDS,
    "timestampType": pa.int32(),
    "headers": HEADERS,
}
