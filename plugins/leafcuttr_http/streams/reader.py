"""Reads a topic on from somewhere, in pieces that are ready to be sent; says what is missing, and goes on behind it."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.schemas.types import TYPES
from leafcuttr_http.streams.events import FORMATS, Chunk, Event, Notice, decode, encoded
from leafcuttr_http.streams.positions import Positions
from leafcuttr_sdk.errors import BrokerError, OffsetOutOfRange
from leafcuttr_sdk.schemas import SchemaProviderError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leafcuttr_http.schemas.shared import Schemas
    from leafcuttr_sdk.records import Fetched, StoredRecord
    from leafcuttr_sdk.topics import TopicInfo

_SLICE: Final = 50
"""Records that are encoded before others have their turn: half a millisecond."""
_MOST_DECODED: Final = 1024 * 1024
"""Characters of one piece that is decoded by schemas: a few bytes can be much JSON."""
_ASK_REGISTRY: Final = 50
"""How often a stream asks whether the registry can answer; then it goes on without it."""
_ASK_AGAIN_S: Final = 0.2


class GoneError(Exception):
    """The topic is not there any more, or another one has its name."""


class Reader:
    """Reads on from `positions`, which are never changed in place. A partition that cannot be read is left out for
    good, and named once."""

    def __init__(
        self, schemas: "Schemas", topic: str, topic_id: bytes, format: str, positions: Positions
    ) -> None:
        self.positions = positions
        self.found_at = 0.0
        """When the last read had its records, by trio's clock."""
        self._broker = schemas.broker
        self._schemas = schemas
        self._topic = topic
        self._topic_id = topic_id
        self._format = format
        self._encode = FORMATS.get(format)
        self.unreadable: set[int] = set()
        self._damaged: list[Notice] = []

    async def read(
        self,
        *,
        max_bytes: int,
        max_records: int | None = None,
        up_to: "Sequence[int] | None" = None,
        wait_s: float = 0.0,
    ) -> Chunk:
        """The next piece, behind which `positions` then is; perhaps without events. Nothing from `up_to` on. Raises
        GoneError. Cancelled: `positions` is where it was."""
        info = self.look()
        positions = self.positions.copy()
        notices = self._missing(info, positions)
        at = {
            TopicPartition(self._topic, number): offset
            for number, offset in enumerate(positions.offsets)
            if number not in self.unreadable
            and (up_to is None or (number < len(up_to) and offset < up_to[number]))
        }
        events: list[Event] = []
        if not notices and at:
            found = await self._fetch(at, max_bytes, max_records, wait_s)
            self.found_at = trio.current_time()
            if found is not None:
                records = found.records
                if up_to is not None:
                    records = [each for each in records if each.offset < up_to[each.partition]]
                events = await self._events(records, positions)
                if len(events) == len(records):
                    for (_, number), offset in found.positions.items():
                        positions.move(number, offset if up_to is None else min(offset, up_to[number]))
        notices += self._damaged
        self._damaged.clear()
        self.positions = positions
        return Chunk(events, positions, tuple(notices))

    async def ready(self) -> None:
        """Wait for a schema registry that cannot answer at present, for a while: before a read, not while one has its
        turn."""
        provider = None if self._encode is not None else self._broker.schemas
        for _ in range(_ASK_REGISTRY):
            if provider is None or provider.waits_for is None:
                return
            await trio.sleep(_ASK_AGAIN_S)

    def look(self) -> "TopicInfo":
        """The topic as it is. Raises GoneError."""
        info = self._broker.topics.get(self._topic)
        if info is None or info.topic_id != self._topic_id:
            raise GoneError
        return info

    def grow(self, count: int) -> None:
        """The topic has so many partitions now."""
        if count > len(self.positions.offsets):
            self.positions = self.positions.copy()
            self.positions.add_partitions(count)

    def _missing(self, info: "TopicInfo", positions: Positions) -> list[Notice]:
        """What of `positions` is not there; moves them to where it goes on."""
        positions.add_partitions(len(info.partitions))
        notices: list[Notice] = []
        for number, start, end, trouble in info.partitions:
            at = positions.offsets[number]
            if number in self.unreadable:
                continue
            if trouble is not None:
                notices.append(self._give_up(number, trouble))
            elif not start <= at <= end:
                to = start if at < start else end
                notices.append(notice("gap", partition=number, from_offset=at, to_offset=to))
                positions.move(number, to)
        return notices

    def _give_up(self, number: int, why: str) -> Notice:
        self.unreadable.add(number)
        return notice("unreadable", partition=number, message=why)

    async def _fetch(
        self, at: Mapping[TopicPartition, int], max_bytes: int, max_records: int | None, wait_s: float
    ) -> "Fetched | None":
        """None: try again, something has changed."""
        try:
            return await self._broker.fetch(at, max_bytes=max_bytes, max_records=max_records, wait_s=wait_s)
        except OffsetOutOfRange:
            return None
        except BrokerError:
            self.look()
        # One of them is damaged, and the others are not to suffer from it.
        for partition, offset in at.items():
            try:
                await self._broker.fetch({partition: offset}, max_bytes=1, max_records=1)
            except OffsetOutOfRange:
                pass
            except BrokerError as error:
                self.look()
                self._damaged.append(self._give_up(partition.partition, error.message or error.code.name))
        return None

    async def _events(self, records: "Sequence[StoredRecord]", positions: Positions) -> list[Event]:
        """Those of the records, or of the first ones alone where all would be much."""
        encode = self._encode
        if encode is None:
            return await self._decoded(records, positions) if records else []
        if len(records) <= _SLICE:
            return encoded(records, positions, encode)
        events: list[Event] = []
        for start in range(0, len(records), _SLICE):
            events += encoded(records[start : start + _SLICE], positions, encode)
            await trio.lowlevel.checkpoint()
        return events

    async def _decoded(self, records: "Sequence[StoredRecord]", positions: Positions) -> list[Event]:
        """By schemas, in a worker thread."""
        from leafcuttr_http.schemas.decoding import Decoder, learn

        schemas, provider = self._schemas, self._broker.schemas
        assert provider is not None  # `subscribe` has checked
        await self.ready()  # it may have gone while the read waited for records
        events: list[Event] = []
        lacking: str | None = None
        try:
            await learn(schemas, provider, records)
        except SchemaProviderError as error:
            lacking = str(error)
        decoder = Decoder(schemas, provider, TYPES[self._format], lacking=lacking)
        await schemas.work(decode(records, positions, decoder, _MOST_DECODED, events))
        return events


def notice(name: str, **members: object) -> Notice:
    return Notice(name, json.dumps(members, ensure_ascii=False, separators=(",", ":")))
