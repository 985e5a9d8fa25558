"""Record filters in their order, outside of a topic's own chain: `leafcuttr_sdk.FilterChain`.

Each filter gets all records that the ones before have left, as in the chain of a topic (`leafcuttr.log.append.chain`).
What differs: nothing is stored or counted here, a filter that fails is an outcome of its record and not of a batch, and
records may be routed. Filters are made in `filters_outside`.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from leafcuttr.log.append.chain.readiness import fault_of_not_ready
from leafcuttr.log.append.chain.verdicts import carried, fault_of, letter_fault
from leafcuttr.runtime.plugin_parts import Part, PartError, call, log_traceback
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import DROP, DeadLetter, FilterFailure, NotReady, Outcome, Routed
from leafcuttr_sdk.records import Record


class OutsideFilter(NamedTuple):
    """One filter of a chain. `forget` is None for one that remembers nothing."""

    name: str
    call: Callable[[Any], Any]
    part: Part
    forget: Callable[[], None] | None = None


class OutsideChain:
    """See `leafcuttr_sdk.FilterChain`. `ends` are called when it is closed."""

    def __init__(self, filters: Sequence[OutsideFilter], ends: Iterable[Callable[[], None]] = ()) -> None:
        self._filters: Final = tuple(filters)
        self._ends = list(ends)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self._filters)

    def filter(self, records: Sequence[Record]) -> list[Outcome]:
        outcomes: list[Any] = list(records)
        # The records that are still in the chain: where they stand in `outcomes`, and as they are now.
        places: Sequence[int] = range(len(records))
        left: list[Record] = list(records)
        topics: dict[int, str] = {}
        for one in self._filters:
            verdicts = _verdicts(one, left)
            if not all(map(operator.is_, verdicts, left)):
                places, left = _carry_out(one, outcomes, places, left, verdicts, topics)
        for place, topic in topics.items():
            if place < len(outcomes) and isinstance(outcomes[place], Record):
                outcomes[place] = Routed(outcomes[place], topic)
        if len(outcomes) < len(records):
            self.forget()
        return outcomes

    def forget(self) -> None:
        for one in self._filters:
            if one.forget is not None:
                forget(one.part, one.forget)

    def close(self) -> None:
        ends, self._ends = self._ends, []
        for end in ends:
            end()


def forget(part: Part, function: Callable[[], None]) -> None:
    """Have a filter forget what it has judged. One that fails at it is not the worse for it: it judges on."""
    try:
        call(part, function)
    except PartError as failed:
        log_traceback(failed)


def _verdicts(one: OutsideFilter, records: list[Record]) -> list[Any]:
    """What a filter returns for each record; a FilterFailure where it raises."""
    rest = iter(records)
    verdicts: list[Any] = []
    while len(verdicts) < len(records):
        try:
            call(one.part, verdicts.extend, map(one.call, rest))
        except PartError as failed:
            log_traceback(failed)
            verdicts.append(FilterFailure(one.name, failed.words if failed.is_said else failed.why))
        else:
            if len(verdicts) < len(records):
                # It ends the map without an error.
                verdicts.append(FilterFailure(one.name, "StopIteration"))
    return verdicts


def _carry_out(
    one: OutsideFilter,
    outcomes: list[Any],
    places: Sequence[int],
    records: list[Record],
    verdicts: list[Any],
    topics: dict[int, str],
) -> tuple[list[int], list[Record]]:
    """Put down what has become of each record; those that go on to the next filter, with their places. The first that
    is not ready to be judged ends it all: `outcomes` is cut behind it."""
    stay: list[int] = []
    left: list[Record] = []
    for place, record, verdict in zip(places, records, verdicts, strict=True):
        outcome = verdict if verdict is record else _outcome(one, record, verdict)
        if isinstance(outcome, Routed):
            topics[place] = outcome.topic
            outcome = outcome.record
        outcomes[place] = outcome
        if isinstance(outcome, Record):
            stay.append(place)
            left.append(outcome)
        elif isinstance(outcome, NotReady):
            del outcomes[place + 1 :]
            break
    return stay, left


def _outcome(one: OutsideFilter, record: Record, verdict: Any) -> Any:
    """The verdict as the caller gets it; a FilterFailure in the place of one that cannot be carried out."""
    if isinstance(verdict, FilterFailure):
        return verdict
    if verdict is DROP:
        return DROP
    if isinstance(verdict, Record):
        return _replacing(one, record, verdict)
    if isinstance(verdict, DeadLetter):
        fault = letter_fault(verdict, record, 0)
        if fault is not None:
            return FilterFailure(one.name, fault)
        return DeadLetter(verdict.reason, verdict.topic, carried(verdict, record), one.name)
    if isinstance(verdict, NotReady):
        fault = fault_of_not_ready(verdict)
        return verdict if fault is None else FilterFailure(one.name, fault)
    if isinstance(verdict, Routed):
        return _routed(one, record, verdict)
    return FilterFailure(
        one.name, f"its verdict is {kind_of(verdict)}, none of Record, DROP, DeadLetter, NotReady and Routed"
    )


def _replacing(one: OutsideFilter, before: Record, after: Record) -> Record | FilterFailure:
    if after.timestamp is None:
        after = after._replace(timestamp=before.timestamp)
    fault = fault_of(after, before, 0)
    return after if fault is None else FilterFailure(one.name, f"the record that it returned has {fault}")


def _routed(one: OutsideFilter, before: Record, verdict: Routed) -> Routed | FilterFailure:
    fields: tuple[Any, ...] = verdict  # of any type: a filter has made it
    record, topic = fields
    if not isinstance(record, Record) or not isinstance(topic, str):
        return FilterFailure(one.name, "its verdict is a Routed without a record, or without a topic's name")
    if not topic or not topic.isprintable():
        return FilterFailure(
            one.name, "it routes to a topic whose name is empty, or no text that can be printed"
        )
    if record is before:
        return verdict
    replacing = _replacing(one, before, record)
    return Routed(replacing, topic) if isinstance(replacing, Record) else replacing
