"""Compression against other implementations, and against input made to hurt."""

import gzip
import resource
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.wire.compression import (
    Codec,
    CorruptCompression,
    DecompressionLimitError,
    compress,
    decompress,
)
from leafcuttr.wire.errors import WireError
from support.gates_slice import sampled

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
LIMIT = 1 << 20
SAMPLE = b"".join(b"leaf %d cut; " % (number % 97) for number in range(30_000))


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=3000), repeat=st.integers(0, 60))
@settings(max_examples=sampled(60), deadline=None)
def test_what_is_compressed_comes_back(codec: Codec, data: bytes, repeat: int) -> None:
    whole = data * repeat
    assert decompress(codec, compress(codec, whole), limit=200_000) == whole


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_taken(codec: Codec, kind: type) -> None:
    packed = compress(codec, kind(SAMPLE))
    assert len(packed) < len(SAMPLE) // 2
    assert decompress(codec, kind(packed), limit=LIMIT) == SAMPLE
    shifted = memoryview(b"xyz" + packed)[3:]
    assert decompress(codec, shifted, limit=LIMIT) == SAMPLE


@pytest.mark.parametrize(
    ("codec", "low", "high"), [(Codec.GZIP, 1, 9), (Codec.LZ4, 1, 17), (Codec.ZSTD, -5, 22)]
)
def test_levels_trade_size(codec: Codec, low: int, high: int) -> None:
    data = SAMPLE[:100_000]
    small, large = compress(codec, data, high), compress(codec, data, low)
    assert len(small) < len(large)
    assert decompress(codec, small, limit=LIMIT) == decompress(codec, large, limit=LIMIT) == data


def test_minus_one_is_gzips_default() -> None:
    assert compress(Codec.GZIP, SAMPLE, -1) == compress(Codec.GZIP, SAMPLE, 6) == compress(Codec.GZIP, SAMPLE)


def test_gzip_agrees_with_the_standard_library() -> None:
    assert gzip.decompress(compress(Codec.GZIP, SAMPLE)) == SAMPLE
    assert decompress(Codec.GZIP, gzip.compress(SAMPLE), limit=LIMIT) == SAMPLE
    members = gzip.compress(b"one ") + gzip.compress(b"two")
    assert decompress(Codec.GZIP, members, limit=LIMIT) == b"one two"


@pytest.mark.parametrize(
    ("codec", "tool", "variants"),
    [
        (Codec.LZ4, "lz4", [["-1"], ["-9", "-B7"], ["-BD"], ["--no-frame-crc"], ["--content-size"], ["-BX"]]),
        (Codec.ZSTD, "zstd", [["-1"], ["-19"], ["--no-check"], ["--ultra", "-22"], ["--fast=5"]]),
    ],
)
def test_the_codecs_own_tools_agree(codec: Codec, tool: str, variants: list[list[str]]) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"the command {tool} is not installed")
    run = subprocess.run([tool, "-dc"], input=compress(codec, SAMPLE), capture_output=True, check=True)
    assert run.stdout == SAMPLE
    for options in variants:
        packed = subprocess.run([tool, "-qc", *options], input=SAMPLE, capture_output=True, check=True).stdout
        assert decompress(codec, packed, limit=LIMIT) == SAMPLE


def test_lz4_blocks_are_independent_and_of_64_kib() -> None:
    """The Java clients read no other kind: their frame descriptor is FLG bit 5 set, BD 4."""
    packed = compress(Codec.LZ4, SAMPLE)
    assert packed[:4] == bytes.fromhex("04224d18")
    assert packed[4] & 0b0010_0000
    assert packed[4] >> 6 == 1
    assert packed[5] == 0x40


def test_snappy_is_written_as_the_java_clients_frame_it() -> None:
    packed = compress(Codec.SNAPPY, SAMPLE)
    assert packed[:16] == b"\x82SNAPPY\x00" + bytes.fromhex("0000000100000001")


def test_snappy_is_read_bare_framed_and_in_several_streams() -> None:
    import cramjam

    bare = bytes(cramjam.snappy.compress_raw(SAMPLE))
    framed = compress(Codec.SNAPPY, SAMPLE)
    assert decompress(Codec.SNAPPY, bare, limit=LIMIT) == SAMPLE
    assert decompress(Codec.SNAPPY, framed + framed, limit=LIMIT) == SAMPLE * 2
    assert decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b""), limit=0) == b""


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_limit_is_exact(codec: Codec) -> None:
    for size in (1, 1000, 40_000, 300_000):
        packed = compress(codec, SAMPLE[:size])
        assert decompress(codec, packed, limit=size) == SAMPLE[:size]
        with pytest.raises(DecompressionLimitError):
            decompress(codec, packed, limit=size - 1)


def test_uncompressed_bytes_have_the_limit_too() -> None:
    assert decompress(Codec.NONE, b"abc", limit=3) == b"abc"
    with pytest.raises(DecompressionLimitError):
        decompress(Codec.NONE, b"abcd", limit=3)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_costs_no_more_than_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(300 << 20), 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DecompressionLimitError):
        decompress(codec, bomb, limit=4 << 20)
    # KiB on Linux: the limit, a block of the codec, and what the allocator likes to keep.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10


@pytest.mark.parametrize("codec", COMPRESSING)
def test_damage_is_a_wire_error(codec: Codec) -> None:
    packed = compress(codec, SAMPLE[:5000])
    for damaged in (
        packed[:-1],
        packed[: len(packed) // 2],
        packed[:3],
        b"",
        b"no such format, surely",
        packed + b"x",
    ):
        with pytest.raises(CorruptCompression):
            decompress(codec, damaged, limit=LIMIT)


@pytest.mark.parametrize("codec", COMPRESSING)
@given(st.data())
@settings(max_examples=sampled(150), deadline=None)
def test_flipped_bytes_raise_nothing_but_wire_errors(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, SAMPLE[:2000]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        result = decompress(codec, packed, limit=100_000)
    except WireError:
        return
    assert len(result) <= 100_000


def test_snappy_claims_are_not_believed() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"abc"
    with pytest.raises(CorruptCompression, match="claims 4294967295"):
        decompress(Codec.SNAPPY, claim, limit=1 << 40)
    header = b"\x82SNAPPY\x00" + bytes.fromhex("0000000100000001")
    with pytest.raises(CorruptCompression, match="with 3 left"):
        decompress(Codec.SNAPPY, header + b"\x7f\xff\xff\xff" + b"abc", limit=LIMIT)
