"""Pickles made and read without holding the event loop: what is small at once, the rest in a worker thread.

How large a pickle becomes is not known before, so it is begun on the loop, and given up where it is more than
`AT_ONCE`. The pickler of the standard library is one call of C, in which no other thread runs; but it calls `write`,
and the unpickler `read`, for every 64 KiB. These are functions of Python here, and there the loop has its turn.
"""

import pickle
from typing import Any, Final

import trio

AT_ONCE: Final = 64 * 1024
"""Bytes that are pickled or read on the loop: a fraction of a millisecond."""


class _TooLarge(Exception):
    """A pickle has more than the bytes that it may have."""


class _Writer:
    def __init__(self, most: int) -> None:
        self.chunks: list[bytes] = []
        self.size = 0
        self._most = most

    def write(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.size > self._most:
            raise _TooLarge
        self.chunks.append(chunk)


class _Reader:
    def __init__(self, data: bytearray) -> None:
        self._data = memoryview(data)
        self._at = 0

    def read(self, count: int) -> bytes:
        chunk = bytes(self._data[self._at : self._at + count])
        self._at += len(chunk)
        return chunk

    def readinto(self, into: bytearray) -> int:
        chunk = self._data[self._at : self._at + len(into)]
        into[: len(chunk)] = chunk
        self._at += len(chunk)
        return len(chunk)

    def readline(self) -> bytes:  # of the protocols before 2, which are not used here
        raise pickle.UnpicklingError("a pickle of an old protocol")


async def pickled(thing: object, most: int) -> tuple[list[bytes], int] | None:
    """The chunks of its pickle, and their size; None if it has more than `most` bytes. Raises what the pickler does."""
    try:
        return _pickled(thing, min(most, AT_ONCE))
    except _TooLarge:
        if most <= AT_ONCE:
            return None
    try:
        return await trio.to_thread.run_sync(_pickled, thing, most)
    except _TooLarge:
        return None


def _pickled(thing: object, most: int) -> tuple[list[bytes], int]:
    writer = _Writer(most)
    pickle.Pickler(writer, pickle.HIGHEST_PROTOCOL).dump(thing)
    return writer.chunks, writer.size


async def unpickled(data: bytearray) -> Any:
    """What a pickle says. Raises what the unpickler does."""
    if len(data) <= AT_ONCE:
        return pickle.loads(data)
    return await trio.to_thread.run_sync(_unpickled, data)


def _unpickled(data: bytearray) -> Any:
    return pickle.Unpickler(_Reader(data)).load()
