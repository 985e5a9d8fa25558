"""Canonical and normalized texts, in the form of Confluent's registry."""

# ruff: noqa: E501
from __future__ import annotations

import pytest

from leafcuttr_registry.protobuf.format import FORMAT
from leafcuttr_sdk.schemas import SchemaError
from registry.protobuf.parsing import parsed
from registry.protobuf.snippets import TEXTS

TEXT = """// A comment.
syntax = "proto3";
package a.b; import public 'google/protobuf/empty.proto'; import "google/protobuf/descriptor.proto"; import "google/protobuf/any.proto";
option java_package="x\\ty";   option (own).deep.n = 0x10;
enum E { reserved 5 to 5, -3 to -1; B = 0; C = 2 [deprecated=true]; A = 1; }
extend google.protobuf.FileOptions { Own own = 50000; }
message Own { Own deep = 1; int32 n = 2; }
service S { rpc r(stream M) returns (.a.b.M) { option deprecated = true; } rpc q(M) returns (M); }
message M {
  message N {}
  oneof o { int32 x = 7; string y = 6; }
  map<string, N> m = 3; repeated N n = 2 [json_name="nn", deprecated=true]; optional E e = 1;
  reserved 20 to max, 12; reserved 'q', "p";
  enum F { F0 = 0; }
}
"""
CANONICAL = """syntax = "proto3";
package a.b;

import "google/protobuf/descriptor.proto";
import "google/protobuf/any.proto";
import public "google/protobuf/empty.proto";

option java_package = "x\\ty";
option (own).deep.n = 0x10;

message Own {
  Own deep = 1;
  int32 n = 2;
}
message M {
  reserved 20 to max, 12;
  reserved "q", "p";

  map<string, N> m = 3;
  repeated N n = 2 [
    deprecated = true,
    json_name = "nn"
  ];
  optional E e = 1;

  oneof o {
    int32 x = 7;
    string y = 6;
  }

  message N {}
  enum F {
    F0 = 0;
  }
}
enum E {
  reserved 5, -3 to -1;
  B = 0;
  C = 2 [deprecated = true];
  A = 1;
}

extend google.protobuf.FileOptions {
  Own own = 50000;
}

service S {
  rpc r (stream M) returns (.a.b.M) {
    option deprecated = true;
  };
  rpc q (M) returns (M);
}
"""
NORMALIZED = """syntax = "proto3";
package a.b;

import "google/protobuf/any.proto";
import "google/protobuf/descriptor.proto";
import public "google/protobuf/empty.proto";

option (a.b.own) = {
  deep: {
    n: 16
  }
};
option java_package = "x\\ty";

message Own {
  .a.b.Own deep = 1;
  int32 n = 2;
}
message M {
  reserved 12;
  reserved 20 to max;
  reserved "p";
  reserved "q";

  optional .a.b.E e = 1;
  repeated .a.b.M.N n = 2 [
    deprecated = true,
    json_name = "nn"
  ];
  map<string, .a.b.M.N> m = 3;

  oneof o {
    string y = 6;
    int32 x = 7;
  }

  message N {}
  enum F {
    F0 = 0;
  }
}
enum E {
  reserved -3 to -1;
  reserved 5;
  B = 0;
  A = 1;
  C = 2 [deprecated = true];
}

extend .google.protobuf.FileOptions {
  .a.b.Own own = 50000;
}

service S {
  rpc r (stream .a.b.M) returns (.a.b.M) {
    option deprecated = true;
  };
  rpc q (.a.b.M) returns (.a.b.M);
}
"""


def test_canonical() -> None:
    assert parsed(TEXT).canonical == CANONICAL


def test_normalized() -> None:
    assert parsed(TEXT).normalized() == NORMALIZED


def test_without_extensions() -> None:
    text = parsed(TEXT).formatted("ignore_extensions")
    assert "own" not in text
    assert 'option java_package = "x\\ty";' in text


def test_an_unknown_form_is_the_canonical_one() -> None:
    assert parsed(TEXT).formatted("nothing") == CANONICAL


def test_proto2() -> None:
    text = (
        'message M {\n  optional int32 a = 1 [default = 5];\n  optional string b = 2 [default = "x\\"y"];\n\n'
        "  optional group G = 3 {\n    optional int32 c = 1;\n  }\n\n  extensions 100 to 200, 300;\n  extensions 400 to max;\n"
        "\n  extend M {\n    optional int32 x = 100;\n  }\n}\n"
    )
    assert parsed(text).canonical == "\n" + text


def test_editions() -> None:
    text = 'edition = "2023";\n\nmessage M {\n  reserved a;\n\n  int32 b = 1 [features.field_presence = IMPLICIT];\n}\n'
    assert parsed(text).canonical == text


def test_a_message_without_a_syntax() -> None:
    assert parsed("message M{}").canonical == "\nmessage M {}\n"
    assert parsed('syntax="proto2";message M{}').normalized() == "\nmessage M {}\n"


def test_options_of_one_message_become_one() -> None:
    text = """import "google/protobuf/descriptor.proto";
    message O { optional O o = 1; optional int32 a = 2; repeated int32 b = 3; optional int32 c = 4; }
    extend google.protobuf.MessageOptions { optional O own = 50000; }
    message M { option (own).b = 2; option (own).o.a = 1; option (own).o.c = 3; option (own).b = 1; option (.own).a = 07; }
    """
    schema = parsed(text)
    normalized = schema.normalized()
    assert (
        "  option (own) = {\n    a: 7,\n    b: [\n      2,\n      1\n    ],\n    o: {\n      a: 1,\n      c: 3\n    }\n  };\n"
        in normalized
    )
    assert parsed(normalized).normalized() == normalized


def test_the_first_constant_stays_first() -> None:
    """It is the default value of fields in proto2."""
    assert (
        parsed("enum E { B = 2; A = 1; C = 3; }").normalized()
        == "\nenum E {\n  B = 2;\n  A = 1;\n  C = 3;\n}\n"
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TEXTS)
def test_each_form_is_read_again(name: str) -> None:
    try:
        schema = parsed(TEXTS[name])
    except SchemaError:
        return
    again = parsed(schema.canonical)
    assert again.canonical == schema.canonical
    assert again.normalized() == schema.normalized()
    normalized = parsed(schema.normalized())
    assert normalized.normalized() == schema.normalized()
    described = parsed(schema.formatted("serialized"))
    assert parsed(described.canonical).canonical == described.canonical
    for each in (again, normalized, described):
        assert FORMAT.differences(each, schema) == []
        assert FORMAT.differences(schema, each) == []
        assert each.record_name == schema.record_name
