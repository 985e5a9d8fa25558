"""Answers on their way out: bytes are gathered into one send, records go from the file by sendfile.

The order of answers is the order in which they were added. Records that are not in the page cache are read in by a
worker thread first, a slice at a time, so that a cold read delays its own connection only.
"""

import os
import socket
from collections.abc import Sequence
from typing import Final

import trio

from leafcuttr.log.files.pool import FileRegion
from leafcuttr.wire.codec import Region

# One sendfile call at most: what other connections wait for, at about a gigabyte a second.
_SLICE: Final = 1 << 20
# Below this a copy is cheaper than a call of its own for the file, and the peer is woken once instead of twice.
_SMALL: Final = 16 * 1024

Bytes = bytes | bytearray | memoryview
Chunk = Bytes | FileRegion


class Outbox:
    """What one connection has to send."""

    __slots__ = ("_chunks", "_socket", "size", "warming")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._chunks: list[Chunk] = []
        self.size = 0
        self.warming = False  # records are read in from the disk

    def add(self, answer: bytearray, regions: Sequence[Region]) -> None:
        """Queue an answer whose `regions` belong at the given positions between its bytes."""
        if not regions:
            self._chunks.append(answer)
            self.size += len(answer)
            return
        view, at = memoryview(answer), 0
        for position, region in regions:
            self._chunks.append(view[at:position])
            small = region.read_cached() if region.length <= _SMALL else None
            self._chunks.append(region if small is None else small)
            self.size += position - at + region.length
            at = position
        if at < len(answer):
            self._chunks.append(view[at:])
            self.size += len(answer) - at

    def flush_now(self) -> bool:
        """Send what can be sent without waiting; whether that was everything. Raises OSError as `flush` does."""
        chunks = self._chunks
        if len(chunks) > 1:
            chunks = _joined(chunks)
        for done, chunk in enumerate(chunks):
            try:
                rest = self._file_now(chunk) if isinstance(chunk, FileRegion) else self._bytes_now(chunk)
            except BlockingIOError:
                rest = chunk
            if rest is not None:
                self._chunks = [rest, *chunks[done + 1 :]]
                self.size = sum(map(_size, self._chunks))
                return False
        self._chunks, self.size = [], 0
        return True

    def _bytes_now(self, chunk: Bytes) -> Bytes | None:
        sent = self._socket.send(chunk)
        return None if sent == len(chunk) else memoryview(chunk)[sent:]

    def _file_now(self, region: FileRegion) -> FileRegion | None:
        if not region.is_cached():
            return region
        sent = os.sendfile(self._socket.fileno(), region.fd, region.position, region.length)
        if sent == region.length:
            return None
        return FileRegion(region.file, region.position + sent, region.length - sent)

    async def flush(self) -> None:
        """Send everything. Raises OSError when the peer has gone; what was queued is then lost with it."""
        chunks, self._chunks, self.size = self._chunks, [], 0
        for chunk in _joined(chunks):
            if isinstance(chunk, FileRegion):
                await self._send_file(chunk)
            else:
                await self._send(chunk)

    async def _send(self, data: bytes | bytearray | memoryview) -> None:
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return
        rest = memoryview(data)[sent:]
        while rest:
            await trio.lowlevel.wait_writable(self._socket)
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                continue

    async def _send_file(self, region: FileRegion) -> None:
        target, source = self._socket.fileno(), region.fd
        position, end = region.position, region.position + region.length
        checked = position
        while position < end:
            if position >= checked:
                checked = min(position + _SLICE, end)
                part = FileRegion(region.file, position, checked - position)
                if not part.is_cached():
                    self.warming = True
                    try:
                        await trio.to_thread.run_sync(part.warm)
                    finally:
                        self.warming = False
            try:
                sent = os.sendfile(target, source, position, checked - position)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
                continue
            if sent == 0:
                raise ConnectionError(f"{region.file.path} ends at {position}, expected {end}")
            position += sent
            if position < end and position >= checked:
                await trio.lowlevel.checkpoint()


def _joined(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The same with neighbouring bytes in one piece, so that they leave in one call."""
    if not any(isinstance(chunk, FileRegion) for chunk in chunks):
        return [b"".join(chunks)] if len(chunks) > 1 else list(chunks)  # type: ignore[arg-type]
    out: list[Chunk] = []
    gathered: list[Bytes] = []
    for chunk in chunks:
        if isinstance(chunk, FileRegion):
            if gathered:
                out.append(gathered[0] if len(gathered) == 1 else b"".join(gathered))
                gathered = []
            out.append(chunk)
        else:
            gathered.append(chunk)
    if gathered:
        out.append(gathered[0] if len(gathered) == 1 else b"".join(gathered))
    return out


def _size(chunk: Chunk) -> int:
    return chunk.length if isinstance(chunk, FileRegion) else len(chunk)
