"""Records for the codec, made by the broker's own writer of batches, and rows of Arrow as such records."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from hypothesis import strategies as st

from leafcuttr.wire.records import Record
from leafcuttr_spark.codec.decoding import Columns

maybe_bytes = st.none() | st.binary(max_size=300)
headers = st.just(()) | st.lists(st.tuples(st.text(max_size=20), maybe_bytes), max_size=4).map(tuple)
timestamps = st.integers(-1, 2**42)


@st.composite
def record_lists(draw: st.DrawFn, max_gap: int = 1, max_size: int = 20) -> list[Record]:
    rows = draw(
        st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes, headers), min_size=1, max_size=max_size)
    )
    offset, found = 0, []
    for timestamp, key, value, head in rows:
        found.append(Record(offset, timestamp, key, value, head))
        offset += draw(st.integers(1, max_gap))
    return found


def moved(records: Iterable[Record], base: int) -> list[Record]:
    return [record._replace(offset=record.offset + base) for record in records]


def rows_of(columns: Columns) -> list[Record]:
    """What was decoded, record by record."""
    assert columns.keys is not None and columns.values is not None and columns.headers is not None
    for array in (columns.keys, columns.values, columns.headers):
        array.validate(full=True)
    return [
        Record(offset, timestamp, key, value, tuple((head["key"], head["value"]) for head in heads or ()))
        for offset, timestamp, key, value, heads in zip(
            columns.offsets.tolist(),
            columns.timestamps.tolist(),
            columns.keys.to_pylist(),
            columns.values.to_pylist(),
            columns.headers.to_pylist(),
            strict=True,
        )
    ]


def binary(pieces: Iterable[bytes | None]) -> pa.Array:
    return pa.array(list(pieces), pa.binary())
