"""The four compression codecs of record batches, in the framing that Kafka's clients write and read.

It knows nothing of records or batches: the input is the part of a batch behind its header.

- gzip: RFC 1952, one member or several.
- snappy: the Java clients write snappy-java's stream (a 16-byte header, then blocks, each behind its length
  as a big-endian int32); librdkafka writes one bare block. Both are read; the stream is written.
- lz4: the LZ4 frame format with independent 64 KiB blocks, the only kind that the Java clients read.
- zstd: RFC 8878, one frame or several.

No length is relied on: `decompress` writes into a buffer that ends at the caller's limit, so a bomb is stopped at
the limit whatever its header claims. Where the limit is large the buffer is an anonymous mapping, whose pages
cost memory only once they are written.

`cramjam` takes about 35 ms to import, so it is imported where it is used.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Any, Final

from leafcuttr_sdk.batches.errors import BatchError
from leafcuttr_sdk.trouble import import_late

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The compression codec, as the low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CorruptCompressionError(BatchError):
    """The compressed bytes are not what their codec says they are."""


class DecompressionLimitError(BatchError):
    """The decompressed bytes would go over the caller's limit."""


DEFAULT_LEVEL: Final = {Codec.GZIP: 6, Codec.LZ4: 9, Codec.ZSTD: 3}
"""What is used for level None (and Kafka's -1 for gzip); snappy has no levels."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK: Final = 32 * 1024
_LENGTH: Final = Struct(">I")
# A snappy copy element of three bytes yields at most 64: no valid block grows more than that.
_SNAPPY_MAX_RATIO: Final = 22
# Below this a zeroed bytearray is cheaper than a mapping and its page faults.
_SMALL: Final = 256 * 1024


def _cramjam() -> Any:
    import_late("cramjam")
    import cramjam

    return cramjam


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress with `codec` at `level`, in the codec's own range; None is the codec's default."""
    if codec is Codec.NONE:
        return bytes(data)
    cramjam = _cramjam()
    match codec:
        case Codec.GZIP:
            # cramjam takes no -1, which in Kafka's settings is zlib's own default.
            chosen = DEFAULT_LEVEL[codec] if level is None or level < 0 else level
            return bytes(cramjam.gzip.compress(data, level=chosen))
        case Codec.SNAPPY:
            return _snappy_stream(cramjam, data)
        case Codec.LZ4:
            chosen = DEFAULT_LEVEL[codec] if level is None else level
            frame = cramjam.lz4.Compressor(level=chosen, content_checksum=False, block_linked=False)
            frame.compress(bytes(data))
            return bytes(frame.finish())
        case Codec.ZSTD:
            chosen = DEFAULT_LEVEL[codec] if level is None else level
            return bytes(cramjam.zstd.compress(data, level=chosen))


def decompress(codec: Codec, data: Buffer, *, limit: int) -> memoryview:
    """The decompressed bytes, at most `limit` of them.

    Raises CorruptCompressionError (broken, truncated or followed by rubbish) and DecompressionLimitError. The
    result is a view on a buffer that has no other reference, except for Codec.NONE, where it is one on `data`.
    """
    view = memoryview(data)
    if codec is Codec.NONE:
        if len(view) > limit:
            raise DecompressionLimitError(f"{len(view)} bytes, at most {limit} are allowed")
        return view
    cramjam = _cramjam()
    if codec is Codec.SNAPPY:
        return _snappy_decompress(cramjam, view, limit)
    decompress_into = _FORMATS[codec](cramjam).decompress_into
    guess = min(limit, max(4 * len(view), 16 * 1024))
    if guess <= _SMALL:
        first = bytearray(guess)
        try:
            return memoryview(first)[: decompress_into(view, first)]
        except cramjam.DecompressionError as error:
            if not _is_full(error):
                raise CorruptCompressionError(f"{codec.name.lower()}: {error}") from error
            if guess == limit:
                raise _too_large(codec, limit) from error
    from mmap import mmap

    rest = mmap(-1, max(limit, 1))
    try:
        return memoryview(rest)[: decompress_into(view, rest)]
    except cramjam.DecompressionError as error:
        del rest  # the traceback keeps this frame, and it may be kept for a while
        if _is_full(error):
            raise _too_large(codec, limit) from error
        raise CorruptCompressionError(f"{codec.name.lower()}: {error}") from error


_FORMATS: Final[dict[Codec, Callable[[Any], Any]]] = {
    Codec.GZIP: lambda cramjam: cramjam.gzip,
    Codec.LZ4: lambda cramjam: cramjam.lz4,
    Codec.ZSTD: lambda cramjam: cramjam.zstd,
}


def _is_full(error: Exception) -> bool:
    # The words of Rust's std::io::ErrorKind::WriteZero, which is how all three report a full output.
    return "whole buffer" in str(error)


def _too_large(codec: Codec, limit: int) -> DecompressionLimitError:
    return DecompressionLimitError(f"{codec.name.lower()}: decompresses to more than {limit} bytes")


def _snappy_stream(cramjam: Any, data: Buffer) -> bytes:
    view = memoryview(data)
    out = bytearray(_XERIAL_HEADER)
    for at in range(0, len(view), _XERIAL_BLOCK):
        block = cramjam.snappy.compress_raw(view[at : at + _XERIAL_BLOCK])
        out += _LENGTH.pack(len(block))
        out += memoryview(block)
    return bytes(out)


def _snappy_decompress(cramjam: Any, view: memoryview, limit: int) -> memoryview:
    snappy = cramjam.snappy
    total = 0
    try:
        for block in _snappy_blocks(view):
            length = snappy.decompress_raw_len(block)
            if length > _SNAPPY_MAX_RATIO * len(block):
                raise CorruptCompressionError(f"snappy: a block of {len(block)} bytes claims {length}")
            total += length
            if total > limit:
                raise _too_large(Codec.SNAPPY, limit)
        out = memoryview(bytearray(total))
        at = 0
        for block in _snappy_blocks(view):
            at += snappy.decompress_raw_into(block, out[at:])
    except cramjam.DecompressionError as error:
        raise CorruptCompressionError(f"snappy: {error}") from error
    return out


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """The bare blocks: of a snappy-java stream, of several on end, or the one that stands alone."""
    if view[:8].tobytes() != _XERIAL_MAGIC:
        yield view
        return
    at, end = 0, len(view)
    while at < end:
        if view[at : at + 8].tobytes() == _XERIAL_MAGIC:
            if end - at < len(_XERIAL_HEADER):
                raise CorruptCompressionError("snappy: the stream ends in its header")
            at += len(_XERIAL_HEADER)
            continue
        if end - at < 4:
            raise CorruptCompressionError("snappy: the stream ends in a block length")
        (length,) = _LENGTH.unpack_from(view, at)
        at += 4
        if length > end - at:
            raise CorruptCompressionError(f"snappy: a block of {length} bytes with {end - at} left")
        yield view[at : at + length]
        at += length
