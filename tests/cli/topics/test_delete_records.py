"""`leafcuttr topics delete-records` against a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Fill = Callable[..., None]


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
