"""What the settings of a topic do to a batch on its way into the log, beyond offsets and leader epoch.

Most topics need none of this, and of their batches only the lengths of records are checked. `needs_conversion` says
which do; `convert` then checks the records as far as the settings want it, and rewrites the batch if it must. What does
not belong here: checks that hold for every topic (`log.append`), the formats themselves (`leafcuttr.wire`).

- `message.timestamp.type=LogAppendTime`: attribute bit and max timestamp are set in place.
- `compression.type` other than `producer`: the records are compressed anew unless they have that codec.
- `message.timestamp.before.max.ms`, `.after.max.ms`: each record, where the header cannot clear the batch.
- `cleanup.policy` with `compact`: each record must have a key.
- `lc.records.check=full`: each record must be whole, and the header gets the largest timestamp of its records. Each of
  the above settings that concerns records has them checked in full. `ends` is checked by `log.append`; here only in
  batches that are decompressed anyway.

Behaviour and messages as those of Kafka's `LogValidator`: every offending record is reported with its index
in the batch (KIP-467), and a bad timestamp decides the error code before a missing key does.
"""

from struct import Struct
from typing import Final

from leafcuttr.config.topic import TopicConfig
from leafcuttr.errors import (
    BrokerError,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordError,
    UnknownServerError,
)
from leafcuttr.log.append.check import check_lengths, unreadable
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CRC_AT,
    HEADER_SIZE,
    LENGTH_AT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_AT,
    MIN_RECORD,
    NO_TIMESTAMP,
    BatchHeader,
    parse,
)
from leafcuttr.wire.compression import Codec, DecompressionLimitError, compress, decompress
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.primitives import as_long
from leafcuttr.wire.record_summary import record_shapes, summarize_records
from leafcuttr.wire.records import DECOMPRESSED_LIMIT
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.batches.checksum import crc32c

LONG_MAX: Final = 2**63 - 1
MOST_RECORD_ERRORS: Final = 1000
"""Records reported one by one; an answer of a hundred thousand messages is of no use."""

_LENGTH: Final = Struct(">i")
_ATTRIBUTES: Final = Struct(">h")
_TIMESTAMP: Final = Struct(">q")
_CRC: Final = Struct(">I")
_CODECS: Final = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


def needs_conversion(config: TopicConfig) -> bool:
    """Whether every batch of a client to such a topic has to go through `convert`.

    If not, `convert` is still the one to answer a batch whose header has the LogAppendTime bit set, or a max
    timestamp more than `message.timestamp.after.max.ms` ahead of now.
    """
    return changes_batches(config) or config.lc_records_check == "full"


def changes_batches(config: TopicConfig) -> bool:
    """Whether batches have to go through `convert` that this broker has encoded itself, whose records are whole."""
    return config.log_append_time or config.compression_type != "producer" or _checks_records(config)


def codecs_kept(config: TopicConfig) -> frozenset[int]:
    """The codecs of batches that such a topic stores as they are, where this broker has encoded them itself and all of
    their records have keys."""
    if config.log_append_time or _checks_timestamps(config):
        return frozenset()
    return frozenset(codec for codec in Codec if target_codec(config, codec) is codec)


def needs_decoding(config: TopicConfig) -> bool:
    """Whether the records of every batch of a client have to be read one by one."""
    return config.lc_records_check == "full" or _checks_records(config)


def _checks_records(config: TopicConfig) -> bool:
    return config.compact or _checks_timestamps(config)


def _checks_timestamps(config: TopicConfig) -> bool:
    return not config.log_append_time and config.message_timestamp_before_max_ms < LONG_MAX


def convert(
    batch: memoryview,
    config: TopicConfig,
    now_ms: int,
    topic_partition: TopicPartition | None = None,
    *,
    limit: int = DECOMPRESSED_LIMIT,
) -> memoryview | bytearray:
    """The batch as the topic's settings want it, its CRC right again.

    `batch` is one whole batch whose header and CRC have been checked. What changes header fields alone is
    done in place, in a copy if the view is read-only; recompression makes a new batch, whose size the caller
    checks once more. Offsets, producer fields, sequence and leader epoch stay.

    Raises InvalidRecord or InvalidTimestamp, with `record_errors` where single records are at fault;
    InvalidRecord for records that cannot be read; MessageTooLarge where they go over DECOMPRESSED_LIMIT once
    decompressed. With a lower `limit` (bytes) going over that one is a DecompressionLimitError, and the batch is as
    it was: a caller that has little time can leave it to one that has more.
    """
    header = parse(batch)
    attributes, max_timestamp = header.attributes, header.max_timestamp
    try:
        source = Codec(header.codec)
    except ValueError:
        raise InvalidRecord(f"Unknown compression type id: {header.codec}") from None
    target = target_codec(config, source)
    new_attributes, new_max = attributes & ~CODEC_MASK | target, max_timestamp
    payload = batch[HEADER_SIZE:]
    if config.log_append_time:
        new_attributes |= LOG_APPEND_TIME
        new_max = now_ms
    else:
        new_attributes &= ~LOG_APPEND_TIME
    checked = _must_check_records(config, attributes, max_timestamp, now_ms)
    if checked or target is not source:
        payload = decompressed(source, payload, limit)
    if checked:
        highest = _check(payload, header, config, now_ms, topic_partition)
        if not config.log_append_time:
            new_max = highest
    elif source is not Codec.NONE and target is not source and config.lc_records_check != "off":
        check_lengths(payload, header.count, compressed=True)
    if target is not source:
        body = compress(target, payload, level_of(target, config))
        out = bytearray(batch[:HEADER_SIZE]) + body
        _LENGTH.pack_into(out, LENGTH_AT, len(out) - LOG_OVERHEAD)
        _seal(out, new_attributes, new_max)
        return out
    if (new_attributes, new_max) == (attributes, max_timestamp):
        return batch
    whole = bytearray(batch) if batch.readonly else batch
    _seal(whole, new_attributes, new_max)
    return whole


