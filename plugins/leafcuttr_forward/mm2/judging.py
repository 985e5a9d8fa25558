"""`lc.filters` of a flow: record filters of the broker, made for each topic when its first records come.

The engine wants a judge at once, and filters are made by a worker thread: until they are made their judge is not ready,
and the engine comes again.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.filters import DeadLetter, FilterFailure, NotReady

if TYPE_CHECKING:
    import trio

    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.filters import FilterChain, Verdict
    from leafcuttr_sdk.records import Record


class BrokerJudges:
    """The filters of one flow, by topic; `nursery` makes them."""

    def __init__(self, broker: "Broker", names: Sequence[str], nursery: "trio.Nursery") -> None:
        self._broker: Final = broker
        self._names: Final = tuple(names)
        self._nursery: Final = nursery
        self._chains: dict[str, FilterChain | str | None] = {}
        """None while it is made; a text where it cannot be."""

    def judge(self, topic: str) -> "Callable[[Sequence[Record]], Sequence[Verdict]]":
        """For `run_flow`."""
        if topic not in self._chains:
            self._chains[topic] = None
            self._nursery.start_soon(self._make, topic)

        def verdicts(records: "Sequence[Record]") -> "Sequence[Verdict]":
            return self._verdicts(topic, records)

        return verdicts

    def close(self) -> None:
        for chain in self._chains.values():
            if chain is not None and not isinstance(chain, str):
                chain.close()
        self._chains.clear()

    async def _make(self, topic: str) -> None:
        try:
            self._chains[topic] = await self._broker.record_filters(self._names, topic)
        except PluginError as error:
            self._chains[topic] = str(error)

    def _verdicts(self, topic: str, records: "Sequence[Record]") -> "Sequence[Verdict]":
        chain = self._chains.get(topic)
        if chain is None:
            return [NotReady(f"the filters of {topic}, which are being made")]
        if isinstance(chain, str):
            return [NotReady(chain)]
        outcomes = chain.filter(records)
        return [
            DeadLetter(f"the filter {each.filter} fails: {each.reason}", None, record, each.filter)
            if isinstance(each, FilterFailure)
            else each
            for record, each in zip(records, outcomes, strict=False)
        ]
