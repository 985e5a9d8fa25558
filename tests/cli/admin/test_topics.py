"""`leafcuttr topics` against a real broker: what it prints, what it changes, how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
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


def test_only_those_that_match(run: Run, topic: str) -> None:
    run("topics", "create", f"{topic}.one", f"{topic}.two", f"{topic}-x")
    found = [each["topic"] for each in run("topics", "list", f"{topic}.*", "--json").json]
    assert found == [f"{topic}.one", f"{topic}.two"]


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


def test_internal_topics_are_shown_when_asked(run: Run, topic: str, member: Callable[..., Any]) -> None:
    run("topics", "create", topic)
    member(f"group-{topic}", topic)
    assert "__consumer_offsets" not in run("topics", "list").out
    assert "__consumer_offsets" in run("topics", "list", "--internal").out
    assert "__consumer_offsets" not in run("topics", "offsets").out
    assert "__consumer_offsets" in run("topics", "offsets", "--internal").out


def test_offsets_by_time(run: Run, topic: str, fill: Fill) -> None:
    run("topics", "create", topic, "-p", "2", "-c", "retention.ms=-1")
    fill(topic, timestamps=(1_700_000_000_000, 1_700_000_020_000, 1_700_000_010_000))

    def offsets(*words: str) -> list[Any]:
        found = run("topics", "offsets", topic, "--json", *words)
        assert found.status == 0, found.err
        assert [(each["topic"], each["partition"]) for each in found.json] == [(topic, 0), (topic, 1)]
        return [each["offset"] for each in found.json]

    assert offsets() == [3, 0]
    assert offsets("--time", "earliest") == [0, 0]
    assert offsets("--time", "-2") == [0, 0]
    assert offsets("--time", "max-timestamp") == [1, None]
    assert offsets("--time", "1700000005000") == [1, None]
    assert offsets("--time", "2023-11-14T22:13:20Z") == [0, None]  # the first of them
    assert offsets("--time", "2023-11-14T23:13:20.001+01:00") == [1, None]
    assert offsets("--time", "2023-11-15") == [None, None]
    (row,) = run("topics", "offsets", f"{topic}:0", "--time", "max-timestamp").out.splitlines()[1:]
    assert row.split() == [topic, "0", "1", "2023-11-14T22:13:40.000Z"]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("offsets", "no-such-topic"), "there is no topic no-such-topic"),
        (("offsets", "{topic}:7"), "{topic} has no partition 7"),
    ],
)
def test_offsets_of_what_is_not_there(run: Run, topic: str, words: tuple[str, ...], error: str) -> None:
    run("topics", "create", topic)
    failed = run("topics", *(word.format(topic=topic) for word in words))
    assert (failed.status, failed.err) == (1, f"leafcuttr: {error.format(topic=topic)}\n")


def test_records_are_deleted_up_to_an_offset(run: Run, topic: str, fill: Fill) -> None:
    run("topics", "create", topic, "-p", "2", "-c", "retention.ms=-1")
    fill(topic, timestamps=(1_700_000_000_000, 1_700_000_010_000, 1_700_000_020_000, 1_700_000_030_000))
    fill(topic, 2, partition=1)
    done = run("topics", "delete-records", f"{topic}:0", "--before", "1")
    assert (done.status, done.out) == (0, f"{topic}-0 begins at 1\n")
    done = run("topics", "delete-records", f"{topic}:0", "--before", "2023-11-14T22:13:40Z", "--json")
    assert done.json == [{"partition": f"{topic}-0", "first_offset": 2, "error": None}]
    beyond = run("topics", "delete-records", f"{topic}:0", "--before", "99")
    assert beyond.status == 1
    assert "(OFFSET_OUT_OF_RANGE)" in beyond.err
    done = run("topics", "delete-records", topic, "--before", "latest")
    assert done.out == f"{topic}-0 begins at 4\n{topic}-1 begins at 2\n"
    first = run("topics", "offsets", topic, "--time", "earliest", "--json").json
    assert [each["offset"] for each in first] == [4, 2]


def test_records_are_deleted_by_the_file_of_kafkas_tool(
    run: Run, topic: str, fill: Fill, tmp_path: Path
) -> None:
    run("topics", "create", topic, "-p", "2")
    fill(topic, 3)
    fill(topic, 3, partition=1)
    parts = [
        {"topic": topic, "partition": 0, "offset": 2},
        {"topic": topic, "partition": 1, "offset": -1},
    ]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": parts, "version": 1}))
    done = run("topics", "delete-records", "--offset-json-file", str(file))
    assert (done.status, done.out) == (0, f"{topic}-0 begins at 2\n{topic}-1 begins at 3\n")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("nothing", 'expected {"version": 1'),
        ("[]", 'expected {"version": 1'),
        ('{"version": 1, "partitions": [{"topic": "t", "partition": 0}]}', 'expected {"version": 1'),
        ('{"version": 2, "partitions": []}', "version 2 of the file is not known"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": -2}]}', "t-0: -2 is no offset"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "offset": 1},'
            ' {"topic": "t", "partition": 0, "offset": 2}]}',
            "t-0 is there twice",
        ),
    ],
)
def test_a_file_that_is_none(run: Run, tmp_path: Path, content: str, error: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    failed = run("topics", "delete-records", "--offset-json-file", str(file))
    assert failed.status == 1
    assert failed.err.startswith(f"leafcuttr: {file}: {error}")


def test_settings_of_the_client_from_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# how to get in\nclient.id = probe\nsecurity.protocol=SASL_PLAINTEXT\n\n")
    # The file says SASL without a password; what stands on the line wins.
    refused = run("topics", "list", "-F", str(file))
    assert refused.status != 0
    assert run("topics", "list", "-F", str(file), "-X", "security.protocol=plaintext").status == 0
    file.write_text("sasl.password\n")
    wrong = run("topics", "list", "--client-config", str(file))
    assert wrong.status == 2
    assert "a line is no KEY=VALUE" in wrong.err
    assert run("topics", "list", "-F", str(tmp_path / "nothing")).status == 2


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
