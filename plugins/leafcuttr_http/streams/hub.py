"""What reads a topic at its end, once for all streams that are there: every record is read and encoded once, then
handed to each stream as it is.

A hub begins with its first stream and ends with its last. It hands out what it finds in rounds, and rests between them,
the longer the more streams it has, so that many records share one send; and never less than the round took, so that a
busy topic leaves the loop to others. Streams that do not take what they are given are let go: see `subscription`.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.streams.events import Chunk
from leafcuttr_http.streams.positions import Positions, tag_of
from leafcuttr_http.streams.reader import GoneError, Reader

if TYPE_CHECKING:
    from leafcuttr_http.schemas.shared import Schemas
    from leafcuttr_sdk.topics import TopicInfo

_ROUND_BYTES: Final = 64 * 1024
_ROUND_RECORDS: Final = 2000
_REST_S: Final = 0.00025
"""For each stream."""
_LONGEST_REST_S: Final = 0.1
_WAIT_S: Final = 60.0
_AT_ONCE: Final = 20
"""Streams that are woken before others have their turn: a millisecond or two of sending."""


class Tap:
    """Where one stream takes what the hub has for it, up to `limit` characters. `cut` when there is no more to come."""

    __slots__ = ("_chunks", "_limit", "_size", "_woken", "cut")

    def __init__(self, limit: int) -> None:
        self._chunks: deque[Chunk] = deque()
        self._limit = limit
        self._size = 0
        self._woken = trio.Event()
        self.cut = False

    def put(self, chunk: Chunk) -> bool:
        """False if the stream has not taken what it had before."""
        if self._size and self._size + chunk.size > self._limit:
            return False
        self._chunks.append(chunk)
        self._size += chunk.size
        self._woken.set()
        return True

    def end(self) -> None:
        """End it; what it holds can still be taken."""
        self.cut = True
        self._woken.set()

    def drop(self) -> None:
        """Drop what it holds too: it is in the log, and is not kept for a client that is slow."""
        self._chunks.clear()
        self._size = 0
        self.end()

    def take(self) -> Chunk | None:
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self._size -= chunk.size
        return chunk

    async def wait(self) -> None:
        """Until there is something to take, or `cut`."""
        if not self._chunks and not self.cut:
            self._woken = trio.Event()
            await self._woken.wait()


class Hub:
    """One topic in one format. `positions` is where it is."""

    def __init__(self, schemas: "Schemas", topic: "TopicInfo", format: str, limit: int) -> None:
        self.topic_id = topic.topic_id
        self.positions = Positions(tag_of(topic.topic_id), (each.high_watermark for each in topic.partitions))
        self._reader = Reader(schemas, topic.name, topic.topic_id, format, self.positions)
        self._limit = limit
        self._taps: set[Tap] = set()
        self._reading = trio.CancelScope()
        self._moved = trio.Event()
        self.ended = self.failed = False

    @property
    def unreadable(self) -> set[int]:
        """Partitions that it leaves out."""
        return self._reader.unreadable

    def join(self) -> Tap:
        """Everything from `positions` on."""
        tap = Tap(self._limit)
        self._taps.add(tap)
        return tap

    def leave(self, tap: Tap) -> None:
        self._taps.discard(tap)
        if not self._taps:
            self._reading.cancel()

    def look_again(self) -> None:
        """The topic has changed."""
        self._reading.cancel()

    def stop(self) -> None:
        """Let all streams go."""
        for tap in self._taps:
            tap.end()
        self._taps.clear()
        self._reading.cancel()

    async def moved(self) -> None:
        """Wait for the end of a round."""
        await self._moved.wait()

    async def run(self) -> None:
        """Until no stream listens, or the topic is deleted."""
        try:
            while self._taps:
                chunk = None
                with trio.CancelScope() as self._reading:
                    await self._reader.ready()
                    chunk = await self._reader.read(
                        max_bytes=_ROUND_BYTES, max_records=_ROUND_RECORDS, wait_s=_WAIT_S
                    )
                if chunk is None or not (
                    chunk.events or chunk.notices or chunk.after.offsets != self.positions.offsets
                ):
                    continue
                self.positions = chunk.after
                await self._hand_out(chunk)
                self._moved.set()
                self._moved = trio.Event()
                took = trio.current_time() - self._reader.found_at
                await trio.sleep(min(max(len(self._taps) * _REST_S, took), _LONGEST_REST_S))
        except GoneError:
            pass
        except Exception:
            self.failed = True
            raise
        finally:
            self.ended = True
            self._moved.set()
            for tap in self._taps:
                tap.end()

    async def _hand_out(self, chunk: Chunk) -> None:
        """To the streams that were there before; one that joins meanwhile begins behind it."""
        for number, tap in enumerate(tuple(self._taps), 1):
            if not tap.put(chunk):
                self._taps.discard(tap)
                tap.drop()
            if not number % _AT_ONCE:
                await trio.lowlevel.checkpoint()
