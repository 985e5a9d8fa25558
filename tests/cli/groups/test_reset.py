"""`leafcuttr groups reset-offsets` in all its modes: a plan without --execute, new offsets with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Fill = Callable[..., None]

T0 = 1_700_000_000_000
"""2023-11-14T22:13:20Z."""


@pytest.fixture
def group(run: Run, topic: str, fill: Fill) -> str:
    """A group of the topic's name: partition 0 holds offsets 2 to 9, ten seconds apart, and 5 is committed."""
    run("topics", "create", topic, "-p", "2", "-c", "retention.ms=-1")
    fill(topic, timestamps=tuple(T0 + at * 10_000 for at in range(10)))
    assert run("topics", "delete-records", f"{topic}:0", "--before", "2").status == 0
    done = run("groups", "reset-offsets", topic, "-t", f"{topic}:0", "--to-offset", "5", "--execute")
    assert done.status == 0, done.err
    return topic


def committed(run: Run, group: str) -> dict[int, int]:
    (about,) = run("groups", "describe", group, "--json").json
    return {row["partition"]: row["committed"] for row in about["offsets"]}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--to-earliest",), 2),
        (("--to-latest",), 10),
        (("--to-current",), 5),
        (("--to-offset", "7"), 7),
        (("--to-offset", "0"), 2),
        (("--to-offset", "99"), 10),
        (("--shift-by", "2"), 7),
        (("--shift-by", "-2"), 3),
        (("--shift-by", "-100"), 2),
        (("--to-datetime", "2023-11-14T22:14:05Z"), 5),
        (("--to-datetime", "2023-11-14T22:14:05.001"), 5),
        (("--to-datetime", "2023-11-14T23:14:00+01:00"), 4),
        (("--to-datetime", "2024-01-01T00:00:00"), 10),
        (("--by-duration", "PT1H"), 10),
        (("--by-duration", "P36500D"), 2),
        (("--by-duration", "5200w"), 2),
    ],
)
def test_every_mode_plans_and_then_does_it(
    run: Run, group: str, words: tuple[str, ...], expected: int
) -> None:
    selected = (group, "-t", f"{group}:0", *words)
    planned = run("groups", "reset-offsets", *selected, "--json")
    row = {"group": group, "topic": group, "partition": 0, "committed": 5, "offset": expected}
    assert planned.status == 0, planned.err
    assert planned.json == {"executed": False, "offsets": [row], "errors": []}
    assert committed(run, group) == {0: 5}
    done = run("groups", "reset-offsets", *selected, "--execute", "--json")
    assert done.json == {"executed": True, "offsets": [row], "errors": []}
    assert committed(run, group) == {0: expected}


def test_what_people_see(run: Run, group: str) -> None:
    planned = run("groups", "reset-offsets", group, "-t", f"{group}:0", "--to-offset", "99")
    assert planned.err.splitlines() == [
        f"leafcuttr: {group}: {group}-0: 99 is beyond the end, 10 is used",
        "Nothing is changed; --execute does it.",
    ]
    columns, row = planned.out.splitlines()
    assert columns.split() == ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "NEW", "OFFSET"]
    assert row.split() == [group, group, "0", "5", "10"]


def test_whole_topics_and_all_of_a_group(run: Run, group: str) -> None:
    whole = run("groups", "reset-offsets", group, "-t", group, "--to-latest", "--json").json
    assert [(row["partition"], row["offset"]) for row in whole["offsets"]] == [(0, 10), (1, 0)]
    # --all-topics: only what the group has an offset for.
    everything = run("groups", "reset-offsets", group, "--all-topics", "--to-latest", "--json").json
    assert [(row["partition"], row["offset"]) for row in everything["offsets"]] == [(0, 10)]
    nothing = run("groups", "reset-offsets", group, "-t", f"{group}:1", "--shift-by", "1")
    assert nothing.status == 1
    assert nothing.err.endswith(f"leafcuttr: {group}: no committed offset to shift for {group}-1\n")
    fresh = run("groups", "reset-offsets", group, "-t", f"{group}:1", "--to-current", "--json").json
    assert [(row["committed"], row["offset"]) for row in fresh["offsets"]] == [(None, 0)]


