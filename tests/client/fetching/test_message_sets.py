"""Message sets of magic 0 and 1, written by kafka-python, as batches of magic 2."""

from __future__ import annotations

import pytest
from kafka.codec import lz4_encode
from kafka.record import legacy_records
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from leafcuttr.client.fetching.message_sets import convert
from leafcuttr.wire.batch import parse
from leafcuttr.wire.compression import CorruptCompression, DecompressionLimitError
from leafcuttr.wire.errors import MalformedRecord, WireError
from leafcuttr.wire.records import decode_records
from leafcuttr_sdk.batches import batches_in

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3}
ROWS = [(b"k0", b"v0"), (None, b"v1"), (b"k2", None), (b"", b""), (b"k4", b"x" * 3000)]


@pytest.fixture(autouse=True)
def frames_of_old_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    """LZ4 frames of magic 0, whose descriptor has a wrong checksum; kafka-python needs xxhash to make the same."""

    def encode(data: bytes) -> bytes:
        frame = bytearray(lz4_encode(data))
        descriptor = 6 + (8 if frame[4] & 0x08 else 0)
        frame[descriptor] ^= 0xFF
        return bytes(frame)

    monkeypatch.setattr(legacy_records, "lz4_encode_old_kafka", encode)


def written(
    magic: int, codec: str = "none", base: int = 0, offsets: tuple[int, ...] = (0, 1, 2, 3, 4)
) -> bytearray:
    builder = LegacyRecordBatchBuilder(magic, CODECS[codec], 1 << 20)
    for offset, (key, value) in zip(offsets, ROWS, strict=True):
        builder.append(base + offset, timestamp=1000 + offset, key=key, value=value)
    return bytearray(builder.build())


def at(data: bytearray, offset: int) -> bytearray:
    """A compressed message moved to the offset of its last record, as a broker does."""
    data[:8] = offset.to_bytes(8, "big")
    return data


def read(data: bytes | bytearray) -> list[tuple[int, int, bytes | None, bytes | None]]:
    found = []
    rest = memoryview(data)
    while rest:
        converted = convert(rest)
        assert converted is not None
        for batch in batches_in(converted.batch):
            batch.check()
            found += [tuple(record[:4]) for record in decode_records(batch.data)]
        rest = rest[converted.size :]
    return found


@pytest.mark.parametrize("magic", [0, 1])
def test_a_run_of_messages_is_one_batch(magic: int) -> None:
    data = written(magic, base=40, offsets=(0, 1, 5, 6, 9))
    converted = convert(memoryview(data))
    assert converted is not None
    assert converted.size == len(data)
    header = parse(converted.batch)
    assert (header.base_offset, header.last_offset, header.count, header.producer_id) == (40, 49, 5, -1)
    times = [1000 + each if magic else -1 for each in (0, 1, 5, 6, 9)]
    assert read(data) == [
        (40 + offset, time, key, value)
        for offset, time, (key, value) in zip((0, 1, 5, 6, 9), times, ROWS, strict=True)
    ]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages(magic: int, codec: str) -> None:
    # In magic 1 the inner offsets are relative to the first, in magic 0 they are absolute.
    first = at(written(magic, codec, base=0 if magic else 70), 74)
    second = at(written(magic, codec, base=0 if magic else 80), 84)
    found = read(first + second)
    assert [offset for offset, *_ in found] == [*range(70, 75), *range(80, 85)]
    assert [row[2:] for row in found] == ROWS * 2
    if magic:
        assert [time for _, time, *_ in found[:5]] == [1000, 1001, 1002, 1003, 1004]
    else:
        assert {time for _, time, *_ in found} == {-1}


def test_compacted_inner_messages_keep_their_offsets() -> None:
    data = at(written(1, "gzip", offsets=(0, 2, 3, 7, 9)), 109)
    assert [offset for offset, *_ in read(data)] == [100, 102, 103, 107, 109]


def test_the_broker_s_time_is_that_of_the_outer_message() -> None:
    from kafka.record.util import calc_crc32

    data = at(written(1, "gzip"), 4)
    data[17] |= 0x08
    data[18:26] = (777).to_bytes(8, "big")
    data[12:16] = calc_crc32(memoryview(data)[16:]).to_bytes(4, "big")
    assert {time for _, time, *_ in read(data)} == {777}


def test_uncompressed_and_compressed_in_turn() -> None:
    data = written(1) + at(written(1, "snappy"), 9) + written(1, base=10)
    found = read(data)
    assert [offset for offset, *_ in found] == list(range(15))


def test_what_is_not_whole_is_left() -> None:
    data = written(1)
    assert convert(memoryview(data)[:20]) is None
    assert convert(memoryview(data)[:10]) is None
    most = convert(memoryview(data)[:-1])
    assert most is not None
    assert parse(most.batch).count == 4
    assert convert(memoryview(at(written(1, "gzip"), 4))[:-1]) is None


def test_every_changed_byte_is_noticed_or_changes_an_offset_only() -> None:
    for data in (written(0), written(1), at(written(1, "lz4"), 4)):
        whole = [row[1:] for row in read(data)]
        for place in range(8, len(data)):
            changed = bytearray(data)
            changed[place] ^= 0x01
            try:
                converted = convert(memoryview(changed))
            except (WireError, CorruptCompression):
                continue
            found = [] if converted is None else [row[1:4] for row in decode_records(converted.batch)]
            assert found == whole[: len(found)]


def test_an_inner_set_that_is_too_large() -> None:
    with pytest.raises(DecompressionLimitError, match="offset 4"):
        convert(memoryview(at(written(1, "gzip"), 4)), limit=100)


def test_offsets_that_go_back() -> None:
    with pytest.raises(MalformedRecord, match="follows"):
        convert(memoryview(written(1, base=7) + written(1)))
