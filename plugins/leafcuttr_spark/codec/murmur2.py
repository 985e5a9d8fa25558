"""Which partition Java's default partitioner sends each of many keys to: `leafcuttr_sdk.batches.partition_of` for a
whole Arrow array."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from leafcuttr_sdk.batches import murmur2
from leafcuttr_spark.codec.slices import edges_of
from leafcuttr_spark.codec.varints import Longs

Words = npt.NDArray[np.uint32]

_M: Final = np.uint32(0x5BD1E995)
_SEED: Final = np.uint32(0x9747B28C)
_LONG: Final = 512
"""Bytes: longer keys are few, and each round of all keys would be for them alone."""


def murmur2_of(keys: pa.Array) -> Words:
    """The 32 bits of each key of a binary array, as Java has them; of a null those of no bytes."""
    edges, buffer = edges_of(keys)
    starts, sizes = edges[:-1], np.diff(edges)
    hashed = np.empty(len(keys), np.uint32)
    long = sizes > _LONG
    if not long.any():
        hashed[:] = _of_short(buffer, starts, sizes)
        return hashed
    for row in np.flatnonzero(long).tolist():
        hashed[row] = murmur2(bytes(memoryview(buffer)[edges[row] : edges[row + 1]]))
    hashed[~long] = _of_short(buffer, starts[~long], sizes[~long])
    return hashed


def partitions_of(keys: pa.Array, partitions: int) -> Longs:
    """Where Java's producer sends a record with each of these keys; what it says of a null has no meaning."""
    return (murmur2_of(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions


def _of_short(buffer: object, starts: Longs, sizes: Longs) -> Words:
    # Words are read at any byte, so three bytes are wanted behind the last one.
    data = np.zeros(int(starts[-1] + sizes[-1]) + 4 if len(starts) else 4, np.uint8)
    data[:-4] = np.frombuffer(buffer, np.uint8, len(data) - 4)  # type: ignore[call-overload]
    words = np.lib.stride_tricks.sliding_window_view(data, 4)
    hashed = _SEED ^ sizes.astype(np.uint32)
    whole = sizes // 4
    order = np.arange(len(starts))
    for place in range(int(whole.max()) if len(whole) else 0):
        order = order[whole[order] > place]
        word = np.ascontiguousarray(words[starts[order] + 4 * place]).view("<u4").reshape(-1)
        word = word * _M
        word ^= word >> np.uint32(24)
        word *= _M
        hashed[order] = hashed[order] * _M ^ word
    rest = sizes % 4
    order = np.flatnonzero(rest)
    if len(order):
        word = np.ascontiguousarray(words[starts[order] + 4 * whole[order]]).view("<u4").reshape(-1)
        kept = (np.uint32(1) << (rest[order] * 8).astype(np.uint32)) - np.uint32(1)
        hashed[order] = (hashed[order] ^ (word & kept)) * _M
    hashed ^= hashed >> np.uint32(13)
    hashed *= _M
    return hashed ^ (hashed >> np.uint32(15))
