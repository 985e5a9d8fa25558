"""`leafcuttr topics create`, `alter` and `delete` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
Fill = Callable[..., None]


def test_from_creation_to_deletion(run: Run, topic: str) -> None:
    created = run("topics", "create", topic, "-p", "3", "-c", "retention.ms=3600000")
    assert (created.status, created.out) == (0, f"created {topic}\n")
    assert {"topic": topic, "partitions": 3} in run("topics", "list", "--json").json
    assert f"{topic}  " in run("topics", "list").out
    (described,) = run("topics", "describe", topic, "--json").json
    place = {"leader": 1, "replicas": [1], "in_sync": [1], "first_offset": 0, "next_offset": 0}
    parts = [{"partition": number, **place} for number in range(3)]
    assert len(described.pop("id")) == 22
    assert described == {"topic": topic, "partitions": parts, "config": {"retention.ms": "3600000"}}
    assert f"{topic}: 3 partitions, retention.ms=3600000" in run("topics", "describe", topic).out
    deleted = run("topics", "delete", topic)
    assert (deleted.status, deleted.out) == (0, f"deleted {topic}\n")
    assert topic not in run("topics", "list").out


def test_that_exist_or_do_not(run: Run, topic: str) -> None:
    assert run("topics", "create", topic).status == 0
    again = run("topics", "create", topic)
    assert again.status == 1
    assert "(TOPIC_ALREADY_EXISTS)" in again.err
    assert run("topics", "create", topic, "--if-not-exists").out == f"{topic} exists already\n"
    missing = run("topics", "describe", "no-such-topic")
    assert (missing.status, missing.err) == (1, "leafcuttr: there is no topic no-such-topic\n")
    both = run("topics", "delete", topic, "no-such-topic")
    assert (both.status, both.out) == (1, f"deleted {topic}\n")
    assert "leafcuttr: no-such-topic: " in both.err
    assert "(UNKNOWN_TOPIC_OR_PARTITION)" in both.err
    gone = run("topics", "delete", topic, "--if-exists", "--json")
    assert (gone.status, gone.json) == (0, [{"topic": topic, "deleted": False, "error": None}])


def test_several_at_once_as_json(run: Run, topic: str) -> None:
    run("topics", "create", topic)
    done = run("topics", "create", topic, f"{topic}-b", "--json")
    assert done.status == 1
    refused, made = sorted(done.json, key=lambda each: each["topic"])
    assert (refused["topic"], refused["created"]) == (topic, False)
    assert "(TOPIC_ALREADY_EXISTS)" in refused["error"]
    assert made == {"topic": f"{topic}-b", "created": True, "error": None}


def test_a_dry_run_creates_nothing(run: Run, topic: str) -> None:
    assert run("topics", "create", topic, "--dry-run").out == f"would create {topic}\n"
    assert run("topics", "list", topic, "--json").json == []
    refused = run("topics", "create", topic, "--dry-run", "-c", "retention.ms=soon")
    assert refused.status == 1
    assert "retention.ms" in refused.err


def test_copies_and_places(run: Run, topic: str) -> None:
    assert run("topics", "create", topic, "-r", "1").status == 0
    assert "(INVALID_REPLICATION_FACTOR)" in run("topics", "create", f"{topic}-b", "-r", "3").err
    assert run("topics", "create", f"{topic}-c", "--replica-assignment", "1,1").status == 0
    assert len(run("topics", "describe", f"{topic}-c", "--json").json[0]["partitions"]) == 2
    assert run("topics", "create", f"{topic}-d", "--replica-assignment", "one").status == 2
    assert run("topics", "create", f"{topic}-d", "--replica-assignment", "1", "-p", "2").status == 2


def test_more_partitions(run: Run, topic: str) -> None:
    run("topics", "create", topic, "-p", "1")
    assert run("topics", "alter", topic, "-p", "4", "--dry-run").out == f"{topic} would have 4 partitions\n"
    assert run("topics", "alter", topic, "-p", "4").out == f"{topic} has 4 partitions\n"
    assert {"topic": topic, "partitions": 4} in run("topics", "list", "--json").json
    fewer = run("topics", "alter", topic, "-p", "2")
    assert fewer.status == 1
    assert "(INVALID_PARTITIONS)" in fewer.err
    assert run("topics", "alter", "no-such-topic", "-p", "2", "--if-exists").status == 0
    assert run("topics", "alter", "no-such-topic", "-p", "2").status == 1


@pytest.mark.parametrize(
    "words",
    [
        ("create",),
        ("create", "t", "-p", "0"),
        ("create", "t", "-c", "retention.ms"),
        ("alter", "t"),
        ("offsets", "t:x"),
        ("offsets", "t", "--time", "soon"),
        ("delete-records", "t"),
        ("delete-records", "--before", "1"),
        ("delete-records", "t", "--before", "-5"),
        ("list", "-X", "debug"),
        ("list", "-X", "no.such.property=1"),
        ("list", "--timeout", "0"),
    ],
)
def test_wrong_usage(run: Run, words: tuple[str, ...]) -> None:
    assert run("topics", *words).status == 2
