"""Reads `_schemas`: all of it at the start, then what anyone appends. Each record becomes an event of the state; what
cannot be read is passed over, counted, and told in one line."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_registry.storage import keys, values
from leafcuttr_registry.storage.topics import SCHEMAS
from leafcuttr_registry.subjects.events import Event, Key, OtherKey
from leafcuttr_registry.subjects.refusals import store_failed
from leafcuttr_registry.subjects.state import State
from leafcuttr_sdk.errors import UnknownTopicOrPartition
from leafcuttr_sdk.trouble import Complaints
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.records import StoredRecord

PARTITION: Final = TopicPartition(SCHEMAS, 0)
_AT_ONCE: Final = 4 * 1024 * 1024
_REMEMBERED: Final = 1000
"""Changes of which it is known what they touched."""
_TURN: Final = 200
"""Records that are applied before others get their turn."""


class TopicGoneError(Exception):
    """The topic was deleted while it was followed."""


class Reader:
    """`aliens` has, for a key that someone wrote in other bytes than ours, those bytes: compaction does not know that
    they are the same key."""

    def __init__(self, broker: "Broker", state: State) -> None:
        self._broker = broker
        self._state = state
        self._complain = Complaints(broker.logger)
        self._arrived = trio.Event()
        self._topic_id: bytes | None = None
        self._gone = False
        self.position = 0
        """The next offset."""
        self.garbage = 0
        """Records that could not be read."""
        self.aliens: Final[dict[Key, set[bytes]]] = {}
        self._touched: deque[tuple[int, str | None]] = deque(maxlen=_REMEMBERED)
        self.after: Callable[[], None] = lambda: None
        """Called when records have been applied."""

    async def catch_up(self) -> None:
        """Read what is there. Raises BrokerError."""
        found = self._broker.topics.get(SCHEMAS)
        self._topic_id = None if found is None else found.topic_id
        while self.position < self._end():
            await self._read(wait_s=0.0)

    async def follow(self) -> None:
        """Read on, until cancelled. Raises TopicGoneError, BrokerError."""
        try:
            while True:
                await self._broker.wait_for_records({PARTITION: self.position})
                found = self._broker.topics.get(SCHEMAS)
                if found is None or found.topic_id != self._topic_id:
                    raise TopicGoneError(SCHEMAS)
                await self._read(wait_s=0.0)
        except UnknownTopicOrPartition:
            raise TopicGoneError(SCHEMAS) from None
        finally:
            self._gone = True
            self._arrived.set()

    def touched_since(self, revision: int) -> set[str | None] | None:
        """The subjects that were changed after this revision of the state, None for all; None if that is not known any
        more."""
        if self._state.revision - revision > len(self._touched):
            return None
        return {subject for number, subject in self._touched if number > revision}

    async def reach(self, offset: int) -> None:
        """Wait until the record at this offset has been applied. Raises Refusal 50001 where nobody reads any more."""
        while self.position <= offset:
            if self._gone:
                raise store_failed(f"Topic {SCHEMAS} is not read any more; try again.")
            await self._arrived.wait()

    async def reach_end(self) -> None:
        """Wait until all that is there now has been applied."""
        end = self._end()
        if self.position < end:
            await self.reach(end - 1)

    def _end(self) -> int:
        found = self._broker.topics.get(SCHEMAS)
        return 0 if found is None else found.partitions[0].high_watermark

    async def _read(self, *, wait_s: float) -> None:
        found = await self._broker.fetch({PARTITION: self.position}, max_bytes=_AT_ONCE, wait_s=wait_s)
        for number, record in enumerate(found.records):
            if number % _TURN == _TURN - 1:
                await trio.lowlevel.checkpoint()
            self._apply(record)
        self.position = max(self.position, found.positions[PARTITION])
        self.after()
        arrived, self._arrived = self._arrived, trio.Event()
        arrived.set()

    def _apply(self, record: "StoredRecord") -> None:
        if record.key is None:
            self._pass_over(record, "it has no key")
            return
        try:
            key = keys.decode(record.key)
            value = values.decode(key, record.value)
        except ValueError as error:
            self._pass_over(record, str(error))
            return
        if not isinstance(key, OtherKey) and record.key != keys.encode(key):
            self._note(key, record)
        self._state.apply(Event(key, value), record.timestamp)
        self._touched.append((self._state.revision, getattr(key, "subject", "")))

    def _note(self, key: Key, record: "StoredRecord") -> None:
        assert record.key is not None
        if record.value:
            self.aliens.setdefault(key, set()).add(record.key)
        else:
            self.aliens.get(key, set()).discard(record.key)

    def _pass_over(self, record: "StoredRecord", why: str) -> None:
        self.garbage += 1
        self._complain(
            "garbage",
            "passed over what is no record of a schema registry in %s, at offset %d and perhaps others: %s",
            SCHEMAS,
            record.offset,
            why[:200],
        )
