"""Filters, validators and the dead-letter topic of a topic: changed in every place while the broker runs, they act."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from leafcuttr.state.chains import Instance, Tables
from leafcuttr_sdk.filters import DROP, DeadLetter
from leafcuttr_sdk.records import Record
from support import librdkafka
from support.live_broker import LiveBroker
from support.logs import NOW


def even(record: Record) -> Any:
    return DROP if int(record.value or b"0") % 2 else record


def small(record: Record) -> Any:
    return DeadLetter("it is large") if int(record.value or b"0") > 4 else record


def single(record: Record) -> str | None:
    return None if len(record.value or b"") == 1 else "it has more than one digit"


@pytest.fixture
def filtering(live: LiveBroker) -> Iterator[LiveBroker]:
    """The broker with filters `even` and `small`, and the validator `single`."""
    filters = {"even": lambda *_: Instance("tests", even), "small": lambda *_: Instance("tests", small)}
    live.call(live.broker.chains.equip, Tables(filters, {"single": lambda *_: Instance("tests", single)}))
    yield live
    live.call(live.broker.chains.equip, Tables())


def stored(live: LiveBroker, topic: str, *values: int) -> list[int]:
    """What of these values is in the topic after they have been produced to it."""
    before = live.call(lambda: live.log(topic).log_end_offset)
    sent = librdkafka.send(live.address, topic, [b"%d" % value for value in values], timestamp=NOW)
    assert sent == list(range(before, before + len(values))), "who produces does not notice"
    count = sum(header.count for header in live.stored(topic) if header.base_offset >= before)
    return [int(m.value()) for m in librdkafka.read(live.address, topic, count, offset=before)]


@pytest.mark.one_in(2)
@pytest.mark.setting("lc.filters")
def test_filters(filtering: LiveBroker, topic: str, change: Any) -> None:
    assert stored(filtering, topic, 1, 2, 3, 4) == [1, 2, 3, 4]
    change(lc_filters="even")
    assert stored(filtering, topic, 1, 2, 3, 4, 6) == [2, 4, 6]
    change(lc_filters="even,small")
    assert stored(filtering, topic, 1, 2, 3, 4, 6) == [2, 4]
    change(lc_filters=None)
    assert stored(filtering, topic, 1, 2, 3, 4) == [1, 2, 3, 4]


@pytest.mark.setting("lc.validators")
def test_validators(filtering: LiveBroker, topic: str, change: Any) -> None:
    assert stored(filtering, topic, 11) == [11]
    change(lc_validators="single")
    assert stored(filtering, topic, 1) == [1]
    assert librdkafka.send(filtering.address, topic, [b"12"], timestamp=NOW) == ["INVALID_RECORD"]
    change(lc_validators=None)
    assert stored(filtering, topic, 12) == [12]


@pytest.mark.one_in(2)
@pytest.mark.setting("lc.filters.dead.letter.topic")
def test_the_dead_letter_topic(filtering: LiveBroker, topic: str, change: Any) -> None:
    change.topic(lc_filters="small")
    assert stored(filtering, topic, 4, 5) == [4]
    change(lc_filters_dead_letter_topic=f"{topic}.lost")
    assert stored(filtering, topic, 4, 6) == [4]
    change(lc_filters_dead_letter_topic=None)
    assert stored(filtering, topic, 4, 7) == [4]
    for letters, values in ((f"{topic}.dlq", [b"5", b"7"]), (f"{topic}.lost", [b"6"])):
        assert [m.value() for m in librdkafka.read(filtering.address, letters, len(values))] == values
