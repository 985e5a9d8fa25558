"""What is due at a time."""

from __future__ import annotations

from leafcuttr_mqtt.routing.deadlines import Deadlines


def test_what_is_due_comes_once_and_in_order() -> None:
    deadlines = Deadlines[str]()
    deadlines.add("b", "second", 20)
    deadlines.add("a", "first", 10)
    assert deadlines.due(9) == []
    assert deadlines.due(20) == [("a", "first"), ("b", "second")]
    assert deadlines.due(100) == []
    assert len(deadlines) == 0


def test_what_is_taken_or_replaced_is_not_due() -> None:
    deadlines = Deadlines[str]()
    deadlines.add("a", "old", 10)
    deadlines.add("a", "new", 30)
    deadlines.add("b", "taken", 10)
    assert deadlines.take("b") == "taken"
    assert deadlines.take("b") is None
    assert "a" in deadlines and "b" not in deadlines
    assert deadlines.due(10) == []
    assert deadlines.due(30) == [("a", "new")]


def test_what_is_stale_takes_no_memory_for_ever() -> None:
    deadlines = Deadlines[int]()
    for number in range(50_000):
        deadlines.add("same", number, 1_000_000 + number)
    assert len(deadlines._heap) < 11_000
    assert deadlines.due(2_000_000) == [("same", 49_999)]
