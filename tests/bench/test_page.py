"""The page of figures and its data file say the same, and what is stale is found. Nothing is measured here."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import data
import page
from data import Entry, Value
from peers import Peer
from rows import AT_ONCE, BESIDE_KAFKA, ROWS, Row, Side, price
from run import Sides, measure

WRITTEN = data.load()
BY_NAME = {row.name: row for row in ROWS}


def test_the_page_is_made_of_the_data() -> None:
    assert page.PATH.read_text(encoding="utf-8") == page.render(ROWS, WRITTEN), "run.py --page --write"


def test_the_data_is_of_rows_that_there_are() -> None:
    assert len(BY_NAME) == len(ROWS)
    assert [row.name for row in ROWS if row.name in WRITTEN] == list(WRITTEN)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_paths_of_a_row_exist(row: Row) -> None:
    assert row.paths
    assert [path for path in row.paths if not (data.ROOT / path).exists()] == []


@pytest.mark.parametrize("name", WRITTEN)
def test_an_entry_is_whole(name: str) -> None:
    found, sides = WRITTEN[name], {side.name for side in BY_NAME[name].sides}
    assert len(found.commit) == 40 and found.date.startswith("20") and found.runs >= 1
    assert found.figures
    for figure, value in found.figures.items():
        assert value.medians.keys() == sides, figure
        if len(sides) == 2 and value.ratio is not None and not BY_NAME[name].pairs:
            ours, theirs = (value.medians[side.name] for side in BY_NAME[name].sides)
            assert value.ratio == pytest.approx(ours / theirs, rel=0.05, abs=0.01), figure


def test_medians_and_ratios() -> None:
    ours, theirs = (
        [{"a": x, "said": "x", "b": 0.0} for x in each] for each in ((1.0, 9.0, 2.0), (4.0, 6.0, 1.0))
    )
    found = data.entry({"leafcuttr": ours, "kafka": theirs}, pairs=False, seconds=1.26)
    assert found.figures == {
        "a": Value({"leafcuttr": 2.0, "kafka": 4.0}, 0.5),
        "b": Value({"leafcuttr": 0.0, "kafka": 0.0}, None),
    }
    assert (found.runs, found.seconds) == (3, 1.3)
    pairs = data.entry({"leafcuttr": ours, "kafka": theirs}, pairs=True, seconds=1.0)
    assert pairs.figures["a"].ratio == 1.5
    assert data.entry({"leafcuttr": ours}, pairs=False, seconds=1.0).figures["a"].ratio is None


def entry(**changes: object) -> Entry:
    figures = {"p50_ms": Value({"leafcuttr": 1.0, "kafka": 2.0}, 0.5)}
    whole = Entry("c" * 40, False, "2026-01-02", "a machine", 3, 4.5, figures)
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_entries_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert data.load(tmp_path / "none.json") == {}
    entries = {"one": entry(), "two": entry(seconds=None, changed=True)}
    data.save(entries, tmp_path / "some.json")
    assert data.load(tmp_path / "some.json") == entries


def test_lines_of_the_page() -> None:
    one = Row("one", "a lone request", lambda peer, run: {}, ("core",))
    costs = price("costs", "what", "a.setting", "on", "off", lambda peer, run: {}, ("core",))
    other = Row("other", "another", lambda peer, run: {}, ("core",))
    sides = {side.name: 3.0 for side in costs.sides}
    entries = {
        "one": entry(changed=True),
        "costs": entry(machine="another", runs=5, figures={"p50_ms": Value(sides, 1.04)}),
    }
    lines = page.render((one, costs, other), entries).splitlines()
    assert one.sides == BESIDE_KAFKA
    assert (
        "| a lone request | p50 ms | 1.00 | 2.00 | 0.50 | 3 | 2026-01-02 at ccccccccc and changes |" in lines
    )
    assert "| another | not measured yet | - | - | - | - | - |" in lines
    assert (
        "| what: `a.setting=on`, not `off` | p50 ms | 3.00 | 3.00 | 1.04 | 5 | 2026-01-02 at ccccccccc |"
        in lines
    )
    assert lines.index("## What a setting costs") > lines.index(
        "| another | not measured yet | - | - | - | - | - |"
    )
    assert "- another: what" in lines


class Idle(Peer):
    """A peer that is there, and does nothing."""

    def start(self, *settings: str) -> None:
        self.pid = 0

    def stop(self, how: object = None) -> float:
        return 0.0


def test_the_sides_of_a_row_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    seen: list[tuple[str, int]] = []

    def make(self: Sides, side: Side) -> Peer:
        made.append(side.name)
        return Idle(side.name, tmp_path / side.name, settings=side.settings)

    def look(peer: Peer, run: int) -> dict[str, float]:
        seen.append((peer.name, run))
        return {"p50_ms": len(seen)}

    monkeypatch.setattr(Sides, "_make", make)
    sides = Sides(tmp_path)
    found = measure(Row("one", "what", look, ("core",), fresh=True), sides, 3)
    assert seen == [
        ("leafcuttr", 0),
        ("kafka", 0),
        ("kafka", 1),
        ("leafcuttr", 1),
        ("leafcuttr", 2),
        ("kafka", 2),
    ]
    assert found.figures["p50_ms"] == Value({"leafcuttr": 4.0, "kafka": 3.0}, 1.3333)
    assert found.runs == 3 and len(found.commit) == 40
    costs = price("costs", "what", "a.setting", "on", "off", look, ("core",))
    assert [side.settings for side in costs.sides] == [("a.setting=on", AT_ONCE), ("a.setting=off", AT_ONCE)]
    assert costs.runs == 5 and costs.pairs
    assert [peer.settings for peer in sides.of(costs)] == [side.settings for side in costs.sides]
    assert made == ["leafcuttr", "kafka", "a.setting=on", "a.setting=off"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit with two files."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    return subprocess.run(
        ["git", *who, *words], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "t")
    return git(root, "rev-parse", "HEAD")


def test_what_is_stale(repository: Path) -> None:
    paths = {"of a": ["a.py"], "of b": ["b.py"], "of both": ["."]}
    then = git(repository, "rev-parse", "HEAD")
    entries = {name: entry(commit=then) for name in paths}

    def found() -> dict[str, str]:
        return dict(data.stale(paths, entries, repository))

    assert found() == {}
    (repository / "a.py").write_text("2\n")
    assert found().keys() == {"of a", "of both"}, "before it is committed"
    now = commit(repository)
    said = f"changed since {then[:9]} (2026-01-02): a.py"
    assert found() == {"of a": said, "of both": said}
    entries["of a"] = entry(commit=now)
    del entries["of b"]
    entries["of both"] = entry(commit="d" * 40)
    assert found() == {
        "of b": "was never measured",
        "of both": "was measured at ddddddddd, which this repository does not have",
    }
    entries["of a"] = entry(commit=now, changed=True)
    assert found()["of a"] == f"was measured on a tree with changes over {now[:9]}"
