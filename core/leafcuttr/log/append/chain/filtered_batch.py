"""Taking a batch apart for the validators and filters of a chain, and making the batch of the records that stay."""

from collections.abc import Sequence

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import InvalidRecord, MessageTooLarge
from leafcuttr.log.append.check import unreadable
from leafcuttr.log.append.conversion import decompressed, level_of, target_codec
from leafcuttr.log.append.rules import LONG_MAX
from leafcuttr.wire.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MIN_RECORD,
    NO_TIMESTAMP,
    BatchHeader,
    sealed,
)
from leafcuttr.wire.compression import Codec, compress
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.loose_records import LooseRecords, put_together, take_apart
from leafcuttr.wire.records import DECOMPRESSED_LIMIT
from leafcuttr_sdk.records import Record


def decompressed_records(batch: memoryview | bytearray, header: BatchHeader, limit: int) -> memoryview:
    """The records of a batch. Raises InvalidRecord, UnknownServerError, MessageTooLarge; with a lower `limit` of
    decompressed bytes DecompressionLimitError."""
    try:
        codec = Codec(header.codec)
    except ValueError:
        raise InvalidRecord(f"Unknown compression type id: {header.codec}") from None
    payload = decompressed(codec, memoryview(batch)[HEADER_SIZE:], limit)
    if header.count * MIN_RECORD > len(payload):
        raise InvalidRecord(f"A batch of {len(payload)} bytes of records cannot hold {header.count} of them")
    return payload


def take_records_apart(payload: memoryview, header: BatchHeader) -> tuple[bytes, LooseRecords]:
    """The same records as bytes and one by one. Raises InvalidRecord, UnknownServerError."""
    data = payload.tobytes()
    try:
        return data, take_apart(data, header.count, header.base_timestamp)
    except WireError as error:
        raise unreadable(error, compressed=header.codec != Codec.NONE) from error


def filtered_batch(
    header: BatchHeader,
    config: TopicConfig,
    data: bytes,
    loose: LooseRecords,
    kept: Sequence[int],
    records: list[Record],
) -> bytearray:
    """The batch of the records that stay, compressed as the topic is configured. Raises MessageTooLarge."""
    if not records:
        return _emptied(header, config)
    payload: bytes | bytearray = put_together(data, loose, kept, records, header.base_timestamp)
    if len(payload) > DECOMPRESSED_LIMIT:
        raise MessageTooLarge(f"The records of the batch are {len(payload)} bytes once filtered")
    codec = target_codec(config, Codec(header.codec))
    body = payload if codec is Codec.NONE else compress(codec, payload, level_of(codec, config))
    latest = min(max(record.timestamp or 0 for record in records), LONG_MAX)
    attributes = header.attributes & ~CODEC_MASK | codec
    return sealed(
        header._replace(attributes=attributes, max_timestamp=max(latest, NO_TIMESTAMP), count=len(records)),
        body,
    )


def _emptied(header: BatchHeader, config: TopicConfig) -> bytearray:
    """A batch without records, as the cleaner leaves one; without a timestamp, because no record has one to be found
    by."""
    attributes = header.attributes & ~(CODEC_MASK | LOG_APPEND_TIME)
    if config.log_append_time:
        attributes |= LOG_APPEND_TIME
    empty = header._replace(
        attributes=attributes, base_timestamp=NO_TIMESTAMP, max_timestamp=NO_TIMESTAMP, count=0
    )
    return sealed(empty, b"")
