"""Columns of records to the rows that Spark gets, with the names of its Kafka connector; keys and values are decoded by
their formats."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.codec.decoding import Columns
from leafcuttr_spark.codec.headers import HEADERS as HEADERS_TYPE
from leafcuttr_spark.codec.varints import Longs
from leafcuttr_spark.formats.decoding import FieldDecoder, FormatPlan, plan_format
from leafcuttr_spark.formats.types import TIMESTAMP, columns_ddl
from leafcuttr_spark.source.options import ERROR, HEADERS, KEY_BYTES, VALUE_BYTES, RowOptions

_LAST_MS: Final = (1 << 63) // 1000 - 1
"""Times of records are longs of milliseconds, those of Spark of microseconds."""

Make = Callable[[Columns, TopicPartition], pa.Array]


class DecodeError(PluginError):
    """A key or value that is not of its format, where there is no column for it."""


@dataclass(frozen=True)
class RowPlan:
    """The columns of a query and what is in them. Can be pickled."""

    columns: tuple[str, ...]
    key: FormatPlan
    value: FormatPlan

    @property
    def schema(self) -> pa.Schema:
        """As Arrow has it."""
        types = _TYPES | {"key": self.key.type, "value": self.value.type}
        return pa.schema([pa.field(name, types[name]) for name in self.columns])

    @property
    def ddl(self) -> str:
        """The same as Spark's DDL."""
        return columns_ddl((field.name, field.type) for field in self.schema)


def row_plan(options: RowOptions) -> RowPlan:
    """Asks a registry for the schemas that are not given. Raises OptionError."""
    return RowPlan(
        options.columns,
        plan_format(options.key_format, "key", options.topics),
        plan_format(options.value_format, "value", options.topics),
    )


def tick_row(plan: RowPlan, tick_ms: int) -> pa.RecordBatch:
    """The one row of a source that moves event time on without a record: the time, and null."""
    schema = plan.schema
    columns = [
        pa.array([tick_ms * 1000], field.type) if field.name == "timestamp" else pa.nulls(1, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class Fields(NamedTuple):
    """What is decoded of some records; None where nothing needs it."""

    keys: pa.Array | None
    values: pa.Array | None
    headers: pa.Array | None


class RowMaker:
    """Makes the rows of one task."""

    def __init__(self, plan: RowPlan) -> None:
        self._plan = plan
        self._schema = plan.schema
        self._key, self._value = FieldDecoder(plan.key), FieldDecoder(plan.value)
        fields = [
            plan.key if "key" in plan.columns else None,
            plan.value if "value" in plan.columns else None,
        ]
        self._at_once = min((each.rows_at_once for each in fields if each is not None), default=None)

    def batches(self, found: Iterable[Columns], of: TopicPartition) -> Iterator[pa.RecordBatch]:
        """Raises DecodeError."""
        for columns in found:
            for part in _parts(columns, self._at_once):
                yield self._batch(part, of)

    def decoded(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same of rows as Spark's own connector has them. Raises DecodeError."""
        for whole in found:
            for at in range(0, whole.num_rows, self._at_once or max(1, whole.num_rows)):
                yield self._decoded(whole.slice(at, self._at_once))

    def _decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        def column(name: str) -> pa.Array:
            given = {KEY_BYTES: "key", VALUE_BYTES: "value"}.get(name, name)
            return batch.column(given).cast(self._schema.field(name).type)

        def place(row: int) -> str:
            one = batch.slice(row, 1).to_pylist()[0]
            return f"{TopicPartition(one['topic'], one['partition'])}: the record at offset {one['offset']}"

        keys, values = (batch.column(name).cast(pa.binary()) for name in ("key", "value"))
        headers = batch.column(HEADERS).cast(HEADERS_TYPE) if HEADERS in batch.schema.names else None
        return self._made(Fields(keys, values, headers), batch.num_rows, column, place)

    def _batch(self, columns: Columns, of: TopicPartition) -> pa.RecordBatch:
        return self._made(
            Fields(columns.keys, columns.values, columns.headers),
            len(columns.offsets),
            lambda name: _MAKERS[name](columns, of),
            lambda row: f"{of}: the record at offset {columns.offsets[row]}",
        )

    def _made(
        self, fields: Fields, count: int, other: Callable[[str], pa.Array], place: Callable[[int], str]
    ) -> pa.RecordBatch:
        made: dict[str, pa.Array] = {}
        errors: dict[int, str] = {}
        for name, decoder, data in (("key", self._key, fields.keys), ("value", self._value, fields.values)):
            if name not in self._plan.columns:
                continue
            made[name], bad = decoder.decode(data, fields.headers)
            for row, line in bad.items():
                errors[row] = f"{errors[row]}; {name}: {line}" if row in errors else f"{name}: {line}"
        if ERROR in self._plan.columns:
            made[ERROR] = _lines(errors, count)
        elif errors:
            row = min(errors)
            raise DecodeError(
                f"{place(row)} cannot be decoded: {errors[row]}; with a column error the query goes on"
            )
        arrays = [made[name] if name in made else other(name) for name in self._plan.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _parts(columns: Columns, at_once: int | None) -> Iterator[Columns]:
    count = len(columns.offsets)
    if at_once is None or count <= at_once:
        yield columns
        return
    for at in range(0, count, at_once):
        yield columns.part(at, at + at_once)


def _lines(errors: dict[int, str], count: int) -> pa.Array:
    if not errors:
        return pa.nulls(count, pa.string())
    return pa.array([errors.get(row) for row in range(count)], pa.string())


def _timestamps(milliseconds: Longs) -> pa.Array:
    """Times that Spark cannot hold become the first or last that it can."""
    micros = np.clip(milliseconds, -_LAST_MS, _LAST_MS) * 1000
    return pa.Array.from_buffers(TIMESTAMP, len(micros), [None, pa.py_buffer(micros)])


_MAKERS: Final[dict[str, Make]] = {
    KEY_BYTES: lambda columns, of: columns.keys,
    VALUE_BYTES: lambda columns, of: columns.values,
    "topic": lambda columns, of: pa.repeat(of.topic, len(columns.offsets)),
    "partition": lambda columns, of: pa.array(np.full(len(columns.offsets), of.partition, np.int32)),
    "offset": lambda columns, of: pa.array(columns.offsets),
    "timestamp": lambda columns, of: _timestamps(columns.timestamps),
    "timestampType": lambda columns, of: pa.array(columns.timestamp_types),
    HEADERS: lambda columns, of: columns.headers,
}
_TYPES: Final = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP,
    "timestampType": pa.int32(),
    HEADERS: HEADERS_TYPE,
    ERROR: pa.string(),
    KEY_BYTES: pa.binary(),
    VALUE_BYTES: pa.binary(),
}
