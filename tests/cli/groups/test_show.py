"""`leafcuttr groups` against a real broker: listing, describing, deleting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.commands import commit

Run = Callable[..., Any]
Fill = Callable[..., None]
Member = Callable[..., Any]


def test_lag_of_a_group_without_members(run: Run, topic: str, fill: Fill) -> None:
    run("topics", "create", topic, "-p", "2")
    fill(topic, 5)
    commit(run, topic, topic, 2)
    (about,) = run("groups", "describe", topic, "--json").json
    assert about["coordinator"]["id"] == 1
    del about["coordinator"]
    row = {"topic": topic, "partition": 0, "committed": 2, "end": 5, "lag": 3}
    nobody = {"member": None, "client": None, "host": None}
    assert about == {
        "group": topic,
        "state": "empty",
        "type": "classic",
        "assignor": None,
        "lag": 3,
        "members": [],
        "offsets": [row | nobody],
    }
    head, columns, line = run("groups", "describe", topic).out.splitlines()
    assert head == f"{topic}: empty, 0 members"
    assert columns.split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST"]
    assert line.split() == [topic, "0", "2", "5", "3", "-", "-"]
    assert {"group": topic, "state": "empty", "type": "classic"} in run("groups", "list", "--json").json


def test_members_and_what_they_read(run: Run, topic: str, fill: Fill, member: Member) -> None:
    run("topics", "create", topic, "-p", "2")
    fill(topic, 1)
    consumer = member(topic, topic)
    (about,) = run("groups", "describe", topic, "--json").json
    assert (about["state"], about["assignor"]) == ("stable", "range")
    (each,) = about["members"]
    assert (each["client"], each["host"]) == ("probe", "127.0.0.1")
    assert each["partitions"] == [[topic, 0], [topic, 1]]
    assert {row["member"] for row in about["offsets"]} == {each["member"]}
    assert {row["lag"] for row in about["offsets"]} == {None}  # nothing is committed yet
    shown = run("groups", "describe", topic, "--members").out.splitlines()
    assert shown[0] == f"{topic}: stable, 1 member, assignor range"
    assert shown[2].split() == [each["member"], "probe", "127.0.0.1", "-", f"{topic}:0,1"]
    assert {"group": topic, "state": "stable", "type": "classic"} in run(
        "groups", "list", "--state", "stable", "--json"
    ).json
    assert topic not in run("groups", "list", "--state", "empty").out
    refused = run("groups", "delete", topic)
    assert refused.status == 1
    assert "(NON_EMPTY_GROUP)" in refused.err
    consumer.close()


def test_all_groups_one_line_each(run: Run, topic: str, fill: Fill) -> None:
    run("topics", "create", topic)
    fill(topic, 3)
    for group in (f"{topic}-a", f"{topic}-b"):
        commit(run, group, topic, 1)
    shown = run("groups", "describe", "--all-groups", "--state").out.splitlines()
    assert shown[0].split() == ["GROUP", "STATE", "TYPE", "ASSIGNOR", "COORDINATOR", "MEMBERS", "LAG"]
    rows = {line.split()[0]: line.split()[1:] for line in shown[1:]}
    assert rows[f"{topic}-a"] == rows[f"{topic}-b"] == ["empty", "classic", "-", "1", "0", "2"]


def test_a_group_that_is_not_there(run: Run, topic: str) -> None:
    failed = run("groups", "describe", "nobody")
    assert (failed.status, failed.out, failed.err) == (1, "", "leafcuttr: there is no group nobody\n")
    run("topics", "create", topic)
    commit(run, topic, topic, 0)
    both = run("groups", "describe", "nobody", topic, "--json")
    assert (both.status, [about["group"] for about in both.json]) == (1, [topic])


def test_offsets_of_a_deleted_topic_do_not_hide_the_group(run: Run, topic: str, fill: Fill) -> None:
    run("topics", "create", topic, f"{topic}-other")
    fill(topic, 1)
    commit(run, topic, topic, 1)
    commit(run, topic, f"{topic}-other", 0)
    run("topics", "delete", topic)
    assert run("groups", "describe", topic).status == 0


def test_wrong_usage(run: Run) -> None:
    for words in (
        ("describe",),
        ("describe", "g", "--all-groups"),
        ("delete",),
        ("delete-offsets", "g"),
        ("list", "--type", "odd"),
    ):
        assert run("groups", *words).status == 2, words
