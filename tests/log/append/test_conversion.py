"""What a topic's settings do to a batch, and what they refuse."""

from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import TopicConfig, topic_config
from leafcuttr.errors import (
    BrokerError,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    RecordError,
    UnknownServerError,
)
from leafcuttr.log.append.conversion import MOST_RECORD_ERRORS, convert, needs_conversion, needs_decoding
from leafcuttr.wire.batch import ATTRIBUTES_AT, CRC_AT, MAX_TIMESTAMP_AT, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk import TopicPartition
from support.gates_slice import sampled

NOW = 1_700_000_000_000
HOUR = 3_600_000
PARTITION = TopicPartition("orders", 3)
NAMES = {
    Codec.NONE: "uncompressed",
    Codec.GZIP: "gzip",
    Codec.SNAPPY: "snappy",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstd",
}


def config(**overrides: str) -> TopicConfig:
    return topic_config(Settings({}), {name.replace("_", "."): value for name, value in overrides.items()})


def batch_of(
    *timestamps: int, key: bytes | None = b"k", codec: Codec = Codec.NONE, **fields: int
) -> bytearray:
    records = [Record(at, stamp, key, b"leaf " * 50, (("h", b"x"),)) for at, stamp in enumerate(timestamps)]
    return encode_batch(records, codec=codec, **fields)  # type: ignore[arg-type]


def converted(batch: bytearray, topic: TopicConfig) -> memoryview | bytearray:
    out = convert(memoryview(batch), topic, NOW, PARTITION)
    assert crc32c(memoryview(out)[ATTRIBUTES_AT:]) == parse(out).crc
    assert parse(out).size == len(out)
    return out


def refusal(batch: bytearray, topic: TopicConfig) -> BrokerError:
    with pytest.raises(BrokerError) as caught:
        convert(memoryview(batch), topic, NOW, PARTITION)
    return caught.value


def test_the_default_settings_need_nothing() -> None:
    topic = config()
    assert not needs_conversion(topic)
    assert not needs_decoding(topic)
    batch = batch_of(NOW, codec=Codec.ZSTD)
    before = bytes(batch)
    assert bytes(converted(batch, topic)) == before


@pytest.mark.parametrize(
    ("overrides", "converts", "decodes"),
    [
        ({"compression_type": "gzip"}, True, False),
        ({"compression_type": "uncompressed"}, True, False),
        ({"message_timestamp_type": "LogAppendTime"}, True, False),
        ({"message_timestamp_before_max_ms": "1000"}, True, True),
        ({"message_timestamp_before_max_ms": "1000", "message_timestamp_type": "LogAppendTime"}, True, False),
        ({"message_timestamp_after_max_ms": "1000"}, False, False),
        ({"cleanup_policy": "compact"}, True, True),
        ({"cleanup_policy": "compact,delete"}, True, True),
    ],
)
def test_who_needs_it(overrides: dict[str, str], converts: bool, decodes: bool) -> None:
    topic = config(**overrides)
    assert (needs_conversion(topic), needs_decoding(topic)) == (converts, decodes)


@pytest.mark.parametrize("target", Codec)
@pytest.mark.parametrize("source", Codec)
def test_recompression(source: Codec, target: Codec) -> None:
    fields = {"producer_id": 7, "producer_epoch": 2, "base_sequence": 11, "partition_leader_epoch": 5}
    batch = batch_of(NOW, NOW + 5, NOW + 2, codec=source, **fields)
    records = list(decode_records(batch))
    before = parse(batch)
    out = converted(batch, config(compression_type=NAMES[target]))
    after = parse(out)
    assert after.codec == target
    assert list(decode_records(out)) == records
    unchanged = before._replace(length=after.length, crc=after.crc, attributes=after.attributes)
    assert after == unchanged
    if source is target:
        assert after == before


def test_the_level_is_used() -> None:
    data = b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("test_*.py")))
    for name, low, high in (("gzip", "1", "9"), ("lz4", "1", "12"), ("zstd", "1", "19")):
        sizes = []
        for level in (low, high):
            batch = encode_batch([Record(0, NOW, b"k", data)])
            topic = config(compression_type=name, **{f"compression_{name}_level": level})
            sizes.append(len(converted(batch, topic)))
        assert sizes[1] < sizes[0], name


