"""What of a changed record can be stored, and how a log line describes what a filter returned or raised."""

from typing import Any

import pytest

from leafcuttr.log.append.chain.verdicts import carried, fault_of, letter_fault
from leafcuttr.log.append.rules import LONG_MAX
from leafcuttr_sdk.filters import DeadLetter
from leafcuttr_sdk.records import Record
from support.logs import NOW

BEFORE = Record(b"v", b"k", (("h", b"x"),), NOW)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({}, None),
        ({"value": None, "key": None, "headers": ()}, None),
        ({"headers": (("h", None), ("half \udc80", b""))}, None),
        ({"timestamp": LONG_MAX}, None),
        ({"value": "text"}, "a value that is a str, neither bytes nor None"),
        ({"key": 1}, "a key that is an int, neither bytes nor None"),
        ({"timestamp": None}, "a timestamp that is None, not milliseconds since 1970"),
        ({"timestamp": True}, "a timestamp that is a bool, not milliseconds since 1970"),
        ({"timestamp": -1}, "a timestamp that is an int, not milliseconds since 1970"),
        ({"timestamp": LONG_MAX + 1}, "a timestamp that is an int, not milliseconds since 1970"),
        ({"headers": []}, "headers that are a list, not a tuple of pairs"),
        ({"headers": (("h",),)}, "a header that is a tuple, not a pair of name and value"),
        ({"headers": ((b"h", b"x"),)}, "a header that is a tuple, not a text and bytes or None"),
        ({"headers": (("h", "x"),)}, "a header that is a tuple, not a text and bytes or None"),
        ({"headers": (("half \ud800", b""),)}, r"a header name that is no Unicode: 'half \ud800'"),
    ],
)
def test_what_cannot_be_stored_is_named(changed: dict[str, Any], fault: str | None) -> None:
    assert fault_of(BEFORE._replace(**changed), BEFORE, NOW) == fault


def test_a_timestamp_that_the_producer_has_sent_stays() -> None:
    before = BEFORE._replace(timestamp=-5)
    assert fault_of(before._replace(value=b"other"), before, NOW) is None


@pytest.mark.parametrize(
    ("verdict", "fault"),
    [
        (DeadLetter("x"), None),
        (DeadLetter("x", "t"), None),
        (DeadLetter("x", None, BEFORE), None),
        (DeadLetter("x", None, Record(b"***", b"k")), None),
        (DeadLetter(3), "its verdict is a DeadLetter, whose reason or topic is no text"),  # type: ignore[arg-type]
        (DeadLetter("x", b"t"), "its verdict is a DeadLetter, whose reason or topic is no text"),  # type: ignore[arg-type]
        (DeadLetter("x", None, b"v"), "its verdict is a DeadLetter with a record that is a bytes"),  # type: ignore[arg-type]
        (
            DeadLetter("x", None, Record("v")),  # type: ignore[arg-type]
            "the record of its dead letter has a value that is a str, neither bytes nor None",
        ),
        (
            DeadLetter("x", None, Record(b"v", timestamp=-1)),
            "the record of its dead letter has a timestamp that is an int, not milliseconds since 1970",
        ),
    ],
)
def test_what_is_no_dead_letter_is_named(verdict: DeadLetter, fault: str | None) -> None:
    assert letter_fault(verdict, BEFORE, NOW) == fault


@pytest.mark.parametrize(
    ("given", "carries"),
    [
        (None, BEFORE),
        (BEFORE, BEFORE),
        (Record(b"***"), Record(b"***", timestamp=NOW)),
        (Record(None, timestamp=NOW + 1), Record(None, timestamp=NOW + 1)),
    ],
)
def test_what_a_dead_letter_carries(given: Record | None, carries: Record) -> None:
    assert carried(DeadLetter("x", None, given), BEFORE) == carries
