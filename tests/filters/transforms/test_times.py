"""`timestamp`, beside what Kafka Connect makes of the same (`test_as_connect`)."""

from __future__ import annotations

from typing import Any

import pytest

from support.making_filters import made, of, reason_of, value_of

ISO = "format=yyyy-MM-dd'T'HH:mm:ssX"


@pytest.mark.parametrize(
    ("options", "value", "expected"),
    [
        (f"target.type=unix {ISO}", "2026-11-21T08:30:00Z", 1_795_249_800_000),
        (f"target.type=string {ISO}", 1_795_249_800_000, "2026-11-21T08:30:00Z"),
        (f"target.type=string {ISO} unix.precision=seconds", 1_795_249_800, "2026-11-21T08:30:00Z"),
        (f"target.type=unix {ISO} unix.precision=seconds", "2026-11-21T08:30:00Z", 1_795_249_800),
        ("target.type=unix unix.precision=nanoseconds", 1_795_249_800_123_456_789, 1_795_249_800_123_000_000),
        ("target.type=Timestamp unix.precision=microseconds", -1_999, -1),
        ("target.type=Timestamp unix.precision=seconds", 5, 5_000),
        ("target.type=Date", 1_795_249_800_000, 1_795_219_200_000),
        ("target.type=Time", 1_795_249_800_000, 30_600_000),
        ("target.type=unix", None, None),
    ],
)
def test_conversions(options: str, value: Any, expected: Any) -> None:
    assert value_of(f"timestamp field=a.b {options}", {"a": {"b": value}}) == {"a": {"b": expected}}
    if value is not None:
        assert value_of(f"timestamp {options}", value) == expected


@pytest.mark.parametrize(
    ("options", "value", "why"),
    [
        ("target.type=unix", "2026", "it is a text, and there is no format to read it by"),
        ("target.type=unix format=yyyy", "x", "it is not of the format"),
        ("target.type=unix", 1.5, "it is neither a text nor a whole number"),
        ("target.type=unix", True, "it is neither a text nor a whole number"),
        ("target.type=string format=yyyy", 10**17, "it is beyond the years 1 to 9999"),
        ("target.type=unix format=yyyy-MM-dd", "2026-02-30", "day"),
    ],
)
def test_what_cannot_be_converted_is_set_aside(options: str, value: Any, why: str) -> None:
    reason = reason_of(f"timestamp field=a {options}", {"a": value})
    assert reason.startswith("timestamp: the field a: ") and why in reason


def test_a_field_that_is_missing_leaves_the_record() -> None:
    record = of({"b": 1})
    assert made("timestamp field=a target.type=unix").filter(record) is record
