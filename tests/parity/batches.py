"""Record batches of format 2 for the scenarios, with every header field open to being wrong on purpose.

Layout: Kafka's protocol guide, "Record Batch". Not LeafCuttr's encoder: the two must not share mistakes.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence

import crc32c

NOW = 1_760_000_000_000  # a fixed day of 2025, in milliseconds
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
HEADER = struct.Struct(">qiibIhiqqqhii")
Record = tuple[bytes | None, bytes | None]


def varint(value: int) -> bytes:
    """A signed number as zigzag varint."""
    raw, out = (value << 1) ^ (value >> 63), bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(delta: int, key: bytes | None, value: bytes | None, *, time_delta: int = 0) -> bytes:
    """One record without headers."""
    body = b"\0" + varint(time_delta) + varint(delta) + _sized(key) + _sized(value) + varint(0)
    return varint(len(body)) + body


def _compress(codec: str, data: bytes) -> bytes:
    import cramjam

    if codec == "gzip":
        return gzip.compress(data, mtime=0)
    if codec == "lz4":
        # One independent block, as Kafka demands; the head is that of version 1 with blocks of 64 KiB.
        block = bytes(cramjam.lz4.compress_block(data, store_size=False))
        return b"\x04\x22\x4d\x18\x60\x40\x82" + struct.pack("<I", len(block)) + block + bytes(4)
    if codec == "zstd":
        return bytes(cramjam.zstd.compress(data))
    return data


def batch(
    records: Sequence[Record | bytes | str] = (b"one",),
    *,
    time: int = NOW,
    time_step: int = 0,
    max_time: int | None = None,
    codec: str = "none",
    base_offset: int = 0,
    magic: int = 2,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    count: int | None = None,
    last_delta: int | None = None,
    length_error: int = 0,
    crc_error: int = 0,
    body: bytes | None = None,
) -> bytes:
    """One batch. A record is a value or a (key, value) pair; `time_step` ms lie between two records.

    `count`, `last_delta`, `length_error`, `crc_error`, `magic` and `body` (the records' bytes) make it wrong.
    """
    pairs = [
        one if isinstance(one, tuple) else (None, one.encode() if isinstance(one, str) else one)
        for one in records
    ]
    if body is None:
        body = b"".join(
            record(at, key, value, time_delta=at * time_step) for at, (key, value) in enumerate(pairs)
        )
    body = _compress(codec, body)
    last = len(pairs) - 1 if last_delta is None else last_delta
    newest = time + time_step * max(len(pairs) - 1, 0) if max_time is None else max_time
    covered = struct.pack(
        ">hiqqqhii",
        attributes | CODECS[codec],
        last,
        time,
        newest,
        producer_id,
        producer_epoch,
        sequence,
        len(pairs) if count is None else count,
    )
    crc = (crc32c.crc32c(covered + body) + crc_error) & 0xFFFFFFFF
    size = 4 + 1 + 4 + len(covered) + len(body) + length_error
    return struct.pack(">qiibI", base_offset, size, 0, magic, crc) + covered + body


def headers(data: bytes | None) -> list[dict[str, int]]:
    """What the batches of a fetch answer say of themselves (a last one that is cut off is left out)."""
    names = (
        "base_offset", "length", "leader_epoch", "magic", "crc", "attributes", "last_delta", "base_time",
        "max_time", "producer_id", "producer_epoch", "sequence", "count",
    )  # fmt: skip
    found, at = [], 0
    while data and at + HEADER.size <= len(data):
        one = dict(zip(names, HEADER.unpack_from(data, at), strict=True))
        at += 12 + one["length"]
        if at > len(data):
            break
        found.append(one)
    return found
