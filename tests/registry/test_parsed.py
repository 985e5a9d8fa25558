"""Schemas that are remembered as their formats read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from leafcuttr_registry import parsed
from leafcuttr_registry.parsed import ParsedSchemas
from leafcuttr_registry.subjects.content import Content
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from support.column_schemas import Columns, Head


class Counting(Columns):
    def __init__(self) -> None:
        self.parsed: list[str] = []

    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> Head:
        self.parsed.append(text)
        return super().parse(text, references)


def content(text: str) -> Content:
    return Content("COLUMNS", text)


def test_each_is_parsed_once() -> None:
    known, format = ParsedSchemas(), Counting()
    first = known.get(format, content("a"), {})
    assert known.get(format, content("a"), {}) is first
    assert known.get(format, content("b"), {}) is not first
    assert format.parsed == ["a", "b"]


def test_what_a_reference_means_may_change() -> None:
    """A version can be deleted for good, and its number be given to another schema."""
    known, format = ParsedSchemas(), Counting()
    before = known.get(format, content("@r"), {"r": ResolvedReference("x", {})})
    after = known.get(format, content("@r"), {"r": ResolvedReference("y", {})})
    assert (before.formatted("resolved"), after.formatted("resolved")) == ("x", "y")
    assert known.get(format, content("@r"), {"r": ResolvedReference("y", {})}) is after


def test_they_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed, "_MOST", 2)
    known, format = ParsedSchemas(), Counting()
    for text in ("a", "b", "a", "c", "a", "b"):
        known.get(format, content(text), {})
    assert format.parsed == ["a", "b", "c", "b"]  # b was used least lately when c came
    monkeypatch.setattr(parsed, "_MOST", 100)
    monkeypatch.setattr(parsed, "_MOST_TEXT", 4)
    known, format = ParsedSchemas(), Counting()
    for text in ("aa", "bb", "cc", "bb", "aa", "ddddddd", "ddddddd"):
        known.get(format, content(text), {})
    assert format.parsed == ["aa", "bb", "cc", "aa", "ddddddd"]


def test_an_error_is_not_remembered() -> None:
    known, format = ParsedSchemas(), Counting()
    wrong: Any = content("!")
    for _ in range(2):
        with pytest.raises(SchemaError):
            known.get(format, wrong, {})
    assert format.parsed == ["!", "!"]
