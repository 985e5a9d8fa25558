"""What a worker process does."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from leafcuttr_registry.checks import work
from leafcuttr_registry.checks.work import Source
from leafcuttr_sdk.schemas import ParsedSchema, ResolvedReference, SchemaError
from support.column_schemas import Columns

NEW = Source("a,b", {})


def test_a_schema_is_read() -> None:
    assert work.read(Columns(), Source("b, a", {})) == ("b,a", "a,b", None)
    with pytest.raises(SchemaError):
        work.read(Columns(), Source("1", {}))


def test_in_which_direction_it_is_compared() -> None:
    others = [(Source("a", {}), True, False), (Source("a", {}), False, True), (Source("x", {}), True, True)]
    found = work.compare(Columns(), NEW, others)
    assert [len(each) for each in found] == [0, 1, 3]


def test_references_reach_the_format() -> None:
    found = {"b": ResolvedReference("x,y", {})}
    assert work.render(Columns(), Source("a,@b", found), "resolved") == "a,x,y"
    with pytest.raises(SchemaError):
        work.parse(Columns(), Source("a,@b", {}))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    work._parsed.clear()
    monkeypatch.setattr(work, "_MOST", 3)
    first = work.parse(Columns(), Source("a", {}))
    for text in ("b", "c"):
        work.parse(Columns(), Source(text, {}))
    assert work.parse(Columns(), Source("a", {})) is first
    work.parse(Columns(), Source("d", {}))
    assert list(work._parsed) == [("COLUMNS", "c"), ("COLUMNS", "a"), ("COLUMNS", "d")]
    work.parse(Columns(), Source("@a", {"a": ResolvedReference("a", {})}))
    assert len(work._parsed) == 3
    work._parsed.clear()


class Endless(Columns):
    """A format that follows what is nested wherever it leads."""

    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> ParsedSchema:
        return self.parse(text, references)


def test_what_is_nested_too_deeply_is_refused() -> None:
    for call in (
        lambda: work.read(Endless(), NEW),
        lambda: work.render(Endless(), NEW, "resolved"),
        lambda: work.compare(Endless(), NEW, []),
    ):
        with pytest.raises(SchemaError, match="nested too deeply"):
            call()


def test_what_was_read_is_not_read_again_to_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    work._parsed.clear()
    assert work.read(Columns(), Source("kept, once", {})).canonical == "kept,once"
    work._parsed.clear()

    def fails(*_: object) -> None:
        raise SchemaError("read again")

    monkeypatch.setattr(Columns, "parse", fails)
    new = Source("kept,once", {})
    assert work.compare(Columns(), new, [(new, True, True)]) == [[]]
    with pytest.raises(SchemaError):
        work.compare(Columns(), Source("kept,once", {"x": ResolvedReference("a", {})}), [])
    with pytest.raises(SchemaError, match="again"):
        work.render(Columns(), new, "resolved")


def test_canonical_texts_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_MOST", 2)
    work._canonical.clear()
    for text in ("a", "b", "a", "c"):
        work.read(Columns(), Source(text, {}))
    assert list(work._canonical) == [("COLUMNS", "a"), ("COLUMNS", "c")]
    monkeypatch.setattr(work, "_MOST_TEXT", 2)
    work.read(Columns(), Source("long", {}))
    work.read(Columns(), Source("@a", {"a": ResolvedReference("a", {})}))
    assert len(work._canonical) == 2
    work._canonical.clear()
