"""The program that measures forwarding: its table, and each of its rows once, between two LeafCuttrs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import forward_table as page

BENCH = Path(__file__).with_name("forward.py")


def test_the_table_has_medians_and_what_is_wanted() -> None:
    runs = [{"records_per_s": value, "source_us": 1.0} for value in (150_000.0, 230_000.0, 210_000.0)]
    assert list(page.table({"raw 16k": runs}))[2:] == [
        "| raw 16k | records_per_s | 210,000 | 150,000 | 230,000 | at least 200,000: yes |",
        "| raw 16k | source_us | 1 | 1 | 1 |  |",
    ]


def test_what_is_too_slow_or_too_much_ends_it_with_1() -> None:
    for row, figure, value in (("one", "records_per_s", 29_999.0), ("lag", "p99_ms", 50.1)):
        lines = list(page.table({row: [{figure: value}]}))
        assert lines[-1].endswith(": **no** |")
        assert page.status(lines) == 1
    assert page.status(list(page.table({"one": [{"records_per_s": 30_000.0}]}))) == 0


def test_ratios_are_of_the_runs() -> None:
    found = {
        "raw 16k": [{"records_per_s": 90.0}, {"records_per_s": 30.0}, {"records_per_s": 85.0}],
        "at-least 16k": [{"records_per_s": 100.0}] * 3,
    }
    assert list(page.table(found))[-1] == (
        "| exactly once / at least once, 16k | ratio | 0.85 | 0.3 | 0.9 | at least 0.8: yes |"
    )


@pytest.mark.long
def test_each_row_runs(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    words = ["--target", "leafcuttr", "--runs", "1", "--scale", "0.02", "--warm", "0", "--json", str(told)]
    done = subprocess.run(
        [sys.executable, str(BENCH), *words], capture_output=True, text=True, check=False, timeout=280
    )
    found = json.loads(told.read_text())
    compared = {"at-least 16k", "at-least 1m", "ceiling 16k", "ceiling 1m", *page.PAIRS} - page.WANTED.keys()
    assert set(page.WANTED) == found.keys() - compared, done.stderr[-2000:]
    assert done.returncode in (0, 1)
    assert all(
        figure > 0
        for runs in found.values()
        for run in runs
        for name, figure in run.items()
        if name != "idle_ms_per_s"
    )
