"""Compatibility: Confluent's rules as a table of cases, and schemas and data that Hypothesis makes."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_registry.protobuf.compare import KINDS, breaking, differences
from leafcuttr_registry.protobuf.rules import RULES
from leafcuttr_registry.protobuf.schema import ProtobufSchema
from leafcuttr_sdk.schemas import DataError, SchemaError
from registry.protobuf.parsing import parsed
from support.gates_slice import sampled

P3 = 'syntax = "proto3"; '
P2 = 'syntax = "proto2"; '


def changes(
    old: str, new: str, olds: dict[str, str] | None = None, news: dict[str, str] | None = None
) -> set[str]:
    """As Confluent's tests write them: the type and the path. `olds` and `news` are references."""
    writer, reader = parsed(old, olds), parsed(new, news)
    return {f"{each.type} {each.path}" for each in differences(reader, writer)}


CASES: dict[str, tuple[str, str, set[str], bool]] = {
    "nothing": (P3 + "message M { int32 a = 1; }", P3 + "message M { int32 a = 1; }", set(), True),
    "proto2 becomes proto3": (
        P2 + "message M { optional int32 a = 1; }",
        P3 + "message M { int32 a = 1; }",
        set(),
        True,
    ),
    "the package": (
        P3 + "package a; message M {}",
        P3 + "package b; message M {}",
        {"PACKAGE_CHANGED #/"},
        False,
    ),
    "names in full": (
        P3 + "package a; message M { N n = 1; message N {} }",
        P3 + "package a; message M { .a.M.N n = 1; message N {} }",
        set(),
        True,
    ),
    "a field comes": (P3 + "message M {}", P3 + "message M { int32 a = 1; }", {"FIELD_ADDED #/M/1"}, True),
    "a field goes": (P3 + "message M { int32 a = 1; }", P3 + "message M {}", {"FIELD_REMOVED #/M/1"}, True),
    "another number": (
        P3 + "message M { int32 a = 1; }",
        P3 + "message M { int32 a = 2; }",
        {"FIELD_REMOVED #/M/1", "FIELD_ADDED #/M/2"},
        True,
    ),
    "a required field comes": (
        P2 + "message M {}",
        P2 + "message M { required int32 a = 1; }",
        {"REQUIRED_FIELD_ADDED #/M/1"},
        False,
    ),
    "a required field goes": (
        P2 + "message M { required int32 a = 1; }",
        P2 + "message M {}",
        {"REQUIRED_FIELD_REMOVED #/M/1"},
        False,
    ),
    "a string becomes required": (
        P2 + "message M { optional string a = 1; }",
        P2 + "message M { required string a = 1; }",
        {"REQUIRED_FIELD_ADDED #/M/1", "FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"},
        False,
    ),
    "a message becomes required": (
        P2 + "message M { optional N a = 1; message N {} }",
        P2 + "message M { required N a = 1; message N {} }",
        {"REQUIRED_FIELD_ADDED #/M/1"},
        False,
    ),
    "required by a feature": (
        'edition = "2023"; message M { int32 a = 1; }',
        'edition = "2023"; message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }',
        {"REQUIRED_FIELD_ADDED #/M/1"},
        False,
    ),
    "a field within": (
        P3 + "message M { message N { int32 a = 1; } }",
        P3 + "message M { message N { string a = 1; } }",
        {"FIELD_SCALAR_KIND_CHANGED #/M/N/1"},
        False,
    ),
    "a message goes within": (
        P3 + "message M { message N {} }",
        P3 + "message M {}",
        {"MESSAGE_REMOVED #/M/N"},
        False,
    ),
    "an enum becomes a number": (
        P3 + "message M { E a = 1; } enum E { A = 0; }",
        P3 + "message M { int32 a = 1; }",
        {"ENUM_REMOVED #/E"},
        True,
    ),
    "a number becomes a message": (
        P3 + "message M { int32 a = 1; }",
        P3 + "message M { N a = 1; } message N {}",
        {"FIELD_KIND_CHANGED #/M/1", "MESSAGE_ADDED #/N"},
        False,
    ),
    "a map becomes its entries": (
        P3 + "message M { map<string, int32> a = 1; }",
        P3 + "message M { repeated N a = 1; } message N { string key = 1; int32 value = 2; }",
        {"FIELD_KIND_CHANGED #/M/1", "MESSAGE_ADDED #/N"},
        False,
    ),
    "keys of a map": (
        P3 + "message M { map<string, int32> a = 1; }",
        P3 + "message M { map<int32, int32> a = 1; }",
        {"FIELD_SCALAR_KIND_CHANGED #/M/1"},
        False,
    ),
    "values of a map of the same group": (
        P3 + "message M { map<string, int32> a = 1; }",
        P3 + "message M { map<string, bool> a = 1; }",
        set(),
        True,
    ),
    "messages of a map": (
        P3 + "message M { map<string, A> a = 1; } message A {} message B {}",
        P3 + "message M { map<string, B> a = 1; } message A {} message B {}",
        {"FIELD_NAMED_TYPE_CHANGED #/M/1"},
        False,
    ),
    "a group becomes a message": (
        P2 + "message M { optional group A = 1 {} }",
        P2 + "message M { optional A a = 1; message A {} }",
        {"FIELD_KIND_CHANGED #/M/1", "MESSAGE_ADDED #/M/A"},
        False,
    ),
    "a message is delimited by a feature": (
        'edition = "2023"; message M { M a = 1; }',
        'edition = "2023"; message M { M a = 1 [features.message_encoding = DELIMITED]; }',
        {"FIELD_KIND_CHANGED #/M/1"},
        False,
    ),
    "a field of a group": (
        P2 + "message M { optional group A = 1 { optional int32 x = 1; } }",
        P2 + "message M { optional group A = 1 { optional float x = 1; } }",
        {"FIELD_SCALAR_KIND_CHANGED #/M/A/1", "FIELD_NAMED_TYPE_CHANGED #/M/1"},
        False,
    ),
    "numbers become many": (
        P3 + "message M { int32 a = 1; }",
        P3 + "message M { repeated int32 a = 1; }",
        {"FIELD_NUMERIC_LABEL_CHANGED #/M/1"},
        False,
    ),
    "strings become many": (
        P3 + "message M { string a = 1; }",
        P3 + "message M { repeated string a = 1; }",
        {"FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"},
        True,
    ),
    "messages become many": (
        P3 + "message M { M a = 1; }",
        P3 + "message M { repeated M a = 1; }",
        set(),
        True,
    ),
    "optional is said": (
        P3 + "message M { int32 a = 1; }",
        P3 + "message M { optional int32 a = 1; }",
        set(),
        True,
    ),
    "a oneof around one field": (
        P3 + "message M { int32 a = 1; int32 b = 2; }",
        P3 + "message M { oneof o { int32 a = 1; int32 c = 3; } int32 b = 2; }",
        {"ONEOF_ADDED #/M/o", "ONEOF_FIELD_ADDED #/M/o/3"},
        True,
    ),
    "a oneof around two fields": (
        P3 + "message M { int32 a = 1; int32 b = 2; }",
        P3 + "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        {"MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o", "ONEOF_ADDED #/M/o"},
        False,
    ),
    "a field into a oneof that has another name": (
        P3 + "message M { int32 a = 1; oneof o { int32 b = 2; } }",
        P3 + "message M { oneof p { int32 a = 1; int32 b = 2; } }",
        {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/p", "ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/p"},
        False,
    ),
    "two oneofs become one": (
        P3 + "message M { oneof o { int32 a = 1; } oneof p { int32 b = 2; } }",
        P3 + "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        {"FIELD_MOVED_TO_EXISTING_ONEOF #/M/o", "ONEOF_REMOVED #/M/p"},
        False,
    ),
    "a oneof has another name": (
        P3 + "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        P3 + "message M { oneof p { int32 a = 1; int32 b = 2; } }",
        {"ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/p"},
        True,
    ),
    "a oneof has another name and one field less": (
        P3 + "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        P3 + "message M { oneof p { int32 a = 1; } }",
        {"ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/p", "ONEOF_FIELD_REMOVED #/M/o/2"},
        False,
    ),
    "a oneof goes": (
        P3 + "message M { oneof o { int32 a = 1; } }",
        P3 + "message M {}",
        {"ONEOF_REMOVED #/M/o"},
        True,
    ),
    "a field of a oneof has another type": (
        P3 + "message M { oneof o { int32 a = 1; } }",
        P3 + "message M { oneof p { string a = 1; } }",
        {"ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/p", "FIELD_SCALAR_KIND_CHANGED #/M/p/1"},
        False,
    ),
    "a field leaves its oneof with another type": (
        P3 + "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        P3 + "message M { oneof o { int32 a = 1; } string b = 2; }",
        {"ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/2", "FIELD_SCALAR_KIND_CHANGED #/M/2"},
        False,
    ),
    "a message that refers to itself": (
        P3 + "message M { M m = 1; N n = 2; } message N { M m = 1; int32 a = 2; }",
        P3 + "message M { M m = 1; N n = 2; } message N { M m = 1; sint32 a = 2; }",
        {
            "FIELD_SCALAR_KIND_CHANGED #/N/2",
            "FIELD_NAMED_TYPE_CHANGED #/M/1",
            "FIELD_NAMED_TYPE_CHANGED #/M/2",
            "FIELD_NAMED_TYPE_CHANGED #/N/1",
        },
        False,
    ),
    "a reserved number is used": (
        P3 + "message M { reserved 5 to 9; }",
        P3 + "message M { int32 a = 7; }",
        {"RESERVED_NUMBER_USED #/M/7", "FIELD_ADDED #/M/7"},
        True,
    ),
    "a required enum loses a constant": (
        P2 + "message M { required E a = 1; } enum E { A = 0; B = 1; }",
        P2 + "message M { required E a = 1; } enum E { A = 0; }",
        {"REQUIRED_ENUM_CONST_REMOVED #/M/1", "ENUM_CONST_REMOVED #/E/1"},
        False,
    ),
    "a required number becomes a closed enum": (
        P2 + "message M { required int32 a = 1; } enum E { A = 0; }",
        P2 + "message M { required E a = 1; } enum E { A = 0; }",
        {"REQUIRED_ENUM_CONST_REMOVED #/M/1"},
        False,
    ),
    "well-known types": (
        P3 + 'import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }',
        P3 + 'import "google/protobuf/duration.proto"; message M { google.protobuf.Duration t = 1; }',
        {"FIELD_NAMED_TYPE_CHANGED #/M/1"},
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_case(name: str) -> None:
    old, new, expected, compatible = CASES[name]
    assert changes(old, new) == expected
    assert (breaking(parsed(new), parsed(old)) == []) == compatible


KIND_PAIRS = [(a, b) for a in KINDS for b in KINDS if a != "enum" and b != "enum"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("old", "new"), KIND_PAIRS)
def test_scalars_of_one_group_are_read_as_one_another(old: str, new: str) -> None:
    found = changes(P3 + f"message M {{ {old} a = 1; }}", P3 + f"message M {{ {new} a = 1; }}")
    assert (found == set()) == (KINDS[old] == KINDS[new])


IMPORTING = P3 + 'import "n.proto"; message M { p.N n = 1; }'


def test_messages_of_references_are_compared() -> None:
    old, new = (
        "package p; message N { optional int32 a = 1; }",
        "package p; message N { optional bytes a = 1; }",
    )
    found = changes(IMPORTING, IMPORTING, {"n.proto": old}, {"n.proto": new})
    assert found == {"FIELD_SCALAR_KIND_CHANGED #/N/1", "FIELD_NAMED_TYPE_CHANGED #/M/1"}
    assert changes(IMPORTING, IMPORTING, {"n.proto": old}, {"n.proto": old}) == set()


def test_a_reference_may_have_another_package() -> None:
    old = {"n.proto": "package p; message N { optional int32 a = 1; }"}
    new = {"n.proto": "package q; message N { optional int32 a = 1; }"}
    assert changes(IMPORTING, IMPORTING.replace("p.N", "q.N"), old, new) == set()


def test_old_and_new_are_the_writers_and_the_readers() -> None:
    writer, reader = parsed(P3 + "message M { int32 a = 1; }"), parsed(P3 + "message M { string a = 1; }")
    (found,) = breaking(reader, writer)
    assert (found.old, found.new) == ("int32", "string")
    assert "was of int32 and is of string" in found.message


@pytest.mark.long
def test_a_chain_of_messages_needs_no_stack() -> None:
    def chain(last: str) -> str:
        links = "".join(f"message M{at} {{ M{at + 1} a = 1; }}" for at in range(3000))
        return P3 + links + f"message M3000 {{ {last} a = 1; }}"

    found = breaking(parsed(chain("string")), parsed(chain("int32")))
    assert len(found) == 3001


def test_schemas_that_are_too_complex(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = parsed(P3 + "message M { " + "".join(f"int32 a{at} = {at};" for at in range(1, 100)) + "}")
    monkeypatch.setattr("leafcuttr_registry.protobuf.compare.COMPARE_STEPS", 100)
    with pytest.raises(SchemaError, match="too complex"):
        breaking(schema, schema)


# Hypothesis: pairs of schemas, and data of the first.

SCALARS = [name for name in KINDS if name != "enum"]
TYPES = [*SCALARS, "E", "F", "N", "map<string, int32>", "map<int32, N>", "map<bool, E>"]


@st.composite
def fields(draw: st.DrawFn) -> str:
    """The body of a message of proto2."""
    lines: list[str] = []
    ahead: list[str] = []
    for number in draw(st.lists(st.integers(1, 6), unique=True, max_size=5)):
        type_ = draw(st.sampled_from(TYPES))
        name = draw(st.sampled_from(["a", "b"])) + str(number)
        if type_.startswith("map"):
            lines.append(f"{type_} {name} = {number};")
        elif draw(st.integers(0, 3)) == 0:
            ahead.append(f"{type_} {name} = {number};")
        else:
            label = draw(st.sampled_from(["optional", "optional", "repeated", "required"]))
            lines.append(f"{label} {type_} {name} = {number};")
    if ahead:
        lines.append(f"oneof {draw(st.sampled_from('op'))} {{ {' '.join(ahead)} }}")
    return " ".join(lines)


@st.composite
def schemas(draw: st.DrawFn) -> str:
    constants = "".join(f"E{number} = {number};" for number in draw(st.sets(st.integers(1, 3))))
    return (
        f"{P2} message M {{ {draw(fields())} }} message N {{ {draw(fields())} }} "
        f"enum E {{ E0 = 0; {constants} }} enum F {{ F0 = 0; F1 = 1; }}"
    )


def filled(draw: st.DrawFn, message: Any, depth: int = 0) -> None:
    """Sets fields of a message, the required ones always."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and not draw(st.booleans()):
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            items = getattr(message, field.name)
            if value.message_type is not None:
                if depth < 2:
                    filled(draw, items[scalar(draw, key)], depth + 1)
            else:
                items[scalar(draw, key)] = scalar(draw, value)
        elif field.message_type is not None:
            if depth < 2 or field.is_required:
                target = getattr(message, field.name)
                target = target.add() if field.is_repeated else target
                if not field.is_repeated:
                    target.SetInParent()
                filled(draw, target, depth + 1) if depth < 4 else None
        elif field.is_repeated:
            getattr(message, field.name).extend(scalar(draw, field) for _ in range(draw(st.integers(0, 3))))
        else:
            setattr(message, field.name, scalar(draw, field))


RANGES = {"int32": 31, "sint32": 31, "sfixed32": 31, "int64": 63, "sint64": 63, "sfixed64": 63}


def scalar(draw: st.DrawFn, field: Any) -> Any:
    if field.enum_type is not None:
        return draw(st.sampled_from([value.number for value in field.enum_type.values]))
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        # bytes that a string takes: the rule holds for these (updating.md).
        text = draw(st.text(max_size=5))
        return text.encode() if field.type == field.TYPE_BYTES else text
    if kind == field.CPPTYPE_BOOL:
        return draw(st.booleans())
    if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return draw(st.floats(width=32))
    signed = kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64)
    bits = 32 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    return draw(
        st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)
    )


def class_of(schema: ProtobufSchema) -> Any:
    pool = schema.pool
    assert pool is not None
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))


def is_complete(message: Any) -> bool:
    return bool(message.IsInitialized())


@settings(max_examples=sampled(200), deadline=None)
@given(schemas(), schemas(), st.data())
def test_what_is_compatible_is_read(old: str, new: str, data: st.DataObject) -> None:
    try:
        writer, reader = parsed(old), parsed(new)
    except SchemaError:
        return
    written = class_of(writer)()
    data.draw(st.composite(lambda draw: filled(draw, written))())
    if not is_complete(written):
        return
    raw = written.SerializeToString()
    found = breaking(reader, writer)
    try:
        reader.codec().check(raw)
    except DataError:
        assert found, (old, new, raw)
        return
    if found:
        assert {each.type for each in found} <= {rule.type for rule in RULES if rule.breaks}
        assert all(each.message for each in found)
        return
    # Nothing is lost that the reader has a field for: what it reads is what it would have written.
    again = class_of(reader).FromString(raw)
    for field, _ in again.ListFields():
        assert any(field.number == other.number for other, _ in written.ListFields())


@settings(max_examples=sampled(100), deadline=None)
@given(schemas())
def test_a_schema_can_be_read_by_itself(text: str) -> None:
    try:
        schema = parsed(text)
    except SchemaError:
        return
    assert differences(schema, schema) == []
    assert differences(parsed(schema.canonical), schema) == []
    assert breaking(parsed(schema.normalized()), schema) == []
    assert breaking(parsed(schema.formatted("serialized")), schema) == []
