"""Tags that stand in schemas: found, added and removed, in each of the formats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from leafcuttr_registry.checks import work
from leafcuttr_registry.checks.work import Source
from leafcuttr_registry.formats import formats
from leafcuttr_registry.inline_tags import TaggedPlace, Tags
from leafcuttr_registry.protobuf.builtin import TEXTS
from leafcuttr_sdk.schemas import SchemaError
from support.column_schemas import Columns

FORMATS = {each.name: each for each in formats()}

INNER = {"type": "record", "name": "I", "fields": [{"name": "g", "type": "int"}]}
AVRO = json.dumps(
    {
        "type": "record",
        "name": "n.R",
        "fields": [
            {"name": "f", "type": ["null", {"type": "array", "items": INNER}]},
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
            {"name": "m", "type": {"type": "map", "values": {"type": "record", "name": "o.M", "fields": []}}},
        ],
    }
)
JSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "object", "properties": {"b": {"type": "string"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {}}}},
        "some": {
            "oneOf": [
                {"type": "string"},
                {"type": "object", "properties": {"later": {}}, "title": "b"},
                {"type": "object", "properties": {"first": {}}, "title": "a"},
            ]
        },
        "two": {"type": ["string", "null", "object"], "properties": {"d": {}}},
        "none": True,
    },
    "definitions": {"D": {"type": "object", "properties": {"x": {}}}},
    "$defs": {"E": {"$ref": "#/definitions/D"}},
}
PROTOBUF = """syntax = "proto3";
package p;
import "confluent/meta.proto";

message M {
  option (confluent.message_meta).doc = "of M";
  option (.confluent.message_meta).tags = "OLD";
  string a = 1 [(confluent.field_meta) = {tags: ["X", "Y"], doc: "of a"}];
  oneof one { int32 o = 2 [deprecated = true]; }
  message N { string b = 1 [(confluent.field_meta).tags = "Z", (confluent.field_meta).tags = "Z"]; }
  map<string, N> m = 3;
}
enum E { ZERO = 0; }
"""


def tags(format: str, text: str) -> dict[TaggedPlace, list[str]]:
    return work.tags(FORMATS[format], Source(text, {}))


def places(format: str, text: str) -> list[tuple[str, str]]:
    schema: Any = work.parse(FORMATS[format], Source(text, {}))
    return list(schema.places())


def changed(
    format: str, text: str, added: Tags, removed: Tags | None = None, before: Tags | None = None
) -> str:
    return work.with_tags(FORMATS[format], Source(text, {}), added, removed or {}, before or {})


def test_what_of_avro_can_have_tags() -> None:
    assert [path for _, path in places("AVRO", AVRO)] == [
        "n.R",
        "n.R.f",
        "n.I",
        "n.I.g",
        "n.R.e",
        "n.R.m",
        "o.M",
    ]
    assert [path for kind, path in places("AVRO", AVRO) if kind == "sr_record"] == ["n.R", "n.I", "o.M"]
    assert places("AVRO", '"int"') == []


def test_what_of_json_schema_can_have_tags() -> None:
    """By the paths of Confluent's registry."""
    assert places("JSON", json.dumps(JSON)) == [
        ("sr_record", "object"),
        ("sr_field", "object.a"),
        ("sr_field", "object.a.object.b"),
        ("sr_field", "object.list"),
        ("sr_record", "object.list.array.object"),
        ("sr_field", "object.list.array.object.c"),
        ("sr_field", "object.some"),
        ("sr_record", "object.some.oneof.0.object"),
        ("sr_field", "object.some.oneof.0.object.first"),
        ("sr_record", "object.some.oneof.1.object"),
        ("sr_field", "object.some.oneof.1.object.later"),
        ("sr_field", "object.two"),
        ("sr_record", "object.two.anyof.1.object"),
        ("sr_field", "object.two.anyof.1.object.d"),
        ("sr_record", "object.definitions.D.object"),
        ("sr_field", "object.definitions.D.object.x"),
    ]
    both = {
        "properties": {"a": {}},
        "anyOf": [{"items": {"properties": {"b": {}}}}],
        "not": {"properties": {}},
    }
    assert places("JSON", json.dumps(both)) == [
        ("sr_record", "allof.0.anyof.0.array.object"),
        ("sr_field", "allof.0.anyof.0.array.object.b"),
        ("sr_record", "allof.1.not.object"),
        ("sr_record", "allof.2.object"),
        ("sr_field", "allof.2.object.a"),
    ]
    when = {"if": {"properties": {}}, "then": {"properties": {}}, "else": {"properties": {}}}
    assert [path for _, path in places("JSON", json.dumps(when))] == [
        f"conditional.{word}.object" for word in ("if", "then", "else")
    ]
    assert places("JSON", "true") == []


