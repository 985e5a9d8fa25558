"""Answers on their way out: bytes are gathered into one send, records go from the file where the transport can do it.

The order of answers is the order in which they were added. Records that are not in the page cache are read in by a
worker thread first, a slice at a time, so that a cold read delays its own connection only. A transport that cannot send
files is given the bytes, also a slice at a time.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import trio

from leafcuttr.log.log import FileRegion
from leafcuttr.server.transport import Sendable, Transport
from leafcuttr.wire.codec import Region

# One sendfile call at most: what other connections wait for, at about a gigabyte a second.
_SLICE: Final = 1 << 20
# What is copied at once for a transport that cannot send files.
_COPY: Final = 256 * 1024
# Below this a copy is cheaper than a call of its own for the file, and the peer is woken once instead of twice.
_SMALL: Final = 16 * 1024

Chunk = Sendable | FileRegion
T = TypeVar("T")


class Outbox:
    """What one connection has to send."""

    __slots__ = ("_chunks", "_transport", "holds_files", "size", "warming")

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._chunks: list[Chunk] = []
        self.size = 0
        self.holds_files = False  # descriptors, until all is sent
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
            if small is None:
                self.holds_files = True
                self._chunks.append(region)
            else:
                self._chunks.append(small)
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
        self._chunks, self.size, self.holds_files = [], 0, False
        return True

    def _bytes_now(self, chunk: Sendable) -> Sendable | None:
        sent = self._transport.send(chunk)
        return None if sent == len(chunk) else memoryview(chunk)[sent:]

    def _file_now(self, region: FileRegion) -> FileRegion | None:
        """What is left of it. Raises BlockingIOError if that is all of it."""
        if not self._transport.can_send_files:
            return self._copy_now(region)
        if not region.is_cached():
            return region
        return region.after(self._transport.send_file(region))

    def _copy_now(self, region: FileRegion) -> FileRegion | None:
        left: FileRegion | None = region
        while left is not None:
            part = left.first(_COPY)
            data = part.read_cached()
            if data is None:
                return left
            try:
                sent = self._transport.send(data)
            except BlockingIOError:
                return left
            left = left.after(sent)
            if sent < part.length:
                return left
        return None

    async def flush(self) -> None:
        """Send everything. Raises OSError when the peer has gone; what was queued is then lost with it."""
        chunks, self._chunks, self.size, self.holds_files = self._chunks, [], 0, False
        send_region = self._send_file if self._transport.can_send_files else self._send_copy
        for chunk in _joined(chunks):
            if isinstance(chunk, FileRegion):
                await send_region(chunk)
            else:
                await self._send(chunk)

    async def _send(self, data: Sendable) -> None:
        transport = self._transport
        try:
            sent = transport.send(data)
        except BlockingIOError:
            sent = 0
        if sent == len(data):
            return
        rest = memoryview(data)[sent:]
        while rest:
            await transport.wait_writable()
            try:
                rest = rest[transport.send(rest) :]
            except BlockingIOError:
                continue

    async def _send_file(self, region: FileRegion) -> None:
        """Slice by slice: each is brought into the page cache, then sent, then others have their turn."""
        transport, left = self._transport, _nonempty(region)
        while left is not None:
            part: FileRegion | None = left.first(_SLICE)
            assert part is not None
            left = left.after(part.length)
            if not part.is_cached():
                await self._read_in(part.warm)
            while part is not None:
                try:
                    sent = transport.send_file(part)
                except BlockingIOError:
                    await transport.wait_writable()
                    continue
                if not sent:
                    raise _too_short(part)
                part = part.after(sent)
            if left is not None:
                await trio.lowlevel.checkpoint()

    async def _send_copy(self, region: FileRegion) -> None:
        left = _nonempty(region)
        while left is not None:
            part = left.first(_COPY)
            data: Sendable | None = part.read_cached()
            if data is None:
                data = await self._read_in(part.read)
                if len(data) < part.length:
                    raise _too_short(part)
            await self._send(data)
            left = left.after(part.length)
            if left is not None:
                await trio.lowlevel.checkpoint()

    async def _read_in(self, read: Callable[[], T]) -> T:
        """Call it in a worker thread: it reads from the disk."""
        self.warming = True
        try:
            return await trio.to_thread.run_sync(read)
        finally:
            self.warming = False


def _nonempty(region: FileRegion) -> FileRegion | None:
    return region if region.length else None


def _too_short(region: FileRegion) -> ConnectionError:
    return ConnectionError(f"a segment ends at {region.position}, expected {region.position + region.length}")


def _joined(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The same with neighbouring bytes in one piece, so that they leave in one call."""
    if not any(isinstance(chunk, FileRegion) for chunk in chunks):
        return [b"".join(chunks)] if len(chunks) > 1 else list(chunks)  # type: ignore[arg-type]
    out: list[Chunk] = []
    gathered: list[Sendable] = []
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
