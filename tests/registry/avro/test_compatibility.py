"""Whether a reader's schema reads what a writer's schema wrote."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_registry.avro.compatibility import MOST_DIFFERENCES, differences, path_of
from leafcuttr_registry.avro.rules import RULES
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import Difference, SchemaError
from support.avro_schemas import change, make
from support.avro_types import array, enum, fixed, map_of, record, schema_of, type_of
from support.gates_slice import sampled

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTED = {
    *((reader, "int") for reader in ("long", "float", "double")),
    *((reader, "long") for reader in ("float", "double")),
    *(("double", "float"), ("bytes", "string"), ("string", "bytes")),
}


def compare(reader: Any, writer: Any) -> list[Difference]:
    return differences(type_of(reader), type_of(writer), Budget())


def found(reader: Any, writer: Any) -> list[tuple[str, str]]:
    return [(one.type, one.path) for one in compare(reader, writer)]


@pytest.mark.parametrize("writer", PRIMITIVES)
@pytest.mark.parametrize("reader", PRIMITIVES)
def test_promotions(reader: str, writer: str) -> None:
    fits = reader == writer or (reader, writer) in PROMOTED
    assert found(reader, writer) == ([] if fits else [("TYPE_MISMATCH", "/")])
    for around in (array, map_of, lambda of: record(("x", of))):
        assert bool(found(around(reader), around(writer))) is not fits


NODE = record(("next", ["null", "Node"]), ("x", "int"), name="Node")
CASES: list[tuple[str, Any, Any, list[tuple[str, str]]]] = [
    ("another complex type", array("int"), map_of("int"), [("TYPE_MISMATCH", "/")]),
    ("items", array("int"), array("string"), [("TYPE_MISMATCH", "/items")]),
    ("values", map_of(array("int")), map_of(array("string")), [("TYPE_MISMATCH", "/values/items")]),
    ("a name", record(name="A"), record(name="B"), [("NAME_MISMATCH", "/name")]),
    ("a namespace", record(name="one.A"), record(name="two.A"), []),
    ("an alias", record(name="A", aliases=["B"]), record(name="B"), []),
    (
        "an alias elsewhere",
        record(name="one.A", aliases=["B"]),
        record(name="two.B"),
        [("NAME_MISMATCH", "/name")],
    ),
    (
        "an alias of the writer",
        record(name="A"),
        record(name="B", aliases=["A"]),
        [("NAME_MISMATCH", "/name")],
    ),
    (
        "a name and more",
        enum("A", name="F"),
        enum("B"),
        [("NAME_MISMATCH", "/name"), ("MISSING_ENUM_SYMBOLS", "/symbols")],
    ),
    (
        "both of fixed",
        fixed(1, name="G"),
        fixed(2),
        [("NAME_MISMATCH", "/name"), ("FIXED_SIZE_MISMATCH", "/size")],
    ),
    ("symbols in another order", enum("A", "B"), enum("B", "A"), []),
    (
        "the writer's default of an enum",
        enum("A"),
        enum("A", "B", default="A"),
        [("MISSING_ENUM_SYMBOLS", "/symbols")],
    ),
    ("the reader's default of an enum", enum("A", default="A"), enum("A", "B"), []),
    (
        "a field without default",
        record(("x", "int")),
        record(),
        [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0")],
    ),
    ("a field with default", record(("x", "int", {"default": 1})), record(), []),
    ("null as a default", record(("x", "null", {"default": None})), record(), []),
    (
        "a field's default in the writer",
        record(("x", "int")),
        record(("y", "int", {"default": 1})),
        [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0")],
    ),
    (
        "the default of an enum is none of a field",
        record(("x", enum("A", default="A"))),
        record(),
        [("TYPE_MISMATCH", "/fields/0/type")],
    ),
    ("a field that is gone", record(), record(("x", "int")), []),
    (
        "a field's type",
        record(("a", "int"), ("x", "int")),
        record(("x", "string"), ("a", "int")),
        [("TYPE_MISMATCH", "/fields/1/type")],
    ),
    (
        "a default does not help",
        record(("x", "int", {"default": 1})),
        record(("x", "string")),
        [("TYPE_MISMATCH", "/fields/0/type")],
    ),
    ("a field's alias", record(("y", "long", {"aliases": ["x"]})), record(("x", "int")), []),
    (
        "a field's alias and type",
        record(("y", "int", {"aliases": ["x"]})),
        record(("x", "long")),
        [("TYPE_MISMATCH", "/fields/0/type")],
    ),
    (
        "two candidates",
        record(("y", "int", {"aliases": ["x"]})),
        record(("x", "int"), ("y", "int")),
        [("READER_FIELD_AMBIGUOUS", "/fields/0")],
    ),
    (
        "two candidates in a branch that is not needed",
        [record(("y", "int", {"aliases": ["x"]}), name="A"), record(("y", "int"), name="B")],
        record(("x", "int"), ("y", "int"), name="B"),
        [("READER_FIELD_AMBIGUOUS", "/0/fields/0")],
    ),
    ("into a union", ["null", "string"], "string", []),
    ("into a union by promotion", ["null", "double"], "int", []),
    ("into no branch", ["null", "string"], "int", [("MISSING_UNION_BRANCH", "/")]),
    ("into an empty union", [], "int", [("MISSING_UNION_BRANCH", "/")]),
    ("out of a union", "double", ["int", "float"], []),
    ("out of one branch", "int", ["int", "string"], [("TYPE_MISMATCH", "/1")]),
    ("out of an empty union", "int", [], []),
    ("between unions", ["null", "long"], ["int", "null"], []),
    ("between unions, not all", ["null", "int"], ["null", "long", "int"], [("MISSING_UNION_BRANCH", "/1")]),
    (
        "in a field",
        record(("x", ["int"])),
        record(("x", ["string", "null"])),
        [("MISSING_UNION_BRANCH", "/fields/0/type/0"), ("MISSING_UNION_BRANCH", "/fields/0/type/1")],
    ),
    (
        "a branch by its name",
        [record(name="A"), record(("x", "int"), name="B")],
        [record(name="B")],
        [("MISSING_UNION_BRANCH", "/0")],
    ),
    ("a branch by its alias", [record(name="A", aliases=["B"])], [record(name="B")], []),
    ("a branch that may be read by another", [fixed(1), fixed(2, "one.F")], [fixed(2)], []),
    ("recursive", NODE, NODE, []),
    (
        "recursive, within",
        NODE,
        record(("next", ["null", "Node"]), ("x", "string"), name="Node"),
        [("TYPE_MISMATCH", "/fields/1/type")],
    ),
    (
        "recursive, named otherwise",
        NODE | {"name": "N", "fields": record(("next", ["null", "N"]), ("x", "int"))["fields"]},
        NODE,
        [("NAME_MISMATCH", "/name")],
    ),
    (
        "logical types",
        {"type": "int", "logicalType": "date"},
        {"type": "int", "logicalType": "time-millis"},
        [],
    ),
]


@pytest.mark.parametrize(
    ("reader", "writer", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_cases(reader: Any, writer: Any, expected: list[tuple[str, str]]) -> None:
    assert found(reader, writer) == expected


def test_what_is_said() -> None:
    (one,) = compare(record(("id", "long"), ("note", "string")), record(("id", "long")))
    assert one == Difference(
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "/fields/1",
        None,
        "note: string",
        "the field 'note' is not in the writer's record, and has no default",
    )
    (one,) = compare(enum("A", "C"), enum("A", "B", "C", "D"))
    assert (one.old, one.new) == ("A, B, C, D", "A, C")
    assert one.message == "the reader's enum E has neither the writer's B and D nor a default"
    (one,) = compare("int", array("string"))
    assert (one.old, one.new) == ("array of string", "int")
    assert one.message == "an array of string cannot be read as an int"


def test_the_branch_that_is_meant_says_why() -> None:
    def nullable(of: str) -> Any:
        return record(("x", ["null", record(("deep", ["null", record(("y", of), name="C")]), name="B")]))

    (one,) = compare(nullable("int"), nullable("string"))
    assert (one.type, one.path) == ("MISSING_UNION_BRANCH", "/fields/0/type/1")
    assert one.message.startswith(
        "no branch of the union of null and B can read a record B (at /fields/0/type/1/fields/0/type/1: "
    )
    assert (
        "(at /fields/0/type/1/fields/0/type/1/fields/0/type: a string cannot be read as an int)"
        in one.message
    )


def test_a_pair_that_was_tried_in_a_union_is_listed_where_it_is_met_again() -> None:
    def twice(size: int) -> Any:
        return record(("x", ["null", fixed(size)]), ("y", "F"), ("z", "F"))

    assert found(twice(1), twice(2)) == [
        ("MISSING_UNION_BRANCH", "/fields/0/type/1"),
        ("FIXED_SIZE_MISMATCH", "/fields/1/type/size"),
    ]


def test_paths() -> None:
    assert path_of(None) == "/"
    assert path_of((((None, "fields"), 3), "type")) == "/fields/3/type"


@settings(max_examples=sampled(150), deadline=None)
@given(st.randoms(use_true_random=False))
def test_each_schema_reads_itself_and_differences_have_rules(random: Random) -> None:
    made = make(random)
    try:
        reader, writer = (
            schema_of(made if isinstance(made, list | dict) else f'"{made}"'),
            schema_of(change(random, made)),
        )
    except SchemaError:
        return
    itself = {
        one.type for one in differences(reader.parsed.root, schema_of(reader.canonical).parsed.root, Budget())
    }
    assert not itself or "READER_FIELD_AMBIGUOUS" in itself
    rules = {rule.type for rule in RULES if rule.breaks}
    for one in differences(reader.parsed.root, writer.parsed.root, Budget()):
        assert one.type in rules and one.path.startswith("/") and one.message and "\n" not in one.message


# Too much


def wide(size: int, of: str) -> Any:
    return record(*((f"f{at}", of) for at in range(size)))


def test_no_more_than_some_are_listed() -> None:
    assert len(compare(wide(2000, "int"), wide(2000, "string"))) == MOST_DIFFERENCES


def test_types_that_are_shared_are_compared_once() -> None:
    """Each level names the one below it twice: two to the power of a hundred paths, through unions and past them."""

    def shared(of: str) -> Any:
        made: Any = record(("x", of), name="R0")
        for at in range(60):
            made = record(("a", made), ("b", f"R{at}"), ("c", ["null", f"R{at}"]), name=f"R{at + 1}")
        return made

    assert 0 < len(compare(shared("int"), shared("string"))) < 200
    assert compare(shared("long"), shared("int")) == []


@pytest.mark.long
def test_circles_of_two_lengths() -> None:
    """101 types against 103, each naming the next: more pairs than Python allows calls within one another."""

    def circle(length: int, of: str = "int") -> Any:
        made: Any = "R"
        for at in reversed(range(length)):
            name = "R" if at == 0 else f"R{at}"
            made = record(
                ("x", of), ("next", made), name=name, aliases=["R", *(f"R{one}" for one in range(103))]
            )
        return made

    assert compare(circle(101), circle(103)) == []


@pytest.mark.long
def test_unions_of_many_records() -> None:
    def union(size: int, of: str) -> Any:
        return [record(("x", of), name=f"R{at}") for at in range(size)]

    assert compare(union(500, "long"), union(500, "int")) == []
    assert len(compare(union(300, "int"), union(300, "string"))) == 300
    with pytest.raises(SchemaError, match="too complex"):
        compare(union(2000, "long"), union(2000, "int"))
