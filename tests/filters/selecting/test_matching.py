"""`allow`, `deny` and `tombstones`: which records match."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_sdk import Record
from support.making_filters import of, passes

RECORD = of(
    {"country": "se", "total": 12, "paid": True, "none": None, "at": {"city": "Åre"}},
    b"user-7",
    headers=(("source", b"web"), ("source", b"app"), ("empty", None)),
)


@pytest.mark.parametrize(
    ("options", "matches"),
    [
        ("topic=orders", True),
        ("topic=ord*,x", True),
        ("topic=order?", True),
        ("topic=order", False),
        ("topic=[o]rders", False),
        ("topic.regex=^ord", True),
        ("topic.regex=x", False),
        ("key=user-7,user-8", True),
        ("key=user-8", False),
        ("key.regex=^user-[0-9]+$", True),
        ("key.regex=8", False),
        ("header=source", True),
        ("header=empty", True),
        ("header=other", False),
        ("header=source header.value=app", True),
        ("header=source header.value=x", False),
        ("header=empty header.value=x", False),
        ("header=source header.regex=^we", True),
        ("header=empty header.regex=.", False),
        ("value.regex=country", True),
        ("value.regex=planet", False),
        ("field=country", True),
        ("field=none", False),
        ("field=other", False),
        ("field=country field.value=no,se", True),
        ("field=country field.value=no", False),
        ("field=total field.value=12", True),
        ("field=paid field.value=true", True),
        ("field=at.city field.value=Åre", True),
        ("field=at field.regex=city", True),
        ("field=country field.regex=^s", True),
        ("field=country field.regex=x", False),
        ("condition='value.total > 11 and topic == \"orders\"'", True),
        ("condition='value.total > 12'", False),
        ("condition='headers.source == \"app\"'", True),
        ("topic=orders key=user-7 header=source field=paid condition=value.total", True),
        ("topic=orders key=user-7 header=source field=paid condition=value.other", False),
        ("topic=other key=user-7", False),
    ],
)
def test_all_that_is_given_has_to_match(options: str, matches: bool) -> None:
    assert passes(f"allow {options}", RECORD) is matches
    assert passes(f"deny {options}", RECORD) is not matches


@pytest.mark.parametrize(
    "value", [b"no json", None, b"[1]", b"\xff", b"[" * 100_000], ids=lambda v: repr(v)[:12]
)
def test_what_has_no_fields_does_not_match(value: bytes | None) -> None:
    assert not passes("allow field=country", of(value))
    assert not passes("allow condition=value.country", of(value))
    assert passes("deny field=country", of(value, None))


def test_what_is_not_there_does_not_match() -> None:
    nothing = Record(None, timestamp=1)
    for options in ("key=a", "key.regex=a*", "value.regex=a*", "field=a", "header=a"):
        assert not passes(f"allow {options}", nothing)


def test_bytes_that_are_no_utf8_can_be_searched() -> None:
    assert passes("allow key.regex=^a", of(b"", b"a\xff"))


def test_tombstones() -> None:
    assert passes("tombstones", of(b"")) and not passes("tombstones", of(None))


def test_when_limits_a_filter() -> None:
    only: Any = "deny key=user-7 when='value.total > 100'"
    assert passes(only, RECORD)
    assert not passes("deny key=user-7 when='value.total > 10'", RECORD)


def test_a_hostile_text_takes_a_bounded_time() -> None:
    """It would take Python's engine hours."""
    hostile = of(b"a" * 1_000_000, b"a" * 100_000)
    assert not passes("allow key.regex=(a+)+b", hostile)
    assert not passes("allow value.regex=(a|a)*b", hostile)
