"""`leafcuttr topics list` and `describe` against a real broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def test_only_those_that_match(run: Run, topic: str) -> None:
    run("topics", "create", f"{topic}.one", f"{topic}.two", f"{topic}-x")
    found = [each["topic"] for each in run("topics", "list", f"{topic}.*", "--json").json]
    assert found == [f"{topic}.one", f"{topic}.two"]


def test_internal_topics_are_shown_by_an_option(run: Run, topic: str, member: Callable[..., Any]) -> None:
    run("topics", "create", topic)
    member(f"group-{topic}", topic)
    assert "__consumer_offsets" not in run("topics", "list").out
    assert "__consumer_offsets" in run("topics", "list", "--internal").out
    assert "__consumer_offsets" not in run("topics", "offsets").out
    assert "__consumer_offsets" in run("topics", "offsets", "--internal").out
