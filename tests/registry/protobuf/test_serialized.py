"""Schemas that are given as base64 of a descriptor."""

# ruff: noqa: E501
from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk.schemas import SchemaError
from registry.protobuf.parsing import parsed

File = descriptor_pb2.FileDescriptorProto


def encoded(proto: File) -> str:
    return base64.b64encode(proto.SerializeToString()).decode()


def test_a_descriptor_is_the_text_that_says_the_same() -> None:
    text = """syntax = "proto3"; package p; import "google/protobuf/any.proto"; option java_package = "j";
    message M { optional int32 a = 1; repeated E e = 2; oneof o { google.protobuf.Any b = 3; } reserved 7, 9 to 10;
    reserved "x"; enum E { A = 0; } } service S { rpc r(M) returns (stream M); }"""
    schema = parsed(parsed(text).formatted("serialized"))
    assert schema.canonical == (
        'syntax = "proto3";\npackage p;\n\nimport "google/protobuf/any.proto";\n\noption java_package = "j";\n\n'
        'message M {\n  reserved 7;\n  reserved 9 to 10;\n  reserved "x";\n\n  optional int32 a = 1;\n'
        "  repeated .p.M.E e = 2;\n\n  oneof o {\n    .google.protobuf.Any b = 3;\n  }\n\n  enum E {\n    A = 0;\n  }\n}\n"
        "\nservice S {\n  rpc r (.p.M) returns (stream .p.M);\n}\n"
    )
    assert schema.normalized() == parsed(text).normalized()


def test_entries_of_maps_stay_messages() -> None:
    schema = parsed(parsed('syntax = "proto3"; message M { map<string, M> a = 1; }').formatted("serialized"))
    assert "repeated .M.AEntry a = 1;" in schema.canonical
    assert "option map_entry = true;" in schema.canonical
    assert schema.normalized() == 'syntax = "proto3";\n\nmessage M {\n  map<string, .M> a = 1;\n}\n'
    assert schema.codec().encode({"a": {"k": {}}}) == parsed(schema.normalized()).codec().encode(
        {"a": {"k": {}}}
    )


@pytest.mark.parametrize(
    "entry",
    [
        "string key = 1;",
        "string key = 1; int32 value = 3;",
        "string key = 1; int32 value = 2; int32 more = 3;",
        "float key = 1; int32 value = 2;",
        "string key = 1; repeated int32 value = 2;",
        "string key = 1; int32 value = 2; message X {}",
    ],
)
def test_a_message_that_is_no_entry(entry: str) -> None:
    with pytest.raises(SchemaError, match="map_entry is not set by hand"):
        parsed(
            f'syntax = "proto3"; message M {{ repeated AEntry a = 1; message AEntry {{ option map_entry = true; {entry} }} }}'
        )


def test_custom_options_get_their_names_from_what_is_imported() -> None:
    own = """syntax = "proto2"; package o; import "google/protobuf/descriptor.proto";
    message Deep { optional Deep deep = 1; repeated sint32 many = 2 [packed = true]; optional group G = 3 { optional fixed64 f = 1; } }
    enum Color { RED = 0; BLUE = -1; }
    extend google.protobuf.MessageOptions { optional Deep deep = 50001; repeated Color colors = 50002; optional double d = 50003;
    optional float f = 50004; optional bytes b = 50005; optional bool t = 50006; optional int64 i = 50007; optional uint32 u = 50008; }"""
    uses = """syntax = "proto2"; import "own.proto"; message M { option (o.deep) = { deep { many: [-1, 2] } G { f: 5 } };
    option (o.colors) = RED; option (o.colors) = BLUE; option (o.d) = -inf; option (o.f) = 0.1; option (o.b) = "\\xff'";
    option (o.t) = true; option (o.i) = -5; option (o.u) = 4294967295; option deprecated = true; }"""
    text = parsed(uses, {"own.proto": own})
    described = parsed(text.formatted("serialized"), {"own.proto": own})
    assert described.normalized() == text.normalized()
    assert parsed(described.canonical, {"own.proto": own}).formatted("serialized") == described.formatted(
        "serialized"
    )


def test_an_option_that_was_set_in_parts_is_whole_again() -> None:
    """Its bytes are several fields of one number, which are merged."""
    text = parsed(
        """import "google/protobuf/descriptor.proto"; message Deep { optional Deep deep = 1; optional int32 n = 2; }
        extend google.protobuf.MessageOptions { optional Deep own = 50001; }
        message M { option (own).n = 1; option (own).deep.n = 2; option (own).deep.deep.n = 3; }"""
    )
    described = parsed(text.formatted("serialized"))
    assert described.normalized() == text.normalized()
    assert described.canonical.count("option (own)") == 1


