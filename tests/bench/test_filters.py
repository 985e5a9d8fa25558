"""The program that measures filters runs on the tree as it is."""

from __future__ import annotations

import re

import pytest

from bench import filters


def test_it_prints_a_row_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    filters.measure(rounds=1)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [re.sub(r"\d+\.\d\d", "N", row) for row in rows] == [
        f"| {name} | N µs | N µs | N µs |" for name in filters.FILTERS
    ]
