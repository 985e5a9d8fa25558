"""Files and the names in them: imports through references, built-in files, scopes, checks and their lines."""

from __future__ import annotations

import base64

import pytest

from leafcuttr_registry.protobuf.format import FORMAT
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from registry.protobuf.parsing import parsed, refused

P3 = 'syntax = "proto3";\n'


def test_a_reference_of_a_reference() -> None:
    inner = ResolvedReference("package c; message C {}", {})
    outer = ResolvedReference(
        'import "c.proto"; package b; message B { optional c.C c = 1; }', {"c.proto": inner}
    )
    schema = FORMAT.parse('import "b.proto"; message A { optional b.B b = 1; }', {"b.proto": outer})
    assert schema.codec().encode({"b": {"c": {}}}) == b"\x0a\x02\x0a\x00"
    # What is imported within a reference is not visible outside.
    with pytest.raises(SchemaError, match=r"c\.C is defined in c\.proto, which is not imported"):
        FORMAT.parse('import "b.proto"; message A { optional c.C c = 1; }', {"b.proto": outer})


def test_a_public_import_is_handed_on() -> None:
    inner = ResolvedReference("message C {}", {})
    outer = ResolvedReference('import public "c.proto";', {"c.proto": inner})
    schema = FORMAT.parse('import "b.proto"; message A { optional C c = 1; }', {"b.proto": outer})
    assert schema.record_name == "A"


def test_references_of_the_schema_serve_those_that_list_none() -> None:
    """Clients often list all files with the schema itself."""
    references = {
        "b.proto": ResolvedReference('import "c.proto"; message B { optional C c = 1; }', {}),
        "c.proto": ResolvedReference("message C {}", {}),
    }
    assert FORMAT.parse('import "b.proto"; message A { optional B b = 1; }', references).record_name == "A"


def test_a_file_that_two_import_is_linked_once() -> None:
    common = ResolvedReference("message C {}", {})
    references = {
        name: ResolvedReference(f'import "c.proto"; message {name[0].upper()} {{}}', {"c.proto": common})
        for name in ("a.proto", "b.proto")
    }
    FORMAT.parse('import "a.proto"; import "b.proto"; message M {}', references)


def test_a_reference_may_stand_for_a_built_in_file() -> None:
    own = {"google/type/date.proto": "package google.type; message Date { optional int32 only = 1; }"}
    schema = parsed('import "google/type/date.proto"; message M { optional google.type.Date d = 1; }', own)
    assert schema.codec().encode({"d": {"only": 1}}) == b"\x0a\x02\x08\x01"


@pytest.mark.parametrize(
    ("text", "saying", "line"),
    [
        ('import "x";', "the file x is no reference of the schema and not built in", 2),
        ('import "google/protobuf/any.proto";\nimport "google/protobuf/any.proto";', "is imported twice", 3),
        ('\nimport "default";', "imports itself", 3),
        ("message M {\nN n = 1; }", "N is not defined", 3),
        ("message M {\nint32 a = 1;\nint32 a = 2; }", "M.a is already defined in line 3", 4),
        ("message M {\nint32 a = 1;\nint32 b = 1; }", "the number 1 is that of a already", 4),
        ("message M {\nint32 a = 0; }", "numbers begin with 1", 3),
        ("message M {\nint32 a = 536870912; }", "numbers end with 536870911", 3),
        ("message M {\nint32 a = 19500; }", "19000 to 19999", 3),
        ("message M { reserved 2 to 4;\nint32 a = 3; }", "the number 3 is reserved", 3),
        ("message M { reserved 'a';\nint32 a = 3; }", "the name a is reserved", 3),
        ("message M { reserved 1 to 3,\n2; }", "overlap", 3),
        ("message M {\nreserved 3 to 1; }", "is empty", 3),
        ("message M {\noneof o {} }", "has no fields", 3),
        ("message M {\nmap<float, int32> a = 1; }", "the keys of maps", 3),
        ("message M {\nint32 a_b = 1;\nint32 aB = 2; }", "the same JSON name, aB", 4),
        ("enum E {\nA = 1; }", "is zero", 3),
        ("\nenum E {}", "has no constants", 3),
        ("enum E { A = 0;\nB = 0; }", "allow_alias = true allows it", 3),
        ("enum E { A = 0;\nE_A = 1; }", "the same constant", 3),
        ("enum E { A = 0; }\nenum F { A = 0; }", "A is already defined", 3),
        ("package a;\nmessage M { a.N n = 1; }", "a.N is not defined", 3),
        ("option nothing = 1;", "has no field nothing", 2),
        ('option java_package = "a";\noption java_package = "b";', "is set already", 3),
        ("option deprecated = 1;", "(bool) is not true or false", 2),
        ("option optimize_for = FAST;", "not a constant of google.protobuf.FileOptions.OptimizeMode", 2),
        ("message M {\nint32 a = 1 [(nothing) = 1]; }", "nothing is not defined", 3),
        ("message M {\nint32 a = 1 [packed = true]; }", "are packed", 3),
        ("message M {\nint32 a = 1 [lazy = true]; }", "only fields of messages are lazy", 3),
        ("message M {\nint32 a = 1 [jstype = JS_STRING]; }", "64 bits", 3),
        ("message M {\noption map_entry = true; }", "map_entry is not set by hand", 2),
        ("message M { int32 a = 1; }\nextend M { int32 b = 2; }", "nothing but options", 3),
        ("service S {\nrpc a(B) returns (B); }", "B is not defined", 3),
        ("message M { int32 a = 1;\na b = 2; }", "a is not defined", 3),
        ("package p; message M {\np b = 2; }", "p is not defined", 3),
    ],
)
def test_what_is_wrong_has_its_line(text: str, saying: str, line: int) -> None:
    refused(P3 + text, saying, line)


