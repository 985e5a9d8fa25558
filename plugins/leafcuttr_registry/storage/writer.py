"""Appends events to `_schemas`, and returns when the state has them: what could not be written has changed nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leafcuttr_registry.storage import keys, values
from leafcuttr_registry.storage.reader import Reader
from leafcuttr_registry.storage.topics import SCHEMAS
from leafcuttr_registry.subjects.events import Event
from leafcuttr_registry.subjects.refusals import store_failed, too_large
from leafcuttr_sdk.errors import BrokerError, MessageTooLarge
from leafcuttr_sdk.records import Record

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker


class Writer:
    """One task at a time writes: what it decided on must not have changed."""

    def __init__(self, broker: "Broker", reader: Reader) -> None:
        self._broker = broker
        self._reader = reader

    async def write(self, events: Sequence[Event]) -> None:
        """Raises Refusal: 42209 for a schema that the topic does not take, 50001 for all else. Cancelled: they may have
        been written."""
        records = [record for event in events for record in self._records(event)]
        try:
            answers = await self._broker.produce_batch(SCHEMAS, records, partitions=[0] * len(records))
        except BrokerError as error:
            raise store_failed(_told(error)) from None
        for answer in answers:
            if isinstance(answer, MessageTooLarge):
                raise too_large()
            if isinstance(answer, BrokerError):
                raise store_failed(_told(answer))
        await self._reader.reach(
            max(answer.offset for answer in answers if not isinstance(answer, BrokerError))
        )

    def _records(self, event: Event) -> list[Record]:
        """A key that stands in the topic in other bytes too is taken away in those: it would come back once ours is
        compacted away."""
        own = Record(values.encode(event), keys.encode(event.key))
        return [*(Record(None, alien) for alien in sorted(self._reader.aliens.get(event.key, ()))), own]


def _told(error: BrokerError) -> str:
    return f"Error while writing to {SCHEMAS}: {error.message or error.code.name}"
