"""`age`: too old, too far ahead, and without a timestamp."""

from __future__ import annotations

import pytest

from leafcuttr_sdk import DROP, DeadLetter, Record
from support.making_filters import NOW, made, of


@pytest.mark.parametrize(
    ("options", "before_ms", "passes"),
    [
        ("max=1h", 3_600_000, True),
        ("max=1h", 3_600_001, False),
        ("max=1h", -(10**12), True),
        ("ahead=1m", -60_000, True),
        ("ahead=1m", -60_001, False),
        ("ahead=1m", 10**12, True),
        ("max=1h ahead=1m", 0, True),
    ],
)
def test_ages(options: str, before_ms: int, passes: bool) -> None:
    record = of(b"", timestamp=NOW - before_ms)
    verdict = made(f"age {options}").filter(record)
    assert (verdict is record) is passes and (passes or verdict is DROP)


def test_why_one_is_set_aside() -> None:
    age = made("age max=1s ahead=1s over=dead-letter").filter
    assert age(of(b"", timestamp=0)) == DeadLetter("age: it is older than 1000 ms")
    assert age(of(b"", timestamp=2 * NOW)) == DeadLetter("age: it is more than 1000 ms ahead")


def test_one_without_a_timestamp_passes() -> None:
    for timestamp in (-1, None):
        record = Record(b"", timestamp=timestamp)
        assert made("age max=1s").filter(record) is record
