"""A batch taken apart for a chain, and the batch that is made of the records that stay."""

import pytest

from leafcuttr.errors import InvalidRecord
from leafcuttr.log.append.chain.filtered_batch import decompressed_records, filtered_batch, take_records_apart
from leafcuttr.wire.batch import ATTRIBUTES_AT, CRC_AT, NO_TIMESTAMP, parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import DECOMPRESSED_LIMIT, Record, decode_records, encode_batch
from leafcuttr_sdk.batches.checksum import crc32c
from support.logs import NOW, config


def numbered(codec: Codec = Codec.NONE) -> bytearray:
    records = [Record(number, NOW + number, b"k", b"%d" % number) for number in range(5)]
    return encode_batch(records, codec=codec, producer_id=7, producer_epoch=1, base_sequence=3)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("kept", [[0, 1, 2, 3, 4], [1, 3], [4], []])
def test_records_that_stay_keep_offset_timestamp_and_codec(codec: Codec, kept: list[int]) -> None:
    batch = numbered(codec)
    header = parse(batch)
    data, loose = take_records_apart(decompressed_records(batch, header, DECOMPRESSED_LIMIT), header)
    out = filtered_batch(header, config(), data, loose, kept, [loose.records[index] for index in kept])
    after = parse(out)
    assert list(decode_records(out)) == [list(decode_records(batch))[index] for index in kept]
    assert (after.last_offset, after.last_sequence) == (header.last_offset, header.last_sequence)
    assert (after.count, after.max_timestamp) == (len(kept), NOW + kept[-1] if kept else NO_TIMESTAMP)
    assert after.codec == (codec if kept else Codec.NONE)
    assert crc32c(memoryview(out)[ATTRIBUTES_AT:]) == int.from_bytes(out[CRC_AT:ATTRIBUTES_AT])


def test_a_batch_is_stored_with_the_codec_of_the_topic() -> None:
    batch = numbered(Codec.GZIP)
    header = parse(batch)
    data, loose = take_records_apart(decompressed_records(batch, header, DECOMPRESSED_LIMIT), header)
    out = filtered_batch(header, config(compression_type="zstd"), data, loose, [2], [loose.records[2]])
    assert parse(out).codec == Codec.ZSTD


def test_a_batch_that_cannot_be_taken_apart_is_refused() -> None:
    batch = numbered()
    header = parse(batch)
    for wrong, reason in (
        (header._replace(attributes=7), "Unknown compression type id: 7"),
        (header._replace(count=10_000), "cannot hold 10000 of them"),
        (header._replace(count=4), "bytes follow the last of 4 records"),
    ):
        with pytest.raises(InvalidRecord, match=reason):
            take_records_apart(decompressed_records(batch, wrong, DECOMPRESSED_LIMIT), wrong)