def _must_check_records(config: TopicConfig, attributes: int, max_timestamp: int, now_ms: int) -> bool:
    if needs_decoding(config) or attributes & LOG_APPEND_TIME:
        return True
    return not config.log_append_time and max_timestamp - now_ms > config.message_timestamp_after_max_ms


def decompressed(codec: Codec, payload: memoryview, limit: int) -> memoryview:
    """The records behind a header. Raises UnknownServerError where they cannot be decompressed, MessageTooLarge; with a
    limit of less than DECOMPRESSED_LIMIT bytes DecompressionLimitError."""
    try:
        return decompress(codec, payload, limit=limit)
    except DecompressionLimitError as error:
        if limit < DECOMPRESSED_LIMIT:
            raise
        raise MessageTooLarge(f"The records of the batch are too large: {error}") from error
    except WireError as error:
        # As in Kafka. The CRC was right, so sending it again would not help: not CORRUPT_MESSAGE, which clients retry.
        raise UnknownServerError(f"The records of the batch cannot be decompressed: {error}") from error


def _check(
    payload: memoryview,
    header: BatchHeader,
    config: TopicConfig,
    now_ms: int,
    topic_partition: TopicPartition | None,
) -> int:
    """Check every record and return the largest timestamp."""
    base_timestamp = header.base_timestamp
    stamp = header.max_timestamp if header.is_log_append_time else None
    keys, create_time = config.compact, not config.log_append_time
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = min(now_ms + config.message_timestamp_after_max_ms, LONG_MAX)
    if header.count * MIN_RECORD > len(payload):
        raise InvalidRecord(f"A batch of {len(payload)} bytes of records cannot hold {header.count} of them")
    try:
        summary = summarize_records(payload, header.count, header.last_offset_delta)
    except WireError as error:
        raise unreadable(error, compressed=header.codec != Codec.NONE) from error
    if stamp is None and not (keys and summary.keyless):
        if not create_time:
            return NO_TIMESTAMP
        if earliest <= base_timestamp + summary.lowest_delta:
            highest = base_timestamp + summary.highest_delta
            if highest <= latest:
                return max(highest, NO_TIMESTAMP)
    # Something is wrong, or has no timestamp: which record it is.
    where = (
        "" if topic_partition is None else f" in topic partition {topic_partition[0]}-{topic_partition[1]}"
    )
    errors: list[RecordError] = []
    bad_timestamp = False
    highest = NO_TIMESTAMP
    failed = 0
    try:
        for index, (timestamp_delta, offset_delta, has_key) in enumerate(
            record_shapes(payload, header.count)
        ):
            timestamp = as_long(base_timestamp + timestamp_delta) if stamp is None else stamp
            if keys and not has_key:
                reason = f"Compacted topic cannot accept message without key{where}"
            elif create_time and timestamp != NO_TIMESTAMP:
                if earliest <= timestamp <= latest:
                    highest = max(highest, timestamp)
                    continue
                bad_timestamp = True
                reason = (
                    f"Timestamp {timestamp} of message with offset {offset_delta} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]"
                )
            elif stamp is not None:
                bad_timestamp = True
                reason = (
                    f"Invalid timestamp type in message with offset {offset_delta}. "
                    "Producer should not set timestamp type to LogAppendTime."
                )
            else:
                continue
            failed += 1
            if len(errors) < MOST_RECORD_ERRORS:
                errors.append(RecordError(index, reason))
    except WireError as error:
        raise unreadable(error, compressed=header.codec != Codec.NONE) from error
    if failed:
        raise _rejection(errors, failed, bad_timestamp)
    return highest


def _rejection(errors: list[RecordError], failed: int, bad_timestamp: bool) -> BrokerError:
    if bad_timestamp:
        return InvalidTimestamp("One or more records have been rejected due to invalid timestamp", errors)
    return InvalidRecord(rejection(errors, failed), errors)


def rejection(errors: list[RecordError], failed: int) -> str:
    """Kafka's sentence about a batch that is refused because of `failed` of its records."""
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3])
    return (
        f"One or more records have been rejected due to {failed} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


def target_codec(config: TopicConfig, source: Codec) -> Codec:
    """How a batch that its producer has compressed like `source` is stored."""
    return _CODECS.get(config.compression_type, source)


def level_of(codec: Codec, config: TopicConfig) -> int | None:
    """The level that the topic's settings want; None: the codec's own."""
    match codec:
        case Codec.GZIP:
            return config.compression_gzip_level
        case Codec.LZ4:
            return config.compression_lz4_level
        case Codec.ZSTD:
            return config.compression_zstd_level
        case _:
            return None


def _seal(batch: memoryview | bytearray, attributes: int, max_timestamp: int) -> None:
    """Set the two fields that a conversion changes, and the CRC over everything behind it."""
    _ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, attributes)
    _TIMESTAMP.pack_into(batch, MAX_TIMESTAMP_AT, max_timestamp)
    _CRC.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
