"""The program that measures looks at records runs on the tree as it is."""

from __future__ import annotations

import re

import pytest

from bench import peeking


@pytest.mark.long
def test_it_prints_a_row_for_each_case(capsys: pytest.CaptureFixture[str]) -> None:
    peeking.measure(rounds=1, batches=6)
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [re.sub(r"[\d,]+ \| \d+\.\d\d \| \d+\.\d\d µs", "N", row) for row in rows] == [
        f"| {lengths} | {case} | N |" for lengths in peeking.LENGTHS for case in peeking.CASES
    ]
