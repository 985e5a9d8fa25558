"""`Repeats`: which of many lines there are, and what is behind them. `Complaints` is tested in tests/sdk."""

from __future__ import annotations

import pytest

from leafcuttr.runtime import complaints
from leafcuttr.runtime.complaints import Repeats


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(complaints.time, "monotonic", lambda: now[0])
    return now


def test_one_line_a_minute_with_what_came_since_the_one_before(clock: list[float]) -> None:
    repeats = Repeats()
    assert [repeats.count("full") for _ in range(4)] == ["", None, None, None]
    clock[0] += 59.9
    assert repeats.count("full") is None
    clock[0] += 0.1
    assert [repeats.count("full") for _ in range(2)] == [" (4 more since the last line)", None]
    clock[0] += 60
    assert repeats.count("full") == " (1 more since the last line)"
    clock[0] += 60
    assert repeats.count("full") == ""


def test_each_key_for_itself(clock: list[float]) -> None:
    repeats = Repeats()
    assert [repeats.count(key) for key in ("full", ("gone", 1), "full", ("gone", 2))] == ["", "", None, ""]
    clock[0] += 60
    assert repeats.count(("gone", 1)) == ""
    assert repeats.count("full") == " (1 more since the last line)"


def test_keys_are_not_remembered_without_end() -> None:
    repeats = Repeats()
    assert {repeats.count(number) for number in range(1000)} == {""}
    assert len(repeats._said) <= 256
    assert repeats.count(999) is None