def test_what_of_protobuf_can_have_tags() -> None:
    assert places("PROTOBUF", PROTOBUF) == [
        ("sr_record", "M"),
        ("sr_field", "M.a"),
        ("sr_field", "M.o"),
        ("sr_field", "M.m"),
        ("sr_record", "M.N"),
        ("sr_field", "M.N.b"),
    ]
    assert tags("PROTOBUF", PROTOBUF) == {
        ("sr_record", "M"): ["OLD"],
        ("sr_field", "M.a"): ["X", "Y"],
        ("sr_field", "M.N.b"): ["Z"],
    }


@pytest.mark.parametrize(
    ("format", "text"), [("AVRO", AVRO), ("JSON", json.dumps(JSON)), ("PROTOBUF", PROTOBUF)]
)
def test_they_come_and_go(format: str, text: str) -> None:
    before = tags(format, text)
    everything: Tags = {place: ["B", "A", "B"] for place in places(format, text)}  # type: ignore[misc]
    once = changed(format, text, everything)
    assert tags(format, once) == {place: [*before.get(place, ()), "B", "A"] for place in everything}
    again = changed(format, once, {}, {place: ["A", "B"] for place in everything})
    assert tags(format, again) == before
    read = work.read(FORMATS[format], Source(text, {})).canonical
    if format != "PROTOBUF":
        assert again == read
    none = changed(format, text, {}, before)
    assert tags(format, none) == {} and "confluent:tags" not in none
    assert changed(format, text, {}, {}) == text
    with pytest.raises(SchemaError, match="No matching path 'nowhere' found in the schema"):
        changed(format, text, {("sr_record", "nowhere"): ["A"]})


def test_options_of_protobuf_keep_all_else_and_protoc_reads_them() -> None:
    added: Tags = {("sr_record", "M"): ["NEW"], ("sr_field", "M.o"): ['"'], ("sr_field", "M.N.b"): ["W"]}
    text = changed("PROTOBUF", PROTOBUF, added, {("sr_field", "M.a"): ["X"]})
    assert tags("PROTOBUF", text) == {
        ("sr_record", "M"): ["OLD", "NEW"],
        ("sr_field", "M.a"): ["Y"],
        ("sr_field", "M.o"): ['"'],
        ("sr_field", "M.N.b"): ["Z", "W"],
    }
    assert 'doc: "of a"' in text and "deprecated = true" in text and '.doc = "of M"' in text
    assert compiled(text) == ["OLD", "NEW"]


def test_a_file_that_does_not_import_the_options_does_afterwards() -> None:
    text = changed("PROTOBUF", 'syntax = "proto3"; message M { int32 a = 1; }', {("sr_field", "M.a"): ["T"]})
    assert text.count('import "confluent/meta.proto";') == 1
    assert compiled(changed("PROTOBUF", text, {("sr_record", "M"): ["T"]})) == ["T"]
    without = 'syntax = "proto3"; message M { int32 a = 1; }'
    assert "import" not in changed("PROTOBUF", without, {}, {("sr_field", "M.a"): ["T"]})


def compiled(text: str) -> list[str]:
    """The tags of message M, by protoc's own reading."""
    import tempfile
    from pathlib import Path

    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        (folder / "confluent").mkdir()
        (folder / "confluent/meta.proto").write_text(TEXTS["confluent/meta.proto"])
        (folder / "m.proto").write_text(text)
        included = str(Path(protoc.__file__).parent / "_proto")
        arguments = [
            "",
            f"-I{root}",
            f"-I{included}",
            "--include_imports",
            f"--descriptor_set_out={root}/out",
            "m.proto",
        ]
        assert protoc.main(arguments) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString((folder / "out").read_bytes())
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        from google.protobuf import message_factory

        extension = pool.FindExtensionByName("confluent.message_meta")
        message = next(file for file in files.file if file.name == "m.proto").message_type[0]
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.MessageOptions"))
        options = kind.FromString(message.options.SerializeToString())
        return list(options.Extensions[extension].tags)


def test_what_the_version_before_has_goes_where_its_place_is_still_there() -> None:
    before: Tags = {("sr_field", "n.R.f"): ["OLD"], ("sr_field", "n.R.gone"): ["OLD"]}
    text = changed("AVRO", AVRO, {("sr_field", "n.R.f"): ["NEW"]}, {}, before)
    assert tags("AVRO", text) == {("sr_field", "n.R.f"): ["OLD", "NEW"]}
    assert changed("AVRO", AVRO, {}, {}, {("sr_field", "n.R.gone"): ["OLD"]}) == AVRO


def test_a_format_that_knows_no_tags() -> None:
    source = Source("a,b", {})
    assert work.tags(Columns(), source) == {}
    assert work.with_tags(Columns(), source, {}, {}, {("sr_field", "a"): ["T"]}) == "a,b"
    with pytest.raises(SchemaError, match="schemas of type COLUMNS have no tags in them"):
        work.with_tags(Columns(), source, {("sr_field", "a"): ["T"]}, {}, {})
