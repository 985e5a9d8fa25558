"""Record batches as a broker stores them to columns.

Control batches and those of aborted transactions are left out. Each batch is checked as a consumer checks it: length,
magic, CRC, the size of what is compressed in it, and that its records are as long and as many as they claim. What the
bytes merely claim is never allocated.

A record (KIP-98; numbers are zigzag varints, a length of -1 is null):

    length | attributes int8 (unused) | timestamp delta | offset delta | key length, key | value length, value
    | header count | each header: name length, name, value length, value
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from leafcuttr_sdk.batches import Batch, BatchError, BatchHeader, batches_in
from leafcuttr_sdk.batches.header import HEADER_SIZE
from leafcuttr_sdk.records import AbortedRange
from leafcuttr_spark.codec.headers import read_headers
from leafcuttr_spark.codec.slices import LARGEST, take_slices
from leafcuttr_spark.codec.varints import Longs, Octets, read_ints, read_longs

DECOMPRESSED_LIMIT: Final = 100 << 20
"""Bytes that the records of one batch may take once decompressed, unless the caller says otherwise."""

_AT_ONCE: Final = 1 << 16
"""Records that are decoded together: enough for numpy, few enough that millions of tiny ones take little memory."""
_JOINED: Final = 4 << 20
"""Bytes of decompressed batches that are decoded together."""
_LEAST: Final = 7
"""Bytes of the shortest record, its length included."""

Ints = npt.NDArray[np.int32]
Buffer = bytes | bytearray | memoryview


class Columns(NamedTuple):
    """Records of one partition. What was not wanted is None."""

    offsets: Longs
    timestamps: Longs
    """Milliseconds since 1970, -1 for none."""
    timestamp_types: Ints
    """0 where the producer has set it, 1 where the broker has."""
    keys: pa.Array | None
    values: pa.Array | None
    headers: pa.Array | None
    """Lists of structs of `key` and `value`; null where a record has none."""

    def part(self, begin: int, end: int) -> "Columns":
        """Some of them, without a copy."""
        keys, values, headers = (
            None if each is None else each[begin:end] for each in (self.keys, self.values, self.headers)
        )
        return Columns(
            self.offsets[begin:end],
            self.timestamps[begin:end],
            self.timestamp_types[begin:end],
            keys,
            values,
            headers,
        )


@dataclass(frozen=True)
class Wanted:
    """Which columns, and of which records: from `first` on, before `end`."""

    first: int = 0
    end: int = (1 << 63) - 1
    keys: bool = True
    values: bool = True
    headers: bool = False
    check_crcs: bool = True
    limit: int = DECOMPRESSED_LIMIT


def decode(data: Buffer, wanted: Wanted, aborted: Iterable[AbortedRange] = ()) -> Iterator[Columns]:
    """The records of whole batches that lie one behind the other, in some pieces.

    `aborted` are the aborted transactions that have records in `data`. Raises BatchError for damage that is met.
    """
    skipped = tuple(aborted)
    pending = _Pending(wanted)
    at = 0
    for batch in batches_in(data):
        header = batch.header
        begin, at = at, at + header.size
        if header.base_offset >= wanted.end:
            break
        if header.next_offset <= wanted.first:
            continue
        if wanted.check_crcs:
            batch.check()
        if header.is_control or batch.is_aborted(skipped):
            continue
        if header.codec:
            body = _decompressed(batch, wanted.limit)
            yield from pending.add(header, body, 0, len(body), is_alone=True)
        else:
            yield from pending.add(header, data, begin + HEADER_SIZE, at, is_alone=False)
    yield from pending.flush()


def _decompressed(batch: Batch, limit: int) -> bytes:
    from leafcuttr_sdk.batches.compression import Codec, decompress

    try:
        codec = Codec(batch.header.codec)
    except ValueError:
        raise BatchError(f"compression codec {batch.header.codec} does not exist") from None
    # bytes: a loop over them is a third faster than over a memoryview.
    return bytes(decompress(codec, batch.data[HEADER_SIZE:], limit=limit))


class _Pending:
    """Batches whose records were found and are not decoded yet: of one buffer, or of several that will be joined."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._starts = array("q")
        """Where each record begins in its piece."""
        self._parts: list[tuple[BatchHeader, int, int]] = []
        """Each with the number of its records, and the place of its piece among all of them."""
        self._pieces: list[Buffer] = []
        self._size = 0
        self._are_alone = False

    def add(
        self, header: BatchHeader, piece: Buffer, begin: int, end: int, *, is_alone: bool
    ) -> Iterator[Columns]:
        """The batch whose records lie between `begin` and `end` of the piece, which holds it alone or others too. Gives
        out what there is enough of."""
        if header.count * _LEAST > end - begin:
            raise BatchError(
                f"the batch at offset {header.base_offset} claims {header.count} records in {end - begin} bytes"
            )
        if is_alone != self._are_alone or (is_alone and self._size + len(piece) > _JOINED):
            yield from self.flush()
        self._are_alone = is_alone
        if is_alone or not self._pieces:
            place = self._keep(piece)
        else:
            place = 0
        at, left = begin, header.count
        while left:
            count = min(left, _AT_ONCE - len(self._starts))
            at = _find(piece, at, count, self._starts)
            self._parts.append((header, count, place))
            left -= count
            if len(self._starts) == _AT_ONCE:
                yield from self.flush()
                place = self._keep(piece)
        if at != end:
            raise BatchError(
                f"the {header.count} records of the batch at offset {header.base_offset} take {at - begin} bytes, "
                f"not the {end - begin} of the batch"
            )

    def _keep(self, piece: Buffer) -> int:
        place = self._size
        self._pieces.append(piece)
        self._size += len(piece)
        return place

    def flush(self) -> Iterator[Columns]:
        """What is left."""
        if self._starts:
            buffer = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            try:
                found = _columns(buffer, self._starts, self._parts, self._wanted)
            except IndexError:
                raise BatchError("a record ends in the middle of a number") from None
            if len(found.offsets):
                yield found
        self._starts = array("q")
        self._parts.clear()
        self._pieces.clear()
        self._size = 0


