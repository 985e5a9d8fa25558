"""`leafcuttr topics offsets` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
Fill = Callable[..., None]


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