def test_log_append_time_is_set_in_place_without_decoding() -> None:
    batch = batch_of(5, 6)
    batch[70] ^= 0xFF  # the records are rubbish, and nobody looks
    out = converted(batch, config(message_timestamp_type="LogAppendTime"))
    assert isinstance(out, memoryview)
    assert out.obj is batch
    header = parse(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == NOW
    assert header.base_timestamp == 5


def test_a_view_that_cannot_be_written_is_copied() -> None:
    batch = bytes(batch_of(5))
    out = convert(memoryview(batch), config(message_timestamp_type="LogAppendTime"), NOW)
    assert parse(out).max_timestamp == NOW
    assert parse(batch).max_timestamp == 5


def test_log_append_time_and_codec_together() -> None:
    batch = batch_of(5, 6, codec=Codec.GZIP)
    out = converted(batch, config(message_timestamp_type="LogAppendTime", compression_type="zstd"))
    assert [record.timestamp for record in decode_records(out)] == [NOW, NOW]
    assert parse(out).codec == Codec.ZSTD


@pytest.mark.parametrize("codec", Codec)
def test_timestamps_out_of_range_are_named_one_by_one(codec: Codec) -> None:
    topic = config(message_timestamp_before_max_ms=str(HOUR), message_timestamp_after_max_ms="60000")
    assert converted(batch_of(NOW, NOW - HOUR, NOW + 60_000, -1, codec=codec), topic)
    error = refusal(batch_of(NOW, NOW - HOUR - 1, NOW, NOW + 60_001, codec=codec), topic)
    assert isinstance(error, InvalidTimestamp)
    assert error.message == "One or more records have been rejected due to invalid timestamp"
    allowed = f"The timestamp should be within [{NOW - HOUR}, {NOW + 60_000}]"
    assert list(error.record_errors) == [
        RecordError(1, f"Timestamp {NOW - HOUR - 1} of message with offset 1 is out of range. {allowed}"),
        RecordError(3, f"Timestamp {NOW + 60_001} of message with offset 3 is out of range. {allowed}"),
    ]


def test_the_header_alone_clears_a_batch_of_the_future_limit() -> None:
    topic = config()
    assert isinstance(refusal(batch_of(NOW + HOUR + 1), topic), InvalidTimestamp)
    assert converted(batch_of(NOW + HOUR), topic)
    assert converted(batch_of(NOW + 10 * HOUR), config(message_timestamp_type="LogAppendTime"))


def test_a_max_timestamp_that_is_not_true_is_put_right_when_records_are_read() -> None:
    batch = batch_of(NOW, NOW - 5)
    batch[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = (NOW + 2 * HOUR).to_bytes(8, "big")
    batch[CRC_AT : CRC_AT + 4] = crc32c(memoryview(batch)[ATTRIBUTES_AT:]).to_bytes(4, "big")
    assert parse(converted(batch, config())).max_timestamp == NOW


def test_a_compacted_topic_takes_no_record_without_key() -> None:
    topic = config(cleanup_policy="compact")
    batch = batch_of(NOW)
    before = bytes(batch)
    assert bytes(converted(batch, topic)) == before
    error = refusal(batch_of(NOW, NOW, key=None), topic)
    assert isinstance(error, InvalidRecord)
    reason = "Compacted topic cannot accept message without key in topic partition orders-3"
    assert list(error.record_errors) == [RecordError(0, reason), RecordError(1, reason)]
    assert error.message is not None
    assert error.message.startswith("One or more records have been rejected due to 2 record errors in total")


def test_a_bad_timestamp_decides_before_a_missing_key() -> None:
    topic = config(cleanup_policy="compact")
    records = [Record(0, NOW, None, b"v"), Record(1, NOW + 2 * HOUR, b"k", b"v")]
    error = refusal(encode_batch(records), topic)
    assert isinstance(error, InvalidTimestamp)
    assert [one.batch_index for one in error.record_errors] == [0, 1]


def test_a_client_may_not_set_log_append_time() -> None:
    batch = encode_batch([Record(0, NOW, b"k", b"v")], log_append_time=NOW)
    error = refusal(batch, config(message_timestamp_type="LogAppendTime"))
    assert isinstance(error, InvalidTimestamp)
    assert "Producer should not set timestamp type to LogAppendTime" in str(error.record_errors[0].message)
    # To a topic with the producers' own times Kafka lets it pass, and takes the bit off.
    assert not parse(converted(bytearray(batch), config())).is_log_append_time


def test_the_list_of_bad_records_is_bounded() -> None:
    many = [Record(at, NOW, None, b"") for at in range(3 * MOST_RECORD_ERRORS)]
    error = refusal(encode_batch(many), config(cleanup_policy="compact"))
    assert len(error.record_errors) == MOST_RECORD_ERRORS
    assert f"due to {3 * MOST_RECORD_ERRORS} record errors" in str(error)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_bomb_is_refused(codec: Codec) -> None:
    bomb = encode_batch([Record(0, NOW, b"k", bytes(101 << 20))], codec=codec, level=1)
    assert isinstance(refusal(bomb, config(compression_type="uncompressed")), MessageTooLarge)


@given(st.sampled_from(Codec), st.sampled_from(Codec), st.data())
@settings(max_examples=sampled(150), deadline=None)
def test_damage_inside_is_an_answer(source: Codec, target: Codec, data: st.DataObject) -> None:
    """The CRC is right, because a client made it over its rubbish."""
    batch = batch_of(NOW, NOW + 1, NOW + 2, codec=source)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    batch[CRC_AT : CRC_AT + 4] = crc32c(memoryview(batch)[ATTRIBUTES_AT:]).to_bytes(4, "big")
    topic = config(compression_type=NAMES[target], cleanup_policy="compact")
    try:
        converted(batch, topic)
    except BrokerError as error:
        assert isinstance(error, InvalidRecord | InvalidTimestamp | MessageTooLarge | UnknownServerError)
