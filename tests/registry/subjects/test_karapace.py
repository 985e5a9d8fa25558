"""The text that Karapace stores for a schema."""

from __future__ import annotations

import pytest

from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.karapace import as_stored
from leafcuttr_sdk.schemas import SchemaReference


@pytest.mark.parametrize("type", ["AVRO", "JSON"])
def test_members_are_sorted_and_white_space_is_left_out(type: str) -> None:
    content = Content(type, '{"type":"ü"}', (SchemaReference("a", "b", 1),), {"properties": {"a": "b"}}, {})
    found = as_stored(type, '{ "type": "ü", "b": {"z": 1, "a": [2.0, null]} }', content)
    assert found is not None
    assert found.text == '{"b":{"a":[2.0,null],"z":1},"type":"ü"}'
    assert (found.type, found.references) == (type, content.references)
    assert (found.metadata, found.rules) == (content.metadata, content.rules)


def test_what_it_keeps_as_we_do() -> None:
    assert as_stored("AVRO", ' "string"', Content("AVRO", '"string"')) is None
    assert as_stored("PROTOBUF", '{"b":1,"a":2}', Content("PROTOBUF", "")) is None


@pytest.mark.parametrize(
    "text", ["{", "", "[" * 100_000, '{"b":"\\ud800","a":1}', '{"a":' + "1" * 5000 + "}"]
)
def test_what_it_cannot_have_stored(text: str) -> None:
    assert as_stored("JSON", text, Content("JSON", "x")) is None
