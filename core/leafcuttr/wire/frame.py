"""Framing: the request header, the response head and the length in front of a response.

Sizes of frames are limited by the server; bodies are the business of `codec`.
"""

import struct

from leafcuttr.wire.codec import Region
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.primitives import Buffer, read_unsigned_varint

_LENGTH_AND_CORRELATION = struct.Struct(">ii").pack
_LENGTH = struct.Struct(">i")


def read_client_id(buffer: Buffer, at: int, end: int, *, flexible: bool) -> tuple[bytes | None, int]:
    """The rest of a request header, from the client id on: (its bytes, position of the body).

    What precedes it (key, version, correlation id) is the same in every version, so that a reader can tell which
    version this is: `flexible` is 2, which adds tagged fields. The client id has its old two-byte length in
    version 2 too. Raises MalformedMessage.
    """
    if end - at < 2:
        raise MalformedMessage(f"RequestHeader.client_id at byte {at}: the frame ends")
    size = (buffer[at] << 8) | buffer[at + 1]
    at += 2
    client_id = None
    if size < 0x8000:
        if size > end - at:
            raise MalformedMessage(f"RequestHeader.client_id at byte {at - 2}: the length exceeds the frame")
        client_id = bytes(buffer[at : at + size])
        at += size
    return client_id, _skip_tags(buffer, at, end) if flexible else at


def begin_response(out: bytearray, correlation_id: int, header_version: int) -> int:
    """Append the head of a response (version 0 or 1) with space for its length; returns where it starts."""
    start = len(out)
    out += _LENGTH_AND_CORRELATION(0, correlation_id)
    if header_version:
        out.append(0)
    return start


def end_response(out: bytearray, start: int, regions: list[Region]) -> int:
    """Fill in the length of the response that begins at `start`, file regions in it included; returns that
    length."""
    length = len(out) - start - 4
    for position, records in reversed(regions):
        if position <= start:  # at `start` it is the end of the response before
            break
        length += records.length
    _LENGTH.pack_into(out, start, length)
    return length


def _skip_tags(buffer: Buffer, at: int, end: int) -> int:
    """Skip a section of tagged fields; none is known in a request header."""
    if at < end and buffer[at] == 0:
        return at + 1
    start, view = at, memoryview(buffer)[:end]
    try:
        count, at = read_unsigned_varint(view, at)
        for _ in range(count):
            _, at = read_unsigned_varint(view, at)
            size, at = read_unsigned_varint(view, at)
            at += size
    except MalformedMessage as error:
        raise MalformedMessage(f"RequestHeader at byte {start}: tagged fields: {error}") from None
    if at > end:
        raise MalformedMessage(f"RequestHeader at byte {start}: a tagged field exceeds the frame")
    return at
