"""Record filters on one way down: `mqtt.egress.filters`. A filter may also say to which MQTT topic a record goes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr_mqtt.egress.messages import Left
from leafcuttr_sdk.filters import DeadLetter, FilterFailure, NotReady, Routed
from leafcuttr_sdk.records import Record, StoredRecord

if TYPE_CHECKING:
    from leafcuttr_sdk.filters import FilterChain, Outcome

PAUSE_S: Final = 0.5
"""Before a filter that was not ready, or has failed, gets the records again."""


class Going(NamedTuple):
    """A record that is published, and the MQTT topic that a filter has named for it."""

    record: StoredRecord
    topic: str | None = None


class LeftOut(NamedTuple):
    """A record that is not, and why; of one that was set aside with the filter's reason."""

    record: StoredRecord
    why: Left
    reason: str = ""


async def filtered(
    chain: "FilterChain", records: Sequence[StoredRecord], waits: Callable[[str], None]
) -> list[Going | LeftOut]:
    """What becomes of each record. Where a filter is not ready or fails, nothing is published until it does neither:
    `waits` is called with the reason."""
    plain = [Record(one.value, one.key, one.headers, one.timestamp) for one in records]
    while True:
        # A function of a person's may take any time.
        outcomes = await trio.to_thread.run_sync(chain.filter, plain)
        why = _why_not(outcomes)
        if why is None:
            return [_judged(*each) for each in zip(records, plain, outcomes, strict=True)]
        waits(why)
        chain.forget()
        await trio.sleep(PAUSE_S)


def _why_not(outcomes: "Sequence[Outcome]") -> str | None:
    for outcome in outcomes:
        if isinstance(outcome, NotReady):
            return f"a filter waits for {outcome.waits_for}"
        if isinstance(outcome, FilterFailure):
            return f"the filter {outcome.filter} fails: {outcome.reason}"
    return None


def _judged(stored: StoredRecord, record: Record, outcome: "Outcome") -> Going | LeftOut:
    topic = None
    if isinstance(outcome, Routed):
        outcome, topic = outcome
    if outcome is record:
        return Going(stored, topic)
    if isinstance(outcome, Record):
        value, key, headers, timestamp = outcome
        changed = stored._replace(value=value, key=key, headers=headers)
        return Going(changed if timestamp is None else changed._replace(timestamp=timestamp), topic)
    if isinstance(outcome, DeadLetter):
        return LeftOut(stored, Left.SET_ASIDE, f"{outcome.filter}: {outcome.reason}")
    return LeftOut(stored, Left.FILTERED)
