"""Reading batches as they are stored: their headers without decoding, their records as views, and the same batch once
more for another partition.

What `Broker.read_batches` gives are whole batches, one behind the other. Nothing is copied before a record, or a new
batch, is made.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from leafcuttr_sdk.batches.checksum import crc32c
from leafcuttr_sdk.batches.errors import BatchError
from leafcuttr_sdk.batches.header import (
    ATTRIBUTES_AT,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    seal,
)
from leafcuttr_sdk.records import AbortedRange, Headers

DECOMPRESSED_LIMIT: Final = 100 * 1024 * 1024
"""Bytes that the records of one batch may take once decompressed, unless the caller says otherwise."""

Buffer = bytes | bytearray | memoryview

_LONG: Final = 1 << 63
_LAST: Final = _LONG - 1


class BatchRecord(NamedTuple):
    """A record as views of its batch, which must stay as it is meanwhile. `offset` is absolute, `timestamp` in ms since
    1970 (-1: none). `encoded_headers` are the headers as they stand in it, for `BatchBuilder.add`."""

    offset: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None
    encoded_headers: memoryview

    def headers(self) -> Headers:
        """The headers. Names that are not UTF-8 are kept by surrogate escapes. Raises BatchError."""
        data = self.encoded_headers
        if len(data) == 1 and not data[0]:
            return ()
        found: list[tuple[str, bytes | None]] = []
        count = at = -1
        try:
            count, at = _number(data, 0)
            while len(found) < count and at < len(data):
                name, at = _bytes(data, at)
                value, at = _bytes(data, at)
                if name is None:
                    at = -1
                    break
                found.append((str(name, "utf-8", "surrogateescape"), None if value is None else bytes(value)))
        except IndexError:
            at = -1
        if at != len(data) or len(found) != count:
            raise BatchError(
                f"the headers of the record at offset {self.offset} are not as many bytes as they claim"
            )
        return tuple(found)


class Batch(NamedTuple):
    """One stored batch: its header, and all of its bytes."""

    header: BatchHeader
    data: memoryview

    def check(self) -> None:
        """Raises BatchError unless the CRC is that of the bytes."""
        if crc32c(self.data[ATTRIBUTES_AT:]) != self.header.crc:
            raise BatchError(f"the batch at offset {self.header.base_offset} has a wrong CRC")

    def is_aborted(self, aborted: Iterable[AbortedRange]) -> bool:
        """Whether it is of one of these transactions: those of `RawRead.aborted`, for a batch of that read."""
        header = self.header
        return header.is_transactional and any(
            one.producer_id == header.producer_id
            and one.first_offset <= header.base_offset <= one.last_offset
            for one in aborted
        )

    def records(self, *, limit: int = DECOMPRESSED_LIMIT) -> Iterator[BatchRecord]:
        """The records, one at a time; the first step decompresses, at most `limit` bytes. Those of a control batch
        are markers of transactions. Raises BatchError at the record that is broken, or at the end where the header
        claims another number of them."""
        header = self.header
        data = self.data[HEADER_SIZE:]
        if header.codec:
            from leafcuttr_sdk.batches.compression import Codec, decompress

            try:
                codec = Codec(header.codec)
            except ValueError:
                raise BatchError(f"compression codec {header.codec} does not exist") from None
            data = decompress(codec, data, limit=limit)
        return _records(header, data)

    def as_new(self) -> bytearray:
        """The same records as a batch that `Broker.append` takes: base offset 0, no leader epoch, no producer, not
        transactional. Their bytes stay as they are, compressed or not, unless the batch has lost records to
        compaction or its records have the time at which they were appended: then they are written anew, uncompressed,
        with the times and headers that readers see. Raises BatchError for a control batch, one without records, and
        damage that is met."""
        return self.for_producer(-1, -1, -1)

    def for_producer(self, producer_id: int, epoch: int, base_sequence: int) -> bytearray:
        """As `as_new`, but from an idempotent producer, which numbers its records (KIP-98): a repetition is
        recognised."""
        header = self.header
        if header.is_control or not header.count:
            what = "a control batch" if header.is_control else "a batch without records"
            raise BatchError(f"{what} at offset {header.base_offset} is for no other partition")
        whole = not header.is_log_append_time and header.count == header.last_offset_delta + 1
        new = bytearray(self.data) if whole else self._written_anew()
        header = BatchHeader._make(HEADER.unpack_from(new))
        seal(
            new,
            header._replace(
                base_offset=0,
                leader_epoch=-1,
                attributes=header.attributes & ~(TRANSACTIONAL | DELETE_HORIZON | LOG_APPEND_TIME),
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=base_sequence,
            ),
        )
        return new

    def _written_anew(self) -> bytearray:
        from leafcuttr_sdk.batches.builder import BatchBuilder, EncodedHeaders, encode_key

        builder = BatchBuilder()
        for record in self.records():
            value, key = record.value, record.key
            builder.add(
                None if value is None else bytes(value),
                record.timestamp,
                encode_key(None if key is None else bytes(key)),
                EncodedHeaders(bytes(record.encoded_headers)),
            )
        return builder.finish()


def batches_in(data: Buffer) -> Iterator[Batch]:
    """The batches that lie one behind the other. Their CRCs are not checked (`Batch.check`). Raises BatchError for what
    is no whole batch of magic 2."""
    view, at, end = memoryview(data), 0, len(data)
    unpack = HEADER.unpack_from
    # `_make` costs more than all the rest.
    new: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    while at < end:
        left = end - at
        if left < HEADER_SIZE:
            raise BatchError(f"{left} bytes at {at} are too few for a batch header of {HEADER_SIZE}")
        header = new(BatchHeader, unpack(view, at))
        base_offset, length, _, magic, _, _, last_offset_delta, *_, count = header
        size = length + LOG_OVERHEAD
        if magic != MAGIC:
            raise BatchError(f"the batch at byte {at} has magic {magic}, not {MAGIC}")
        if not HEADER_SIZE <= size <= left:
            raise BatchError(f"the batch at byte {at} claims {size} bytes, {left} are left")
        if count < 0 or last_offset_delta < 0 or base_offset + last_offset_delta >= _LAST:
            raise BatchError(f"the batch at byte {at} claims offsets that cannot be")
        yield new(Batch, (header, view[at : at + size]))
        at += size


def _records(header: BatchHeader, data: memoryview) -> Iterator[BatchRecord]:
    base_offset, base_timestamp, count = header.base_offset, header.base_timestamp, header.count
    append_time = header.max_timestamp if header.is_log_append_time else None
    make = BatchRecord._make
    at, total = 0, len(data)
    for index in range(count):
        try:
            length, at = _number(data, at)
            end = at + length
            if length < 0 or end > total:
                raise BatchError(f"record {index} claims {length} bytes with {total - at} left")
            time_delta, at = _number(data, at + 1)  # behind the attributes, which are unused
            offset_delta, at = _number(data, at)
            key, at = _bytes(data, at)
            value, at = _bytes(data, at)
        except IndexError:
            raise BatchError(f"record {index} ends in the middle of a number") from None
        if at >= end:
            raise BatchError(f"record {index} does not end where its length says")
        if append_time is None:
            timestamp = base_timestamp + time_delta
            if not -_LONG <= timestamp < _LONG:
                timestamp = (timestamp + _LONG) % (2 * _LONG) - _LONG  # a long in Kafka's code too: it wraps
        else:
            timestamp = append_time
        yield make((base_offset + offset_delta, timestamp, key, value, data[at:end]))
        at = end
    if at != total:
        raise BatchError(f"{total - at} bytes follow the last of {count} records")


def _bytes(data: memoryview, at: int) -> tuple[memoryview | None, int]:
    """The bytes behind their length at `at`, None for null, and where they end: perhaps behind the data. Raises as
    `_number`."""
    size, at = _number(data, at)
    if size < 0:
        return None, at
    return data[at : at + size], at + size


def _number(data: memoryview, at: int) -> tuple[int, int]:
    """The zigzag varint at `at`, and where it ends. Raises BatchError for more than ten bytes, IndexError."""
    number = data[at]
    at += 1
    if number > 0x7F:  # most numbers have one byte
        number &= 0x7F
        shift = 7
        while (byte := data[at]) > 0x7F:
            number |= (byte & 0x7F) << shift
            at += 1
            shift += 7
            if shift > 63:
                raise BatchError(f"the number at byte {at} of the records does not end")
        number |= byte << shift
        at += 1
    return number >> 1 ^ -(number & 1), at