def test_what_is_wrong_in_a_reference_names_it() -> None:
    with pytest.raises(SchemaError, match=r"in the reference a\.proto, line 2: ") as caught:
        parsed('import "a.proto";', {"a.proto": "message M {\n x"})
    assert (caught.value.path, caught.value.line) == ("a.proto", 2)
    with pytest.raises(SchemaError, match=r"in the reference a\.proto, line 2: N is not defined"):
        parsed('import "a.proto";', {"a.proto": "message M {\noptional N n = 1; }"})


def test_names_of_two_files() -> None:
    with pytest.raises(SchemaError, match=r"line 2: M is already defined in a\.proto"):
        parsed('import "a.proto";\nmessage M {}', {"a.proto": "message M {}"})


def test_circles() -> None:
    references: dict[str, ResolvedReference] = {}
    references["b.proto"] = ResolvedReference('import "a.proto";', references)
    references["a.proto"] = ResolvedReference('\nimport "b.proto";', references)
    with pytest.raises(SchemaError, match="imports itself, through other files or directly"):
        FORMAT.parse('import "a.proto";', references)


def test_confluents_annotations() -> None:
    text = P3 + (
        'import "confluent/meta.proto";\nimport "confluent/type/decimal.proto";\n'
        "option (confluent.file_meta).doc = 'file';\n"
        "message M { confluent.type.Decimal d = 1 [(confluent.field_meta) = "
        "{ params: [{ key: 'precision', value: '8' }] tags: 'PII' }]; }"
    )
    schema = parsed(text)
    assert parsed(schema.canonical).canonical == schema.canonical
    assert parsed(schema.formatted("serialized")).normalized() == schema.normalized()
    assert "(confluent.field_meta)" in schema.formatted("ignore_extensions")


def test_the_numbers_of_confluents_types() -> None:
    """As its generated classes have them."""
    meta = parsed('import public "confluent/meta.proto";').codec()
    value = {
        "doc": "d",
        "params": {"k": "v"},
        "tags": ["t"],
        "rules": [{"name": "n", "doc": "o", "expr": "e", "sql": "s"}],
    }
    assert meta.encode(value) == (
        b"\x0a\x01d\x12\x06\x0a\x01k\x12\x01v\x1a\x01t\x22\x0c\x0a\x01n\x12\x01o\x1a\x01e\x22\x01s"
    )
    decimal = parsed('import public "confluent/type/decimal.proto";').codec()
    assert decimal.encode({"value": "AQ==", "precision": 8, "scale": 3}) == b"\x0a\x01\x01\x10\x08\x18\x03"
    text = parsed('import "confluent/meta.proto"; message M { option (confluent.message_meta).doc = "d"; }')
    assert base64.b64decode(text.formatted("serialized")).endswith(b"\x82\x44\x03\x0a\x01d")
