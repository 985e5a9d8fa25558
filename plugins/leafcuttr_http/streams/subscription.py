"""One stream of a topic, from where it begins to its end.

While it is behind it reads by itself, a small piece at a time, and only when its client has taken the last one. Near
the end it joins the topic's hub, reads up to where the hub was then, and goes on with what the hub has handed out
meanwhile. If its client does not take that in time the hub lets go of it, and it is on its own again: nothing is lost,
for all of it is in the log.
"""

from collections.abc import Set
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.streams.events import Chunk
from leafcuttr_http.streams.positions import Positions
from leafcuttr_http.streams.reader import Reader

if TYPE_CHECKING:
    from leafcuttr_http.streams.hub import Hub, Tap
    from leafcuttr_http.streams.streams import Streams
    from leafcuttr_sdk.topics import TopicInfo

_NEAR: Final = 500
"""Records between a stream and the hub that it joins."""
_PIECE_BYTES: Final = 32 * 1024
_PIECE_RECORDS: Final = 1000
"""Of one read by itself: what a slow client costs is this, once or twice."""


_ROUND_S: Final = 1.0


class StoppingError(Exception):
    """The service comes to its end."""


class Subscription:
    """`positions` is behind the last chunk that was handed out; the caller sends each before it requests the next."""

    def __init__(
        self,
        streams: "Streams",
        topic: "TopicInfo",
        format: str,
        keys: frozenset[bytes] | None,
        start: Positions,
    ) -> None:
        self._streams = streams
        self._keys = keys
        self._key = topic.name, topic.topic_id, format
        self._reader = Reader(streams.proxy.schemas, topic.name, topic.topic_id, format, start)
        self._hub: Hub | None = None
        self._tap: Tap | None = None
        self._joined_at: list[int] = []

    @property
    def topic(self) -> str:
        return self._key[0]

    @property
    def positions(self) -> Positions:
        return self._reader.positions

    def close(self) -> None:
        """Let go of the hub."""
        if self._hub is not None and self._tap is not None:
            self._hub.leave(self._tap)
        self._hub = self._tap = None
        self._joined_at = []

    async def next(self, wait_s: float) -> Chunk | None:
        """The next records; None if nothing has within so many seconds at the end of the topic. Raises GoneError,
        StoppingError. Cancelled: nothing has happened."""
        until = trio.current_time() + wait_s
        while True:
            if self._streams.stopping:
                raise StoppingError
            live = self._tap is not None and not self._joined_at
            chunk = await self._live(until) if live else await self._behind()
            if chunk is not None:
                if self._keys is not None:
                    chunk = chunk.matching(self._keys)
                if chunk.events or chunk.notices:
                    return chunk
            if trio.current_time() >= until:
                return None

    async def _behind(self) -> Chunk | None:
        """A piece of what lies before the hub, which is joined as soon as that is near."""
        reader = self._reader
        if self._tap is None:
            info = reader.look()
            reader.grow(len(info.partitions))
            hub = self._streams.known_hub(self._key)
            ends = hub.positions.offsets if hub else [each.high_watermark for each in info.partitions]
            gaps = self._gaps(ends, hub.unreadable if hub else frozenset())
            if hub is not None and min(gaps, default=0) < 0:
                # It has not come to what this stream has read by itself; one round, and it has.
                with trio.move_on_after(_ROUND_S):
                    await hub.moved()
                return None
            if sum(gaps) > _NEAR:
                return await self._piece(ends)
            self._hub = hub or self._streams.new_hub(self._key, info)
            self._tap, self._joined_at = self._hub.join(), list(self._hub.positions.offsets)
        if not any(self._gaps(self._joined_at, self._hub.unreadable if self._hub else frozenset())):
            self._joined_at = []
            await trio.lowlevel.checkpoint()
            return None
        chunk = await self._piece(self._joined_at)
        if chunk.notices:
            self.close()  # what is missing was passed over: join the hub again
        return chunk

    def _gaps(self, ends: list[int], left_out: Set[int]) -> list[int]:
        """How many offsets are missing up to there, in each partition that can be read."""
        unreadable = self._reader.unreadable
        return [
            end - mine
            for number, (mine, end) in enumerate(zip(self._reader.positions.offsets, ends, strict=False))
            if number not in unreadable and number not in left_out
        ]

    async def _piece(self, up_to: list[int] | None) -> Chunk:
        await self._reader.ready()
        async with self._streams.reading:
            return await self._reader.read(max_bytes=_PIECE_BYTES, max_records=_PIECE_RECORDS, up_to=up_to)

    async def _live(self, until: float) -> Chunk | None:
        """What the hub has handed out."""
        assert self._tap is not None
        with trio.move_on_at(until):
            await self._tap.wait()
        chunk = self._tap.take()
        if chunk is not None:
            self._reader.positions = chunk.after
        elif self._tap.cut:
            if self._hub is not None and self._hub.failed:
                raise RuntimeError("the hub has failed")
            self.close()
            self._reader.look()
        return chunk