def test_there_and_back_by_file(run: Run, group: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    exported = run("groups", "reset-offsets", group, "--all-topics", "--to-current", "--export")
    assert (exported.out, exported.err) == (f"{group},0,5\n", "")
    file.write_text(exported.out)
    run("groups", "reset-offsets", group, "-t", group, "--to-latest", "--execute")
    done = run("groups", "reset-offsets", group, "--from-file", str(file), "--execute")
    assert done.status == 0, done.err
    assert committed(run, group) == {0: 5, 1: 0}


def test_several_groups_by_file(run: Run, group: str, tmp_path: Path) -> None:
    other = f"{group}-other"
    run("groups", "reset-offsets", other, "-t", f"{group}:0", "--to-offset", "3", "--execute")
    exported = run("groups", "reset-offsets", group, other, "--all-topics", "--to-current", "--export")
    assert sorted(exported.out.splitlines()) == [f"{group},{group},0,5", f"{other},{group},0,3"]
    assert (
        f"{other},{group},0,3"
        in run("groups", "reset-offsets", "--all-groups", "--all-topics", "--to-current", "--export").out
    )
    file = tmp_path / "offsets.csv"
    file.write_text(exported.out.replace(",0,5", ",0,6").replace(",0,3", ",0,4"))
    done = run("groups", "reset-offsets", group, other, "--from-file", str(file), "--execute")
    assert done.status == 0, done.err
    assert (committed(run, group), committed(run, other)) == ({0: 6}, {0: 4})
    # Lines of groups that are not named are left alone.
    one = run("groups", "reset-offsets", other, "--from-file", str(file), "--json").json
    assert [row["group"] for row in one["offsets"]] == [other]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("t,0\n", "line 1: expected TOPIC,PARTITION,OFFSET"),
        ("t,0,1\nt,zero,1\n", "line 2: partition and offset have to be numbers"),
        ("t,0,-1\n", "line 1: partition and offset have to be numbers"),
        ("t,0,1\nt,0,2\n", "line 2: t-0 of g is there twice"),
        ("t,0,99999999999999999999\n", "line 1: a partition or an offset is out of range"),
    ],
)
def test_a_file_that_is_none(run: Run, tmp_path: Path, content: str, error: str) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(content)
    failed = run("groups", "reset-offsets", "g", "--from-file", str(file))
    assert failed.status == 1
    assert failed.err.startswith(f"leafcuttr: {file}, {error}")


def test_a_group_that_is_in_use(run: Run, group: str, member: Callable[..., Any]) -> None:
    consumer = member(group, group)
    other = f"{group}-idle"
    words = ("-t", f"{group}:0", "--to-earliest", "--execute", "--json")
    done = run("groups", "reset-offsets", group, other, *words)
    assert done.status == 1
    assert [row["group"] for row in json.loads(done.out)["offsets"]] == [other]
    assert f"leafcuttr: {group}: the group is stable: " in done.err
    consumer.close()
    assert committed(run, group) == {0: 5}
    assert committed(run, other) == {0: 2}


def test_partitions_that_are_not_there(run: Run, group: str) -> None:
    failed = run("groups", "reset-offsets", group, "-t", "no-such-topic", "--to-latest")
    assert (failed.status, failed.err) == (1, "leafcuttr: there is no topic no-such-topic\n")
    failed = run("groups", "reset-offsets", group, "-t", f"{group}:9", "--to-latest")
    assert (failed.status, failed.err) == (1, f"leafcuttr: {group} has no partition 9\n")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("g",),
        ("g", "-t", "t"),
        ("g", "--to-latest"),
        ("-t", "t", "--to-latest"),
        ("g", "-t", "t", "--to-latest", "--to-earliest"),
        ("g", "-t", "t", "--all-topics", "--to-latest"),
        ("g", "--all-groups", "-t", "t", "--to-latest"),
        ("g", "-t", "t", "--to-offset", "-1"),
        ("g", "-t", "t", "--to-datetime", "yesterday"),
        ("g", "-t", "t", "--by-duration", "3"),
        ("g", "-t", "t", "--to-latest", "--execute", "--dry-run"),
        ("g", "-t", "t", "--to-latest", "--export", "--json"),
    ],
)
def test_wrong_usage(run: Run, words: tuple[str, ...]) -> None:
    assert run("groups", "reset-offsets", *words).status == 2
