"""The file with the last batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_spark.operating import history
from leafcuttr_spark.operating.history import History, Point, read_history


def test_what_is_added_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    first, second = Point(1, 0, 5, 0.5), Point(2, 1, 6, 0.25, 3, 1.5, 7, 1)
    found = History(path)
    found.add(first)
    found.add(second)
    assert read_history(path) == [first, second]
    # Of the next run
    third = Point(3, 2, 7, 1.0)
    History(path).add(third)
    assert read_history(path) == [first, second, third]


def test_it_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST", 3)
    path = tmp_path / "history.jsonl"
    found = History(path)
    for number in range(20):
        found.add(Point(number, number, 1, 1.0))
        assert len(path.read_text().splitlines()) <= 6
    assert [point.batch for point in read_history(path)] == [17, 18, 19]
    assert [one.name for one in tmp_path.iterdir()] == ["history.jsonl"]


def test_lines_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    good = '{"at_ms": 1, "batch": 2, "rows": 3, "seconds": 4, "later": 5}'
    bad = [
        "{",
        "[]",
        "7",
        '{"at_ms": 1}',
        '{"at_ms": "x", "batch": 2, "rows": 3, "seconds": 4}',
        "\xff",
        "[" * 9999,
    ]
    bad.append('{"at_ms": true, "batch": 2, "rows": 3, "seconds": 4}')
    path.write_text("\n".join([*bad, good, good[:20]]))
    assert read_history(path) == [Point(1, 2, 3, 4)]
    assert read_history(tmp_path / "none") == []


def test_a_disk_that_takes_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        History(tmp_path / "nowhere" / "history.jsonl").add(Point(1, 1, 1, 1))