def test_custom_options_that_nothing_defines_are_left_out() -> None:
    proto = File(name="x", syntax="proto3")
    options = proto.message_type.add(name="M").options
    options.deprecated = True
    raw = proto.SerializeToString()
    at = raw.index(options.SerializeToString())
    assert at > 0
    custom = options.SerializeToString() + b"\x8a\xb5\x18\x01a"
    inner = File(name="x", syntax="proto3")
    inner.message_type.add(name="M").options.MergeFromString(custom)
    assert (
        parsed(encoded(inner)).canonical
        == 'syntax = "proto3";\n\nmessage M {\n  option deprecated = true;\n}\n'
    )


def broken(change: Callable[[File, descriptor_pb2.DescriptorProto], object]) -> str:
    proto = File(name="x", syntax="proto2")
    message = proto.message_type.add(name="M")
    change(proto, message)
    return encoded(proto)


BROKEN: dict[str, tuple[str, str]] = {
    "a name that is none": (broken(lambda _, m: m.field.add(name="a b", number=1, label=1, type=5)), "no identifier"),
    "a type that is none": (
        broken(lambda _, m: m.field.add(name="a", number=1, label=1, type=11, type_name="M; x")), "no name"
    ),
    "an empty type": (broken(lambda _, m: m.field.add(name="a", number=1, label=1)), "no name"),
    "a oneof that does not exist": (
        broken(lambda _, m: m.field.add(name="a", number=1, label=1, type=5, oneof_index=3)), "does not exist"
    ),
    "a default value of no integer": (
        broken(lambda _, m: m.field.add(name="a", number=1, label=1, type=5, default_value="x")), "the default value"
    ),
    "a default value of no double": (
        broken(lambda _, m: m.field.add(name="a", number=1, label=1, type=1, default_value="1_0")), "the default value"
    ),
    "bytes with a wrong escape": (
        broken(lambda _, m: m.field.add(name="a", number=1, label=1, type=12, default_value="\\q")), "escape"
    ),
    "a group without its message": (
        broken(lambda _, m: m.field.add(name="g", number=1, label=1, type=10, type_name=".M.G")), "no message of its name"
    ),
    "two messages of one name": (broken(lambda p, _: p.message_type.add(name="M")), "two messages"),
    "two messages of one name within": (
        broken(lambda _, m: [m.nested_type.add(name="N"), m.nested_type.add(name="N")]), "two messages"
    ),
    "an unknown syntax": (encoded(File(name="x", syntax="proto4")), "the syntax 'proto4'"),
    "an unknown edition": (encoded(File(name="x", syntax="editions", edition=9999)), "edition 9999"),
    "an import that is nowhere": (encoded(File(name="x", dependency=["y"])), "no reference"),
    "no descriptor": (base64.b64encode(b"\xff" * 30).decode(), "no FileDescriptorProto"),
    "no UTF-8": (base64.b64encode(b"\n\x01a\x22\x03\n\x01\xff").decode(), "UTF-8"),
    "a number twice": (
        broken(lambda _, m: [m.field.add(name=name, number=1, label=1, type=5) for name in "ab"]), "the number 1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_descriptor(name: str) -> None:
    text, saying = BROKEN[name]
    with pytest.raises(SchemaError, match=saying):
        parsed(text)


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_are_a_descriptor_or_refused(data: bytes) -> None:
    try:
        parsed(base64.b64encode(data).decode())
    except SchemaError as error:
        assert "\n" not in str(error)


@given(st.data())
def test_a_descriptor_with_one_byte_changed(data: st.DataObject) -> None:
    raw = bytearray(
        base64.b64decode(
            parsed(
                'syntax = "proto3"; import "confluent/meta.proto"; message M { option (confluent.message_meta).doc = "x";'
                "map<string, M> a = 1; oneof o { int32 b = 2; E c = 3; } enum E { A = 0; } reserved 5 to 7; }"
            ).formatted("serialized")
        )
    )
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        schema = parsed(base64.b64encode(raw).decode())
    except SchemaError:
        return
    assert parsed(schema.canonical).canonical == schema.canonical


def test_what_looks_like_base64_and_is_none() -> None:
    for text in ("abc\xa0", "ab\u2028cd", "\x1fabcd"):
        with pytest.raises(SchemaError):
            parsed(text)
    # A text that begins with blanks, as many as there may be, is looked at once.
    assert parsed(" \n" * 100_000 + 'syntax = "proto3";').canonical
