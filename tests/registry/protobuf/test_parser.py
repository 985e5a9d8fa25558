"""Statements: the tree that they are, and the lines of wrong ones. That protoc agrees is in test_protoc.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf import tree
from leafcuttr_registry.protobuf.parser import parse_file
from leafcuttr_sdk.schemas import SchemaError
from registry.protobuf.parsing import refused
from registry.protobuf.snippets import TEXTS


def file_of(text: str) -> tree.File:
    return parse_file(text, Budget(10**6))


def test_a_file() -> None:
    file = file_of('syntax = "proto3"; package a.b; import public "x.proto"; option java_package = "j";')
    assert (file.dialect, file.package) == ("proto3", "a.b")
    assert [(each.name, each.kind) for each in file.imports] == [("x.proto", "public")]
    assert file.options[0].value == tree.Text(b"j")


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("", "proto2"),
        ('syntax = "proto2";', "proto2"),
        ('edition = "2023";', "editions"),
        ('edition = "2024";', "editions"),
    ],
)
def test_dialects(text: str, dialect: str) -> None:
    assert file_of(text).dialect == dialect


def test_a_message_keeps_the_order_of_its_text() -> None:
    (message,) = file_of(
        'syntax = "proto3"; message M { oneof o { int32 a = 3; } message N {} map<string, N> b = 2; enum E { A = 0; } }'
    ).body
    assert isinstance(message, tree.Message)
    assert [each.name for each in message.body if not isinstance(each, tree.Extend)] == ["a", "N", "b", "E"]
    field = message.body[2]
    assert isinstance(field, tree.Field)
    assert field.type == tree.MapType("string", "N")
    assert message.oneofs[0].fields == [message.body[0]]


@pytest.mark.parametrize(
    ("text", "saying", "line"),
    [
        ('\nsyntax = "proto9";', "it is proto2 or proto3", 2),
        ('\nedition = "1999";', "it is one of 2023, 2024", 2),
        ("\nfoo", "foo where a statement", 2),
        ("package a;\npackage b;", "a second package", 2),
        ("import\nfoo;", "the name of a file, in quotes", 2),
        ("message\n{", "{ where the name of the message", 2),
        ("message M {\nint32 a = 1;", "a label is expected", 2),
        ("message M {\noptional int32 a 1;", "1 where = is expected", 2),
        ("message M {\noptional int32 a = 1", "the text ends where ; is expected", 2),
        ("message M {\n\noneof o { optional int32 a = 1; } }", "fields of a oneof have no label", 3),
        ("message M {\nrepeated map<int32, int32> a = 1; }", "maps have no label", 2),
        ("message M {\nextensions a; }", "where a number of a range is expected", 2),
        ("message M {\nreserved 1, 'a'; }", "where a number of a range is expected", 2),
        ("message M {\noptional int32 a = 1 [default = 1, default = 2]; }", "a second default", 2),
        ("message M {\noptional group g = 1 {} }", "a capital letter", 2),
        ("enum E {\nA = 2147483648; }", "is at most 2147483647", 2),
        ("service S {\nfoo", "rpc, option or }", 2),
        ("service S {\nrpc a(B) return (C); }", "return where returns is expected", 2),
        ("option a =\n;", "; where the value of an option", 2),
        ("option a = { b: [1,\n[2]] };", "a list within a list", 2),
        ("option a =\n-foo;", "only a number, inf and nan", 2),
        ("message A {\n" * 32 + "}" * 32, "nested more than 31 deep", 32),
        ("option a = " + "{a " * 101, "nested more than 100 deep", 1),
        ("option a = { a: " + "{a: [" * 60, "nested more than 100 deep", 1),
    ],
)
def test_what_is_wrong_has_its_line(text: str, saying: str, line: int) -> None:
    refused(text, saying, line)


@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_texts_with_a_piece_missing_or_twice(name: str, data: st.DataObject) -> None:
    """Whatever is cut out or repeated: a tree, or SchemaError with a line."""
    text = TEXTS[name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    changed = (
        text[:start]
        + data.draw(st.sampled_from(["", text[start:end] * 2, "{", "}", ";", "1", "a", '"']))
        + text[end:]
    )
    try:
        file_of(changed)
    except SchemaError as error:
        assert error.line is not None
        assert 1 <= error.line <= changed.count("\n") + 1
