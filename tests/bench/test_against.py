"""One tree beside another: the turns and the ratios. Nothing is measured here."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import against
from data import load
from load import Figures
from page import FIGURES
from peers import LeafCuttr, Peer
from rows import AT_ONCE, OURS, ROWS, Row, Side, price
from run import Sides, chosen, compare

THERE = Side("there", interpreter="/old/.venv/bin/python")
ROW = Row("one", "what", lambda peer, run: {}, ("core",), sides=(OURS, THERE), pairs=True)


def samples(**figures: list[tuple[float, float]]) -> dict[str, list[Figures]]:
    """Pairs of what is measured here and there."""
    pairs = [dict(zip(figures, pair, strict=True)) for pair in zip(*figures.values(), strict=True)]
    return {
        side: [{name: both[at] for name, both in pair.items()} for pair in pairs]
        for at, side in enumerate(("leafcuttr", "there"))
    }


def test_the_rows_have_both_trees_and_no_other_side(tmp_path: Path) -> None:
    costs = price("costs", "what", "a.setting", "on", "off", lambda peer, run: {}, ("core",))
    found = list(against.rows((*ROWS, costs), tmp_path))
    assert {row.name for row in found} == {row.name for row in ROWS if OURS in row.sides}
    for row in found:
        ours, other = row.sides
        assert (ours.name, ours.interpreter, other.kafka, row.pairs) == (
            OURS.name,
            sys.executable,
            False,
            True,
        )
        assert ours.settings == other.settings == (AT_ONCE,), "one run writes into the memory of the other"
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


@pytest.mark.parametrize("figure", sorted(against.MORE_IS_BETTER))
def test_more_is_better(figure: str) -> None:
    (less,) = against.lines(ROW, samples(**{figure: [(96.0, 100.0)]}))
    (same,) = against.lines(ROW, samples(**{figure: [(97.0, 100.0)]}))
    (more,) = against.lines(ROW, samples(**{figure: [(200.0, 100.0)]}))
    assert [line.less for line in (less, same, more)] == [True, False, False]
    assert (less.ratio, more.ratio) == (0.96, 2.0)
    assert "less than 0.97" in str(less) and "less than" not in str(same)


@pytest.mark.parametrize("figure", sorted(against.LESS_IS_BETTER))
def test_less_is_better(figure: str) -> None:
    (worse,) = against.lines(ROW, samples(**{figure: [(1.04, 1.0)]}))
    (better,) = against.lines(ROW, samples(**{figure: [(1.0, 2.0)]}))
    assert (worse.less, better.less, better.ratio) == (True, False, 2.0)
    assert (better.figure, better.here, better.there) == (figure, 1.0, 2.0)


def test_each_figure_is_of_one_kind() -> None:
    kinds = (against.MORE_IS_BETTER, against.LESS_IS_BETTER, against.NO_MEASURE)
    assert sum(map(len, kinds)) == len(frozenset().union(*kinds))
    measured = {name for entry in load().values() for name in entry.figures}
    assert measured | FIGURES.keys() <= frozenset().union(*kinds)
    with pytest.raises(KeyError, match="speed"):
        against.lines(ROW, samples(speed=[(1.0, 1.0)]))


def test_what_is_no_measure_has_no_line() -> None:
    assert against.lines(ROW, samples(**{name: [(1.0, 2.0)] for name in against.NO_MEASURE})) == []
    words = {side: [{"first_error": "none", "stop_s": 0.0}] for side in ("leafcuttr", "there")}
    assert against.lines(ROW, words) == [], "nor has what is no number, or has no ratio"


def test_the_pairs_are_compared_each_by_itself() -> None:
    pairs = samples(first_ack_s=[(1.0, 2.0), (9.0, 3.0), (4.0, 4.0)])
    (line,) = against.lines(ROW, pairs)
    assert (line.ratio, line.here, line.there) == (1.0, 4.0, 3.0)
    assert (line.worst, line.best) == (1 / 3, 2.0)
    assert str(line).split()[-2:] == ["1.00", "0.33..2.00"]
    (line,) = against.lines(ROW, samples(records_per_s=[(1.0, 2.0), (9.0, 3.0), (4.0, 4.0)]))
    assert (line.ratio, line.worst, line.best) == (1.0, 0.5, 3.0)


def test_turns_are_joined_by_side() -> None:
    first, second = samples(stop_s=[(1.0, 2.0)]), samples(stop_s=[(3.0, 4.0)])
    back = dict(reversed(second.items()))
    assert against.joined([first, back]) == samples(stop_s=[(1.0, 2.0), (3.0, 4.0)])


def test_requests_that_failed_are_told_of() -> None:
    (found,) = against.failures(ROW, samples(errors=[(0.0, 1.0), (3.0, 0.0)], acked=[(1.0, 1.0), (1.0, 1.0)]))
    assert str(found).endswith("FAILED: errors: 3 in run 2")


class NotRunning(Sides):
    """Brokers that need not run."""

    def of(self, row: Row) -> list[Peer]:
        return [self._make(side) for side in row.sides]


def test_a_row_that_fails_loses_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "against.txt"

    def fine(peer: Peer, run: int) -> Figures:
        return {"records_per_s": 2.0 if peer.name == "leafcuttr" else 1.0}

    def slow(peer: Peer, run: int) -> Figures:
        return {"stop_s": 2.0 if peer.name == "leafcuttr" else 1.0}

    def broken(peer: Peer, run: int) -> Figures:
        assert "good " in told.read_text(), "written before the next one begins"
        raise TimeoutError("never ends")

    monkeypatch.setattr("run.Sides", NotRunning)
    good, bad, worse = (
        replace(ROW, name=name, measure=look, fresh=True)
        for name, look in (("good", fine), ("bad", broken), ("worse", slow))
    )
    assert compare([good], 3, None) == 0
    assert compare([good, bad, good], 3, told) == 1
    found = told.read_text().splitlines()
    assert [line.split()[0] for line in found] == ["row", "good", "bad", "good"]
    assert found[2].endswith("FAILED: TimeoutError('never ends')")
    assert capsys.readouterr().out.rstrip().endswith("\n".join(found))
    assert compare([worse], 3, None) == 1


def test_rows_by_name_and_by_pattern() -> None:
    assert [row.name for row in chosen(["synced-*", "start"])] == [
        "start",
        "synced-1",
        "synced-8",
        "synced-32",
    ]
    assert chosen(None) == list(ROWS)


@pytest.mark.long
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


def test_rows_that_cannot_be_compared_are_named(tmp_path: Path) -> None:
    interpreter = against.interpreter_of(tmp_path)
    interpreter.parent.mkdir(parents=True)
    interpreter.touch()
    run = Path(__file__).with_name("run.py")
    for name, said in (("check-*", "none of these rows has a side"), ("nothing-*", "no such row: nothing-*")):
        done = subprocess.run(
            [sys.executable, str(run), "--against", str(tmp_path), "--row", name],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2 and said in done.stderr
