# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""Columns to record batches as a producer makes them: magic 2, base offset 0, without a producer id.

The layout of a record is in `decoding`. The bytes of all records of many batches are made by one join of Arrow arrays,
and cut into batches afterwards.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leafcuttr_sdk.batches.compression import Codec, compress
from leafcuttr_sdk.batches.header import HEADER_SIZE, NO_SEQUENCE, BatchHeader, seal
from leafcuttr_spark.codec.headers import write_headers
from leafcuttr_spark.codec.slices import binary_of, edges_of
from leafcuttr_spark.codec.varints import Longs, Mask, Octets, Varints

BATCH_BYTES: Final = 512 << 10
"""How large a batch becomes at most, before compression; a larger record has one of its own."""

_JOINED: Final = 64 << 20
"""Bytes that are joined at once: Arrow's binary arrays end at 2 GiB."""
_AROUND: Final = 33
"""Bytes of a record beside its key, value and headers, at most: length 5, attributes 1, timestamp delta 10, offset
delta 5, lengths 5 and 5; and 2 for the count of few headers."""


class Rows(NamedTuple):
    """Records for one partition, in their order; arrays of one length."""

    keys: pa.Array
    """Binary, as the values; null is allowed in both."""
    values: pa.Array
    timestamps: Longs
    """Milliseconds since 1970."""
    headers: pa.Array | None = None
    """Lists of structs of `key` and `value`."""

    @property
    def count_of_rows(self) -> int:
        return len(self.timestamps)

    def part(self, begin: int, end: int) -> "Rows":
        """Some of them, without a copy."""
        size = end - begin
        headers = None if self.headers is None else self.headers.slice(begin, size)
        return Rows(
            self.keys.slice(begin, size), self.values.slice(begin, size), self.timestamps[begin:end], headers
        )


class EncodedBatch(NamedTuple):
    """A whole batch with its CRC."""

    data: bytearray
    records: int


def encode(
    rows: Rows, *, batch_bytes: int = BATCH_BYTES, codec: Codec = Codec.NONE
) -> Iterator[EncodedBatch]:
    """The rows as batches, in their order."""
    tails = None if rows.headers is None else write_headers(rows.headers)
    sizes = _lengths(rows.keys, 0) + _lengths(rows.values, 0) + _AROUND
    if tails is not None:
        sizes += _lengths(tails, 0)
    behind = np.cumsum(sizes)
    cuts = _cuts(behind, batch_bytes)
    at = 0
    while at + 1 < len(cuts):
        # As many batches as are joined at once, one at least.
        before = int(behind[cuts[at] - 1]) if cuts[at] else 0
        to = at + 1
        while to + 1 < len(cuts) and int(behind[cuts[to + 1] - 1]) - before <= _JOINED:
            to += 1
        some = rows.part(cuts[at], cuts[to])
        some_tails = None if tails is None else tails.slice(cuts[at], cuts[to] - cuts[at])
        yield from _encode(some, some_tails, np.array(cuts[at : to + 1], np.int64) - cuts[at], codec)
        at = to


def _cuts(behind: Longs, batch_bytes: int) -> list[int]:
    """Where batches begin, and the end of the last one. `behind` says how many bytes there are up to the end of each
    record."""
    cuts, at, total = [0], 0, len(behind)
    while at < total:
        before = int(behind[at - 1]) if at else 0
        at = max(at + 1, int(np.searchsorted(behind, before + batch_bytes, "right")))
        cuts.append(at)
    return cuts


def _encode(rows: Rows, tails: pa.Array | None, cuts: Longs, codec: Codec) -> Iterator[EncodedBatch]:
    begins, counts = cuts[:-1], np.diff(cuts)
    times = rows.timestamps
    base_times = times[begins]
    numbers = np.arange(rows.count_of_rows) - np.repeat(begins, counts)
    bytes_of = _records(rows, tails, times - np.repeat(base_times, counts), numbers)
    edges, buffer = edges_of(bytes_of)
    view = memoryview(buffer)
    highest = np.maximum.reduceat(times, begins)
    for place, (begin, count) in enumerate(zip(begins.tolist(), counts.tolist(), strict=True)):
        records = view[edges[begin] : edges[begin + count]]
        batch = bytearray(HEADER_SIZE)
        batch += records if codec is Codec.NONE else compress(codec, records)
        header = BatchHeader(
            0, 0, -1, 0, 0, codec.value, count - 1, int(base_times[place]), int(highest[place]), -1, -1,
            NO_SEQUENCE, count,
        )  # fmt: skip
        seal(batch, header)
        yield EncodedBatch(batch, count)


def _records(rows: Rows, tails: pa.Array | None, time_deltas: Longs, numbers: Longs) -> pa.Array:
    """The bytes of each record, one behind the other in one buffer."""
    key_sizes, value_sizes = _lengths(rows.keys, -1), _lengths(rows.values, -1)
    times, offsets = Varints(time_deltas), Varints(numbers)
    keys, values = Varints(key_sizes), Varints(value_sizes)
    body = 1 + times.sizes + offsets.sizes + keys.sizes + values.sizes
    body += np.maximum(key_sizes, 0) + np.maximum(value_sizes, 0)
    body += 1 if tails is None else _lengths(tails, 0)
    lengths = Varints(body)
    attributes = np.zeros((len(numbers), 1), np.uint8)
    head = _beside(
        [lengths.matrix, attributes, times.matrix, offsets.matrix, keys.matrix],
        [lengths.used, np.ones(attributes.shape, np.bool_), times.used, offsets.used, keys.used],
        lengths.sizes + 1 + times.sizes + offsets.sizes + keys.sizes,
    )
    middle = binary_of(values.matrix[values.used], values.sizes)
    tail: Any = pa.scalar(b"\0", pa.binary()) if tails is None else tails
    return pc.binary_join_element_wise(head, _filled(rows.keys), middle, _filled(rows.values), tail, b"")


def _beside(matrices: list[Octets], used: list[Mask], sizes: Longs) -> pa.Array:
    """The used bytes of these matrices, row by row."""
    return binary_of(np.concatenate(matrices, axis=1)[np.concatenate(used, axis=1)], sizes)


def _filled(pieces: pa.Array) -> pa.Array:
    return pc.fill_null(pieces, b"") if pieces.null_count else pieces


def _lengths(pieces: pa.Array, of_null: int) -> Longs:
    lengths = pc.binary_length(pieces)
    if pieces.null_count:
        lengths = pc.fill_null(lengths, of_null)
    return np.asarray(lengths, np.int64)