def _find(data: Buffer, at: int, count: int, starts: "array[int]") -> int:
    """Add where so many records begin, the first at `at`; where the last one ends. Their lengths are not checked."""
    add = starts.append
    try:
        for _ in range(count):
            add(at)
            one = data[at]
            if one < 128:
                at += 1 + (one >> 1)
            elif (two := data[at + 1]) < 128:
                at += 2 + ((one & 127 | two << 7) >> 1)
            elif (three := data[at + 2]) < 128:
                at += 3 + ((one & 127 | (two & 127) << 7 | three << 14) >> 1)
            else:
                four = data[at + 3]
                size = one & 127 | (two & 127) << 7 | (three & 127) << 14 | (four & 127) << 21
                if four < 128:
                    at += 4 + (size >> 1)
                else:
                    at += 5 + ((size | data[at + 4] << 28) >> 1)
    except IndexError:
        raise BatchError(
            f"a record at byte {starts[-1]} begins behind the end, or ends within its length"
        ) from None
    return at


def _columns(
    buffer: Buffer, starts: "array[int]", parts: list[tuple[BatchHeader, int, int]], wanted: Wanted
) -> Columns:
    """Raises BatchError, and IndexError for a number that ends behind the buffer."""
    if len(buffer) > LARGEST:
        raise BatchError(f"{len(buffer)} bytes of batches at once, at most {LARGEST} are possible")
    data = np.frombuffer(buffer, np.uint8)
    counts = np.array([count for _, count, _ in parts])
    begin = np.frombuffer(starts, np.int64) + np.repeat(np.array([place for _, _, place in parts]), counts)
    length, at = read_ints(data, begin)
    ends = at + length
    if (length < 0).any() or (ends > len(data)).any():
        raise BatchError("a record claims more bytes than its batch has, or less than none")
    time_deltas, at = read_longs(data, at + 1)
    offset_deltas, at = read_ints(data, at)
    key_sizes, key_starts = _sizes(data, at, "key")
    value_sizes, value_starts = _sizes(data, key_starts + np.maximum(key_sizes, 0), "value")
    at = value_starts + np.maximum(value_sizes, 0)
    if (at >= ends).any():
        raise BatchError("a record does not end where its length says")
    headers = read_headers(data, buffer, at, ends, build=wanted.headers)

    headers_of = [header for header, _, _ in parts]
    offsets = offset_deltas + np.repeat(np.array([one.base_offset for one in headers_of], np.int64), counts)
    timestamps, types = _times(headers_of, counts, time_deltas)
    keep = (offsets >= wanted.first) & (offsets < wanted.end)
    if not keep.all():
        offsets, timestamps, types = offsets[keep], timestamps[keep], types[keep]
        key_sizes, key_starts = key_sizes[keep], key_starts[keep]
        value_sizes, value_starts = value_sizes[keep], value_starts[keep]
        headers = None if headers is None else headers.filter(pa.array(keep))
    return Columns(
        offsets,
        timestamps,
        types,
        _taken(buffer, key_starts, key_sizes) if wanted.keys else None,
        _taken(buffer, value_starts, value_sizes) if wanted.values else None,
        headers,
    )


def _sizes(data: Octets, at: Longs, what: str) -> tuple[Longs, Longs]:
    """The lengths at these positions, and the positions behind them."""
    sizes, behind = read_ints(data, at)
    if (sizes < -1).any():
        raise BatchError(f"a {what} claims less than no bytes")
    return sizes, behind


def _taken(buffer: Buffer, starts: Longs, sizes: Longs) -> pa.Array:
    null = sizes < 0
    if not null.any():
        return take_slices(buffer, starts, sizes)
    if null.all():
        return pa.nulls(len(sizes), pa.binary())
    return take_slices(buffer, starts, np.maximum(sizes, 0), null)


def _times(headers: list[BatchHeader], counts: Longs, deltas: Longs) -> tuple[Longs, Ints]:
    """The timestamps, which wrap as Java's longs do, and their types."""
    appended = [one.is_log_append_time for one in headers]
    # What the broker has set is one time for the whole batch, whatever the deltas say.
    base = [
        one.max_timestamp if late else one.base_timestamp for one, late in zip(headers, appended, strict=True)
    ]
    types = np.repeat(np.array(appended, np.int32), counts)
    if any(appended):
        deltas = np.where(types == 1, 0, deltas)
    return deltas + np.repeat(np.array(base, np.int64), counts), types
