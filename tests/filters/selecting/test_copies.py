"""`dedupe`: copies within a window, in a bounded memory, and none lost where a batch comes again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk import DROP, DeadLetter, Record
from leafcuttr_sdk.testing import HandClock
from support.making_filters import made, of


@pytest.mark.parametrize(
    ("options", "like", "unlike"),
    [
        ("", of(b"other", b"k"), of(b"v", b"k2")),
        ("by=value", of(b"v", b"k2"), of(b"w", b"k")),
        ("by=key-and-value", of(b"v", b"k", headers=(("h", b""),)), of(b"", b"kv")),
    ],
)
def test_what_is_alike(options: str, like: Record, unlike: Record) -> None:
    dedupe = made(f"dedupe {options}").filter
    first = of(b"v", b"k")
    assert [dedupe(one) is one for one in (first, like, unlike, first)] == [True, False, True, False]


def test_by_a_field_types_are_apart() -> None:
    dedupe = made("dedupe by=field field=order.id").filter
    ids: list[Any] = [1, "1", 1, True, 1.0, "1"]
    records = [of({"order": {"id": one}, "n": number}) for number, one in enumerate(ids)]
    assert [dedupe(one) is one for one in records] == [True, True, False, True, True, False]


@pytest.mark.parametrize("value", [{}, {"order": {"id": None}}, {"order": 3}])
def test_what_has_no_identity_is_no_copy(value: Any) -> None:
    dedupe, record = made("dedupe by=field field=order.id").filter, of(value)
    assert dedupe(record) is record and dedupe(record) is record
    by_key, none = made("dedupe").filter, of(b"")
    assert by_key(none) is none and by_key(none) is none
    both = made("dedupe by=key-and-value").filter
    assert both(of(None)) is not DROP and both(of(None)) is not DROP


def test_the_window_begins_with_the_first() -> None:
    clock = HandClock()
    dedupe, record = made("dedupe window=10s over=dead-letter", clock=clock).filter, of(b"", b"k")
    assert dedupe(record) is record
    clock.ms += 9_999
    assert dedupe(record) == DeadLetter("dedupe: a copy by key")
    clock.ms += 1
    assert dedupe(record) is record and dedupe(record) is not record


def test_memory_has_a_bound() -> None:
    dedupe = made("dedupe most=3").filter
    keys = [of(b"", b"%d" % number) for number in range(4)]
    assert all(dedupe(one) is one for one in keys)
    assert [dedupe(keys[at]) is keys[at] for at in (3, 2, 0)] == [False, False, True]


def test_what_is_over_is_forgotten_while_others_come() -> None:
    clock = HandClock()
    made_filter: Any = made("dedupe window=1s", clock=clock)
    seen = made_filter.forget.__self__._seen
    for number in range(100):
        made_filter.filter(of(b"", b"%d" % number))
    clock.ms += 2_000
    for number in range(100, 103):
        made_filter.filter(of(b"", b"%d" % number))
    assert len(seen) == 3


def test_what_was_not_stored_is_no_copy() -> None:
    dedupe: Any = made("dedupe")
    record = of(b"", b"k")
    assert dedupe.filter(record) is record
    dedupe.forget()
    assert dedupe.filter(record) is record


@given(st.lists(st.tuples(st.sampled_from(b"abc"), st.integers(0, 8)), max_size=40))
def test_as_a_plain_model(steps: list[tuple[int, int]]) -> None:
    clock = HandClock()
    dedupe = made("dedupe window=5s", clock=clock).filter
    came: dict[int, int] = {}
    for key, wait_s in steps:
        clock.ms += 1000 * wait_s
        record = of(b"", bytes([key]))
        copy = key in came and clock.ms - came[key] < 5000
        assert (dedupe(record) is DROP) is copy
        if not copy:
            came[key] = clock.ms
