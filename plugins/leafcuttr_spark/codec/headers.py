# pyarrow makes the functions of its module `compute` when it is imported.
# pyright: reportAttributeAccessIssue=false
"""The headers of records: to Arrow's lists of structs, and back.

header count | each header: name length, name, value length, value
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from leafcuttr_sdk.batches import BatchError
from leafcuttr_spark.codec.slices import binary_of, edges_of, take_slices
from leafcuttr_spark.codec.varints import Longs, Octets, Varints, read_ints

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
"""As Spark's Kafka connector has them."""

_FEW: Final = 32
"""Fewer records than these with headers left are read by a loop, which is then faster than numpy."""


def read_headers(data: Octets, buffer: Any, at: Longs, ends: Longs, *, build: bool) -> pa.Array | None:
    """The headers of the records whose header counts stand `at` these positions, and which end at `ends`; checked only,
    and None, unless they are to be built. Raises BatchError, IndexError for a number that ends behind the data."""
    if not data[at].any():
        if not (at + 1 == ends).all():
            raise BatchError("a record does not end where its length says")
        return pa.nulls(len(at), HEADERS) if build else None
    counts, at = read_ints(data, at)
    # Each takes two bytes at least, which refuses a count that is only claimed.
    if (counts < 0).any() or (2 * counts > ends - at).any():
        raise BatchError("a record claims more headers than fit into it, or less than none")
    found = _Found(counts)
    found.read(data, buffer, at, ends)
    return found.array(buffer) if build else None


class _Found:
    """Where the names and values of all headers are, record by record."""

    def __init__(self, counts: Longs) -> None:
        self.edges: Longs = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=self.edges[1:])
        self._counts = counts
        total = int(self.edges[-1])
        self._names, self._name_sizes = np.empty(total, np.int64), np.empty(total, np.int64)
        self._values, self._value_sizes = np.empty(total, np.int64), np.empty(total, np.int64)

    def read(self, data: Octets, buffer: Any, at: Longs, ends: Longs) -> None:
        """The first header of all records that have one, then the second, and so on."""
        at = at.copy()
        rows = np.flatnonzero(self._counts)
        done = 0
        while len(rows) >= _FEW:
            self._read_next(data, at, ends, rows, self.edges[rows] + done)
            done += 1
            rows = rows[self._counts[rows] > done]
        for row in rows.tolist():
            first, last = int(self.edges[row]) + done, int(self.edges[row + 1])
            at[row] = self._read_rest(buffer, int(at[row]), int(ends[row]), first, last)
        if not (at == ends).all():
            raise BatchError("a record does not end where its length says")

    def _read_next(self, data: Octets, at: Longs, ends: Longs, rows: Longs, places: Longs) -> None:
        name_sizes, names = read_ints(data, at[rows])
        value_sizes, values = read_ints(data, names + np.maximum(name_sizes, 0))
        behind = values + np.maximum(value_sizes, 0)
        if (name_sizes < 0).any() or (value_sizes < -1).any() or (behind > ends[rows]).any():
            raise BatchError("a header does not fit into its record")
        self._names[places], self._name_sizes[places] = names, name_sizes
        self._values[places], self._value_sizes[places] = values, value_sizes
        at[rows] = behind

    def _read_rest(self, buffer: Any, at: int, end: int, first: int, last: int) -> int:
        for place in range(first, last):
            size, name = _int(buffer, at)
            value_size, value = _int(buffer, name + max(size, 0))
            at = value + max(value_size, 0)
            if size < 0 or value_size < -1 or at > end:
                raise BatchError("a header does not fit into its record")
            self._names[place], self._name_sizes[place] = name, size
            self._values[place], self._value_sizes[place] = value, value_size
        return at

    def array(self, buffer: Any) -> pa.Array:
        names = _text(take_slices(buffer, self._names, self._name_sizes))
        null = self._value_sizes < 0
        values = take_slices(
            buffer, self._values, np.maximum(self._value_sizes, 0), null if null.any() else None
        )
        structs = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
        without = self._counts == 0
        mask = pa.array(without) if without.any() else None
        return pa.ListArray.from_arrays(pa.array(self.edges, pa.int32()), structs, type=HEADERS, mask=mask)


def _int(data: Any, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number > 0xFFFFFFFF:
                raise BatchError("a number of the records exceeds 32 bits")
            return number >> 1 ^ -(number & 1), at
        shift += 7
        if shift > 28:
            raise BatchError("a number of the records has more than 5 bytes")


def _text(names: pa.Array) -> pa.Array:
    """As text. What is not UTF-8 is replaced, as Java's String does."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())


def write_headers(headers: pa.Array) -> pa.Array:
    """What follows the value of each record, as a binary array. Null is no headers. Raises ValueError for a header
    without a name."""
    counts = Varints(np.asarray(pc.fill_null(pc.list_value_length(headers), 0), np.int64))
    encoded_counts = binary_of(counts.matrix[counts.used], counts.sizes)
    structs = headers.flatten()
    if not len(structs):
        return encoded_counts
    names, values = structs.flatten()
    if names.null_count:
        raise ValueError("a header has no key")
    joined = pc.binary_join_element_wise(*_sized(names.cast(pa.binary())), *_sized(values), b"")
    edges, data = edges_of(joined)
    # All headers of a record lie one behind the other in the joined bytes.
    per_row = np.zeros(len(headers) + 1, np.int64)
    np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(headers), 0)), out=per_row[1:])
    offsets = edges[per_row].astype(np.int32)
    tails = pa.Array.from_buffers(pa.binary(), len(headers), [None, pa.py_buffer(offsets), data])
    return pc.binary_join_element_wise(encoded_counts, tails, b"")


def _sized(pieces: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Binary pieces as records carry them: their lengths, -1 for null, and the bytes."""
    sizes = Varints(np.asarray(pc.fill_null(pc.binary_length(pieces), -1), np.int64))
    whole = pc.fill_null(pieces, b"") if pieces.null_count else pieces
    return binary_of(sizes.matrix[sizes.used], sizes.sizes), whole
