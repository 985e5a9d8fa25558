"""The compression codecs of `leafcuttr_sdk.batches.compression`, with the errors of this package: a peer's bytes are at
fault."""

from leafcuttr.wire.errors import MalformedMessage, WireError
from leafcuttr.wire.primitives import Buffer
from leafcuttr_sdk.batches import compression
from leafcuttr_sdk.batches.compression import DEFAULT_LEVEL, Codec, compress

__all__ = [
    "DEFAULT_LEVEL",
    "Codec",
    "CorruptCompression",
    "DecompressionLimitError",
    "compress",
    "decompress",
]


class CorruptCompression(MalformedMessage):
    """The compressed bytes are not what their codec says they are."""


class DecompressionLimitError(WireError):
    """The decompressed bytes would go over the caller's limit."""


def decompress(codec: Codec, data: Buffer, *, limit: int) -> memoryview:
    """As `leafcuttr_sdk.batches.compression.decompress`. Raises CorruptCompression, DecompressionLimitError."""
    try:
        return compression.decompress(codec, data, limit=limit)
    except compression.CorruptCompressionError as error:
        raise CorruptCompression(str(error)) from error
    except compression.DecompressionLimitError as error:
        raise DecompressionLimitError(str(error)) from error
