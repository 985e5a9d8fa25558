"""What a client sends over a WebSocket, with messages cut into pieces: each part of a binary message becomes a message
of its own as it comes (RFC 6455, 5.2). Where the bytes of messages are one stream nobody needs a whole message, and no
part of one is kept until the others are there.

Only what is rewritten is checked. All else goes on as it came, to be refused by what reads it.
"""

from typing import Final

_CONTINUATION, _BINARY, _CONTROL = 0, 2, 8
_FINAL, _MASKED = 0x80, 0x80
_LONGEST_CONTROL: Final = 125
_AT_ONCE: Final = 100
"""Frames; there may be one in every six bytes, and each costs what reads it some ten microseconds."""
_ORPHAN: Final = bytes((_FINAL | _CONTINUATION, _MASKED, 0, 0, 0, 0))
"""A continuation of no message, which is refused as a message within another one is."""


class Pieces:
    """`feed` takes the bytes after the handshake, as they come, and returns those in their place. What is kept is the
    head of one frame at most; where there are many frames, also those that come with the next call (`more`)."""

    __slots__ = ("_as_it_is", "_head", "_left", "_mask", "_open", "_passes", "_turned", "more")

    def __init__(self) -> None:
        self.more = False
        """The next call has something to return without new bytes."""
        self._head = b""
        self._mask = b""
        self._left = 0
        """Bytes of the payload of the frame that come still."""
        self._turned = 0
        """Bytes of it that have come: the place in the mask."""
        self._passes = False
        """The frame is a control frame."""
        self._open = False
        """Whether the last frame of a message is still to come."""
        self._as_it_is = False

    def feed(self, data: bytes) -> bytes:
        if self._as_it_is:
            return data
        if self._head:
            data, self._head = self._head + data, b""
        out: list[bytes] = []
        at, end, frames = 0, len(data), 0
        self.more = False
        while at < end:
            if not self._left:
                if frames == _AT_ONCE:
                    self._head, self.more = data[at:], True
                    break
                frames += 1
                start = self._begin(data, at, out)
                if start < 0:
                    self._as_it_is = True
                    out.append(data[at:])
                    break
                if not start:
                    self._head = data[at:]
                    break
                at = start
            part = data[at : at + self._left]
            at += len(part)
            self._left -= len(part)
            if self._passes:
                out.append(part)
            elif part:
                turn = self._turned & 3
                self._turned += len(part)
                out += (_head_of(len(part)), self._mask[turn:], self._mask[:turn], part)
        return b"".join(out)

    def _begin(self, data: bytes, at: int, out: list[bytes]) -> int:
        """The head of a frame: where its payload begins; 0: more is to come; -1: all goes on as it is."""
        if at + 2 > len(data):
            return 0
        first, second = data[at], data[at + 1]
        kind, size = first & 0x0F, second & 0x7F
        start, least = at + 6, 0
        if size > _LONGEST_CONTROL:
            # In as few bytes as it takes.
            more, least = (2, size) if size == _LONGEST_CONTROL + 1 else (8, 1 << 16)
            start += more
            if start > len(data):
                return 0
            size = int.from_bytes(data[at + 2 : start - 4], "big")
        is_control = kind >= _CONTROL
        if (
            first & 0x70
            or not second & _MASKED
            or size >> 63
            or size < least
            or (is_control and (not first & _FINAL or size > _LONGEST_CONTROL))
            or (not is_control and kind != (_CONTINUATION if self._open else _BINARY))
        ):
            if kind and not is_control and self._open:
                out.append(_ORPHAN)
            return -1
        if start > len(data):
            return 0
        self._passes = is_control
        self._left, self._turned, self._mask = size, 0, data[start - 4 : start]
        if is_control:
            out.append(data[at:start])
        else:
            self._open = not first & _FINAL
        return start


def _head_of(size: int) -> bytes:
    """Of a whole message, without the mask."""
    first = bytes((_FINAL | _BINARY,))
    if size <= _LONGEST_CONTROL:
        return first + bytes((_MASKED | size,))
    if size < 1 << 16:
        return first + bytes((_MASKED | 126,)) + size.to_bytes(2, "big")
    return first + bytes((_MASKED | 127,)) + size.to_bytes(8, "big")
