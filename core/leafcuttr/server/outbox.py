"""Answers on their way out: bytes are gathered into one send, records go from the file by sendfile.

The order of answers is the order in which they were added. Records that are not in the page cache are read in by a
worker thread first, a slice at a time, so that a cold read delays its own connection only.
"""

import os
import socket
from collections.abc import Sequence
from typing import Final

import trio

from leafcuttr.log.files import FileRegion
from leafcuttr.wire.codec import Region

# One sendfile call at most: what other connections wait for, at about a gigabyte a second.
_SLICE: Final = 1 << 20

Chunk = bytes | bytearray | memoryview | FileRegion


class Outbox:
    """What one connection has to send."""

    __slots__ = ("_chunks", "_socket", "size")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._chunks: list[Chunk] = []
        self.size = 0

    def add(self, answer: bytearray, regions: Sequence[Region]) -> None:
        """Queue an answer whose `regions` belong at the given positions between its bytes."""
        if not regions:
            self._chunks.append(answer)
            self.size += len(answer)
            return
        view, at = memoryview(answer), 0
        for position, region in regions:
            self._chunks.append(view[at:position])
            self._chunks.append(region)
            self.size += position - at + region.length
            at = position
        if at < len(answer):
            self._chunks.append(view[at:])
            self.size += len(answer) - at

    async def flush(self) -> None:
        """Send everything. Raises OSError when the peer has gone; what was queued is then lost with it."""
        chunks, self._chunks, self.size = self._chunks, [], 0
        if len(chunks) == 1 and not isinstance(chunks[0], FileRegion):
            await self._send(chunks[0])
            return
        gathered: list[bytes | bytearray | memoryview] = []
        for chunk in chunks:
            if isinstance(chunk, FileRegion):
                if gathered:
                    await self._send(b"".join(gathered))
                    gathered.clear()
                await self._send_file(chunk)
            else:
                gathered.append(chunk)
        if gathered:
            await self._send(b"".join(gathered))

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
                    await trio.to_thread.run_sync(part.warm)
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
