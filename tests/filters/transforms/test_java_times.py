"""Patterns of SimpleDateFormat."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_filters.transforms.java_times import JavaFormat

MS = 1_795_249_800_123


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2026-11-21T08:30:00.123Z"),
        ("yyyy-MM-dd HH:mm:ss.SSS Z", "2026-11-21 08:30:00.123 +0000"),
        ("yyyyMMddHHmmssSSS", "20261121083000123"),
        ("d.M.yyyy H:m:s,SSS", "21.11.2026 8:30:0,123"),
        ("'at ''noon''' yyyy-MM-dd HH:mm:ss.SSS", "at 'noon' 2026-11-21 08:30:00.123"),
        ("yy''MM''dd HH mm ss SSS", "26'11'21 08 30 00 123"),
    ],
)
def test_both_ways(pattern: str, text: str) -> None:
    times = JavaFormat(pattern)
    assert times.written(MS) == text
    assert times.read(text) == MS


@pytest.mark.parametrize(
    ("pattern", "text", "ms"),
    [
        ("yyyy-MM-dd", "1970-01-02", 86_400_000),
        ("yyyy-MM-dd'T'HH:mmXXX", "1970-01-01T01:00+01:00", 0),
        ("yyyy-MM-dd'T'HH:mmX", "1970-01-01T00:00-0230", 9_000_000),
        ("HH:mm", "00:01", 60_000),
        ("yyyy-MM-dd", "1969-12-31", -86_400_000),
        ("yyyy", "1", -62_135_596_800_000),
    ],
)
def test_read(pattern: str, text: str, ms: int) -> None:
    assert JavaFormat(pattern).read(text) == ms


@pytest.mark.parametrize(
    "text", ["", "2026-13-01", "2026-02-30", "2026-1-1x", "x2026-1-1", "99999-01-01", "２０２６-01-01"]
)
def test_what_is_not_of_the_format(text: str) -> None:
    with pytest.raises(ValueError):
        JavaFormat("yyyy-MM-dd").read(text)


def test_a_time_beyond_the_calendar() -> None:
    for ms in (10**15, -(10**15), 2**63 - 1):
        with pytest.raises(ValueError, match="it is beyond the years 1 to 9999"):
            JavaFormat("yyyy").written(ms)


@given(st.integers(0, 253_402_300_799_999))
def test_any_time_comes_back(ms: int) -> None:
    times = JavaFormat("yyyy-MM-dd'T'HH:mm:ss.SSSX")
    assert times.read(times.written(ms)) == ms
