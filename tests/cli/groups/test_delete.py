"""`leafcuttr groups delete` and `delete-offsets` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.commands import commit

Run = Callable[..., Any]
Fill = Callable[..., None]
Member = Callable[..., Any]


def test_deleting_groups(run: Run, topic: str) -> None:
    run("topics", "create", topic)
    commit(run, topic, topic, 0)
    done = run("groups", "delete", topic, "nobody")
    assert (done.status, done.out) == (1, f"deleted {topic}\n")
    assert "leafcuttr: nobody: " in done.err
    assert "(GROUP_ID_NOT_FOUND)" in done.err
    assert topic not in [each["group"] for each in run("groups", "list", "--json").json]


def test_deleting_offsets(run: Run, topic: str, fill: Fill, member: Member) -> None:
    run("topics", "create", topic, "-p", "2")
    fill(topic, 1)
    run("groups", "reset-offsets", topic, "-t", topic, "--to-earliest", "--execute")
    done = run("groups", "delete-offsets", topic, f"{topic}:1")
    assert (done.status, done.out) == (0, f"{topic} has no offset for {topic}-1 now\n")
    (about,) = run("groups", "describe", topic, "--json").json
    assert [row["partition"] for row in about["offsets"]] == [0]
    member(topic, topic)
    refused = run("groups", "delete-offsets", topic, topic, "--json")
    assert refused.status == 1
    assert all("(GROUP_SUBSCRIBED_TO_TOPIC)" in each["error"] for each in refused.json)
    missing = run("groups", "delete-offsets", "nobody", topic)
    assert missing.status == 1
    assert missing.err == "leafcuttr: nobody: group id not found (GROUP_ID_NOT_FOUND)\n"
