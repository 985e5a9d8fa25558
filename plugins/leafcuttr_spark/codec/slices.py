"""Many pieces of one buffer as one Arrow array, copied by Arrow itself."""

from typing import Any, Final

import numpy as np
import pyarrow as pa

from leafcuttr_spark.codec.varints import Longs, Mask, Octets

LARGEST: Final = (1 << 31) - 1
"""Bytes: the offsets of Arrow's binary arrays have 32 bits."""


def take_slices(buffer: Any, starts: Longs, sizes: Longs, null: Mask | None = None) -> pa.Array:
    """A binary array of the pieces, which lie one behind the other in the buffer, with gaps; null where the mask is
    true. The buffer has at most `LARGEST` bytes, and all pieces lie in it."""
    count = len(starts)
    # The pieces and the gaps between them are an array without a copy; the pieces are every second element of it.
    edges = np.empty(2 * count + 1, np.int32)
    edges[0:-1:2] = starts
    edges[1::2] = starts + sizes
    edges[-1] = edges[-2] if count else 0
    both = pa.Array.from_buffers(pa.binary(), 2 * count, [None, pa.py_buffer(edges), pa.py_buffer(buffer)])
    return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=null))


def binary_of(octets: Octets, sizes: Longs) -> pa.Array:
    """A binary array of these bytes, cut into these sizes. Nothing is copied."""
    edges = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=edges[1:])
    data = pa.py_buffer(np.ascontiguousarray(octets))
    return pa.Array.from_buffers(pa.binary(), len(sizes), [None, pa.py_buffer(edges), data])


def edges_of(array: pa.Array) -> tuple[Longs, Any]:
    """Where the elements of a binary array begin and end in its buffer, one more than there are elements; and that
    buffer."""
    _, offsets, data = array.buffers()
    if offsets is None:
        return np.zeros(len(array) + 1, np.int64), b""
    edges = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    return edges, data if data is not None else b""
