"""What a worker process does."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from time import process_time

import pytest

from leafcuttr_registry.checks import work
from leafcuttr_registry.checks.work import Source
from leafcuttr_registry.formats import formats
from leafcuttr_sdk.schemas import Difference, ParsedSchema, ResolvedReference, SchemaError
from leafcuttr_sdk.workers import WorkerDeadlineError
from support.column_schemas import Columns, Head

FORMATS = {each.name: each for each in formats()}
NEW = Source("a,b", {})


def test_a_schema_is_read() -> None:
    assert work.read(Columns(), Source("b, a", {})) == ("b,a", "a,b", None)
    with pytest.raises(SchemaError):
        work.read(Columns(), Source("1", {}))


def test_in_which_direction_it_is_compared() -> None:
    for text, backward, forward, reasons in (
        ("a", True, False, 0),
        ("a", False, True, 1),
        ("x", True, True, 3),
    ):
        (found,) = work.compare(Columns(), NEW, [(Source(text, {}), backward, forward)])
        assert len(found) == reasons


def test_it_ends_with_the_first_that_has_reasons_and_when_its_time_is_used_up() -> None:
    good, bad = (NEW, True, True), (Source("x", {}), True, True)
    assert [bool(each) for each in work.compare(Columns(), NEW, [good, good, bad, good])] == [
        False,
        False,
        True,
    ]
    assert work.compare(Columns(), NEW, [good] * 3, False, 0) == [[]]
    assert work.compare(Columns(), NEW, [], False, 0) == []


PREPARED = """
import pickle, sys
from leafcuttr_registry.checks import work
from leafcuttr_registry.formats import formats

TEXTS = {{
    "AVRO": '{{"type": "record", "name": "R", "fields": [{{"name": "a", "type": "int"}}]}}',
    "JSON": '{{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {{"a": {{"format": "date"}}}}}}',
    "PROTOBUF": 'import "google/protobuf/timestamp.proto"; message M {{ repeated google.protobuf.Timestamp a = 1; }}',
}}
(format,) = (pickle.loads(pickle.dumps(each)) for each in formats() if each.name == {name!r})
source = work.Source(TEXTS[format.name], {{}})
within = work.processor_limit

def counted(seconds):
    before.update(sys.modules)
    return within(seconds)

before = set()
work.processor_limit = counted
work.within(5.0, work.read, format, (source,))
print(len(set(sys.modules) - before))
"""


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.long] if each != "JSON" else []) for each in sorted(FORMATS)],
)
def test_a_format_is_imported_before_its_time_counts(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PREPARED.format(name=name)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) <= 1


class Busy(Columns):
    def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> Head:
        while text == "slow":
            pass
        return super().parse(text, references)


def test_what_is_limited_is_the_work_of_the_processor() -> None:
    done = work.within(10.0, work.read, Columns(), (Source("x,y", {}),))
    assert done.value == ("x,y", "x,y", None) and 0 < done.used_s < 10
    assert len(list(work._parsed)) > 0
    with pytest.raises(WorkerDeadlineError, match=r"^it used more than 0\.02 s of the processor$"):
        work.within(0.02, work.read, Busy(), (Source("slow", {}),))
    assert len(list(work._parsed)) == len(list(work._canonical)) == 0
    assert work.within(10.0, work.read, Columns(), (Source("x,y", {}),)).value == ("x,y", "x,y", None)


def test_time_without_the_processor_does_not_count() -> None:
    class Waits(Columns):
        def parse(self, text: str, references: Mapping[str, ResolvedReference]) -> Head:
            waited.wait(0.1)
            return super().parse(text, references)

    waited = threading.Event()
    assert work.within(0.05, work.read, Waits(), (Source("a,c", {}),)).used_s < 0.05


def test_a_format_is_prepared_once_and_outside_the_limit() -> None:
    class Prepared(Columns):
        name = "PREPARED"
        calls = 0

        def prepare(self) -> None:
            Prepared.calls += 1
            until = process_time() + 0.06
            while process_time() < until:
                pass

    for _ in range(2):
        assert work.within(0.05, work.read, Prepared(), (Source("p,q", {}),)).used_s < 0.05
    assert Prepared.calls == 1


class Lenient(Columns):
    def lenient_differences(self, reader: ParsedSchema, writer: ParsedSchema) -> Sequence[Difference]:
        return self.differences(reader, writer)[:1]


def test_a_format_may_be_lenient() -> None:
    pairs = [(Source("x", {}), True, True)]
    for format, lenient, reasons in ((Lenient(), True, 2), (Lenient(), False, 3), (Columns(), True, 3)):
        (found,) = work.compare(format, NEW, pairs, lenient)
        assert len(found) == reasons


@pytest.mark.parametrize(
    "format, text, names",
    [
        ("AVRO", '{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}', {"a"}),
        ("AVRO", '"int"', set()),
        ("JSON", '{"properties":{"a":{"properties":{"deep":{}}},"$b":{}}}', {"a", "$b"}),
        ("JSON", "true", set()),
        (
            "PROTOBUF",
            'syntax = "proto3"; message A { int32 a = 1; message C { int32 c = 1; } oneof x { int32 o = 2; } } '
            "message B { int32 b = 1; }",
            {"a", "b"},
        ),
    ],
)
def test_the_fields_of_the_top_level(format: str, text: str, names: set[str]) -> None:
    assert work.fields(FORMATS[format], Source(text, {})) == names


def test_fields_of_a_format_that_does_not_tell_them_and_names_that_are_not_allowed() -> None:
    assert work.fields(Columns(), NEW) == frozenset()
    with pytest.raises(SchemaError, match=r"Field names cannot start with \$\$ prefix") as caught:
        work.fields(FORMATS["JSON"], Source('{"properties":{"$$a":{}}}', {}))
    assert caught.value.path == "/properties/$$a"


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


def test_all_texts_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_MOST_TEXTS", 4)
    work._parsed.clear()
    for text in ("aa", "b", "aa", "cc"):
        work.parse(Columns(), Source(text, {}))
    assert list(work._parsed) == [("COLUMNS", "aa"), ("COLUMNS", "cc")]
    work._parsed.clear()
    for text in ("dddd", "e"):
        work.parse(Columns(), Source(text, {}))
    assert list(work._parsed) == [("COLUMNS", "e")]
    work._parsed.clear()
