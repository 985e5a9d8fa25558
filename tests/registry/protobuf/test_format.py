"""The format as the registry sees it."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from leafcuttr_registry.protobuf.format import FORMAT
from leafcuttr_sdk.schemas import ParsedSchema, SchemaFormat
from registry.protobuf.parsing import parsed

P3 = 'syntax = "proto3"; '


def test_it_is_a_format() -> None:
    format_: SchemaFormat = FORMAT
    schema: ParsedSchema = format_.parse(P3 + "message M {}", {})
    assert format_.name == "PROTOBUF"
    assert format_.summary
    assert format_.rules
    assert schema.record_name == "M"


def test_a_worker_gets_it_by_name() -> None:
    assert pickle.loads(pickle.dumps(type(FORMAT))) is type(FORMAT)
    with pytest.raises(TypeError, match="send the text"):
        pickle.dumps(parsed("message M {}"))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (P3 + "package a.b; message M {} message N {}", "a.b.M"),
        (P3 + "enum E { A = 0; } message M {}", "M"),
        (P3 + "package a; enum E { A = 0; }", "a.E"),
        (P3 + 'import public "google/protobuf/any.proto";', "google.protobuf.Any"),
        (P3 + 'import "google/protobuf/any.proto";', None),
        ("", None),
        ("message M { extensions 1; } extend M { optional group G = 1 {} }", "M"),
    ],
)
def test_record_names(text: str, name: str | None) -> None:
    assert parsed(text).record_name == name


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = "import sys, leafcuttr_registry, leafcuttr_sdk.schema_framing; sys.exit('google.protobuf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_texts_that_mean_the_same_are_one_schema_only_when_normalized() -> None:
    one, two = (
        parsed(P3 + "message M { int32 a = 1; int32 b = 2; }"),
        parsed(P3 + "message M { int32 b = 2; int32 a = 1; }"),
    )
    assert one.canonical != two.canonical
    assert one.normalized() == two.normalized()
    assert parsed(P3 + "/* c */message M{int32 a=1;int32 b=2;}").canonical == one.canonical
