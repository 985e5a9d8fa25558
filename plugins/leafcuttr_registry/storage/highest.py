"""The highest id of each context that was ever given. As long as the version that has it is in `_schemas`, that says
so; before it goes for good, the number is written to a topic of our own. (A key type of ours in `_schemas` would end
Confluent's reader.)"""

import json
from typing import TYPE_CHECKING, Final

from leafcuttr_registry.storage.topics import IDS, create
from leafcuttr_registry.subjects.refusals import store_failed
from leafcuttr_registry.subjects.state import State
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

_PARTITION: Final = TopicPartition(IDS, 0)


class HighestIds:
    """`kept` is what the topic says."""

    def __init__(self, broker: "Broker", state: State) -> None:
        self._broker = broker
        self._state = state
        self.kept: Final[dict[str, int]] = {}

    async def read(self) -> None:
        """Raises BrokerError."""
        position = 0
        while True:
            found = await self._broker.fetch({_PARTITION: position})
            for record in found.records:
                self._take(record.key, record.value)
            if found.positions[_PARTITION] == position:
                break
            position = found.positions[_PARTITION]
        for context, id in self.kept.items():
            self._state.raise_highest(context, id)

    async def keep(self, context: str) -> None:
        """Have the highest id of this context written. Raises Refusal 50001."""
        highest = self._state.highest(context)
        if highest <= self.kept.get(context, 0):
            return
        try:
            if self._broker.topics.get(IDS) is None:  # someone has deleted it
                await create(self._broker, IDS, internal=True)
                for name in [*self._state.contexts]:
                    await self._write(name, self._state.highest(name))
            await self._write(context, highest)
        except BrokerError as error:
            raise store_failed(f"Error while writing to {IDS}: {error.message or error.code.name}") from None

    async def _write(self, context: str, highest: int) -> None:
        value = json.dumps({"highest": highest}).encode()
        await self._broker.produce(IDS, value, context.encode(), partition=0)
        self.kept[context] = max(highest, self.kept.get(context, 0))

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        try:
            found = json.loads(value or b"{}")["highest"]
            context = (key or b"").decode()
        except (ValueError, KeyError, TypeError):
            return  # nobody but us writes there
        if isinstance(found, int):
            self.kept[context] = max(found, self.kept.get(context, 0))
