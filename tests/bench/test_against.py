"""One tree beside another: the turns and the ratios. Nothing is measured here."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import against
from data import Entry, Value
from peers import LeafCuttr
from rows import OURS, ROWS, Row, Side, price
from run import Sides

THERE = Side("there", interpreter="/old/.venv/bin/python")
ROW = Row("one", "what", lambda peer, run: {}, ("core",), sides=(OURS, THERE), pairs=True)


def entry(**figures: tuple[float, float, float]) -> Entry:
    values = {name: Value({"leafcuttr": a, "there": b}, ratio) for name, (a, b, ratio) in figures.items()}
    return Entry("c" * 40, False, "2026-01-02", "a machine", 5, 1.0, values)


def test_the_rows_have_both_trees_and_no_other_side(tmp_path: Path) -> None:
    costs = price("costs", "what", "a.setting", "on", "off", lambda peer, run: {}, ("core",))
    found = list(against.rows((*ROWS, costs), tmp_path))
    assert {row.name for row in found} == {row.name for row in ROWS if OURS in row.sides}
    for row in found:
        ours, other = row.sides
        assert (ours, other.kafka, row.pairs) == (OURS, False, True)
        assert other.interpreter == f"{tmp_path}/.venv/bin/python"


def test_the_other_side_is_started_by_its_own_interpreter(tmp_path: Path) -> None:
    peer = Sides(tmp_path)._make(THERE)
    assert isinstance(peer, LeafCuttr) and peer.interpreter == THERE.interpreter
    mine = Sides(tmp_path)._make(OURS)
    assert isinstance(mine, LeafCuttr) and mine.interpreter == sys.executable
    script = tmp_path / "words"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/said\n')
    script.chmod(0o755)
    peer.interpreter = str(script)
    peer.start()
    with suppress(ChildProcessError):  # what has ended may have been waited for already
        os.waitpid(peer.pid, 0)
    assert (
        (tmp_path / "said").read_text().startswith("-m leafcuttr serve -o listeners=PLAINTEXT://127.0.0.1:")
    )


def test_turns() -> None:
    assert list(against.turns(ROW, 5)) == [(ROW, 5)]
    many = replace(ROW, alone=True, runs=5)
    assert list(against.turns(many, 5)) == [(many, 5)]
    once = replace(ROW, alone=True, runs=1)
    back = replace(once, sides=(THERE, OURS))
    assert list(against.turns(once, 3)) == [(once, 1), (back, 1), (once, 1)]


def test_less_is_below_the_limit_whichever_way_is_better() -> None:
    (fast, cpu, wait, same) = against.lines(
        ROW,
        [
            entry(
                records_per_s=(96.0, 100.0, 0.96),
                cpu_s_per_gb=(1.04, 1.0, 1.04),
                p99_ms=(1.0, 2.0, 0.5),
                mb_per_s=(97.0, 100.0, 0.97),
                errors=(3.0, 1.0, 3.0),
                stop_s=(1.0, 0.0, 0.0),
            )
        ],
    )
    assert [line.less for line in (fast, cpu, wait, same)] == [True, True, False, False]
    assert (wait.figure, wait.ratio, wait.here, wait.there) == ("p99_ms", 2.0, 1.0, 2.0)
    assert "less than 0.97" in str(fast) and "less than" not in str(same)


def test_pairs_of_rows_that_start_anew_are_compared_each_by_itself() -> None:
    pairs = [entry(first_ack_s=pair) for pair in ((1.0, 2.0, 0.5), (9.0, 3.0, 3.0), (4.0, 4.0, 1.0))]
    (line,) = against.lines(ROW, pairs)
    assert (line.ratio, line.here, line.there) == (1.0, 4.0, 3.0)


def test_it_writes_nothing_and_wants_a_tree_that_can_run(tmp_path: Path) -> None:
    run = Path(__file__).with_name("run.py")
    for words, said in ((["--write"], "none for the page"), ([], "there is no")):
        done = subprocess.run(
            [sys.executable, str(run), "--against", str(tmp_path), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2 and said in done.stderr
