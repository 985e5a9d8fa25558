"""Batches of a source made fit for another partition: whole ones as they are, others anew. Pure.

A batch whose offsets have gaps, with LogAppendTime, larger than the target takes, or one in which reading begins or
ends, is made anew; runs of very small batches become one. Both go record by record, but neither keys nor values nor
headers are decoded: what follows a record's two deltas is taken as it stands (its tail).

`leafcuttr_sdk.batches.Batch.records` splits that tail into views of its parts, which costs three times as much.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from leafcuttr_sdk.batches import Batch, BatchError, BatchHeader
from leafcuttr_sdk.batches.compression import Codec, compress, decompress
from leafcuttr_sdk.batches.header import HEADER_SIZE, MAGIC, seal
from leafcuttr_sdk.batches.varints import VARINTS

DECOMPRESSED_LIMIT: Final = 100 << 20
"""Bytes that the records of one batch may take once decompressed."""
SMALL_RECORDS: Final = 8
"""A batch of at most so many records is joined with its neighbours: below that a batch of its own costs more than the
records do."""

_LONG: Final = 1 << 63


class Tail(NamedTuple):
    """A record: its offset, its time in ms, and its bytes from the length of the key to the end of the headers."""

    offset: int
    timestamp: int
    data: memoryview


def is_whole(header: BatchHeader) -> bool:
    """Whether the batch can be passed on as it stands: Kafka refuses gaps from producers, and takes no times but the
    producers' own."""
    return header.count == header.last_offset_delta + 1 and not header.is_log_append_time


def tails(batch: Batch) -> Iterator[Tail]:
    """The records of a batch. Raises BatchError for what is broken."""
    header = batch.header
    data = batch.data[HEADER_SIZE:]
    if header.codec:
        try:
            codec = Codec(header.codec)
        except ValueError:
            raise BatchError(f"compression codec {header.codec} does not exist") from None
        data = decompress(codec, data, limit=DECOMPRESSED_LIMIT)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    make = Tail._make
    at, total = 0, len(data)
    for index in range(header.count):
        try:
            length, at = number(data, at)
            end = at + length
            if length < 0 or end > total:
                raise BatchError(f"record {index} claims {length} bytes with {total - at} left")
            time_delta, at = number(data, at + 1)  # behind the attributes, which are unused
            offset_delta, at = number(data, at)
        except IndexError:
            raise BatchError(f"record {index} ends in the middle of a number") from None
        if at >= end:
            raise BatchError(f"record {index} does not end where its length says")
        timestamp = base_timestamp + time_delta if append_time is None else append_time
        if not -_LONG <= timestamp < _LONG:
            timestamp = (timestamp + _LONG) % (2 * _LONG) - _LONG  # a long in Kafka's code too: it wraps
        yield make((base_offset + offset_delta, timestamp, data[at:end]))
        at = end
    if at != total:
        raise BatchError(f"{total - at} bytes follow the last of {header.count} records")


def number(data: memoryview, at: int) -> tuple[int, int]:
    """The zigzag varint at `at`, and where it ends. Raises BatchError for more than ten bytes, IndexError."""
    value = data[at]
    at += 1
    if value > 0x7F:
        value &= 0x7F
        shift = 7
        while (byte := data[at]) > 0x7F:
            value |= (byte & 0x7F) << shift
            at += 1
            shift += 7
            if shift > 63:
                raise BatchError(f"the number at byte {at} of the records does not end")
        value |= byte << shift
        at += 1
    return value >> 1 ^ -(value & 1), at


class Growing:
    """A batch that is made anew, of at most `limit` bytes before it is compressed; one record it takes always."""

    __slots__ = ("_base", "_highest", "_parts", "codec", "count", "first", "last", "limit", "size")

    def __init__(self, limit: int, codec: int) -> None:
        self.limit = limit
        self.codec = codec
        self._parts: list[bytes | memoryview] = []
        self._base = 0
        self._highest = -1
        self.count = 0
        self.size = HEADER_SIZE
        self.first = self.last = -1
        """Offsets at the source of the first and the last record."""

    def add(self, record: Tail) -> bool:
        """Add one record; False, and nothing is added, if the batch would grow beyond its limit."""
        offset, timestamp, tail = record
        count = self.count
        base = self._base if count else timestamp
        time_delta, offset_delta = VARINTS[timestamp - base], VARINTS[count]
        length = 1 + len(time_delta) + len(offset_delta) + len(tail)
        head = VARINTS[length]
        size = self.size + length + len(head)
        if size > self.limit and count:
            return False
        self._base = base
        if timestamp > self._highest:
            self._highest = timestamp
        self._parts += (head, b"\0", time_delta, offset_delta, tail)
        if not count:
            self.first = offset
        self.last = offset
        self.count, self.size = count + 1, size
        return True

    def finish(self) -> bytearray:
        """The batch, as from a producer without an id; compressed if that makes it smaller."""
        codec = Codec(self.codec)
        records = b"".join(self._parts)
        if codec is not Codec.NONE:
            packed = compress(codec, records)
            if len(packed) < len(records):
                records = packed
            else:
                codec = Codec.NONE
        batch = bytearray(HEADER_SIZE)
        batch += records
        header = BatchHeader(
            0, 0, -1, MAGIC, 0, codec, self.count - 1, self._base, self._highest, -1, -1, -1, self.count
        )
        seal(batch, header)
        return batch
