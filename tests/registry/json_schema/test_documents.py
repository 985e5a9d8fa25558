"""Documents of JSON Schema, and what they are not."""

from __future__ import annotations

import json

import pytest

from leafcuttr_registry.json_schema.schema import parse
from leafcuttr_sdk.schemas import DataError, SchemaError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"$id":"http://[]/a"}', "an id in the schema is no URI"),
        ('{"$id":"http://a/b","properties":{"a":{"$id":"http://[x"}}}', "an id in the schema is no URI"),
        ('{"pattern":"[z-\\na]"}', "not a regular expression"),
    ],
)
def test_what_is_none_is_one_line(text: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why) as caught:
        parse(text, {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema#"]
)
def test_dependencies_that_are_schemas_and_names(draft: str) -> None:
    """In whatever order."""
    dependencies = {"a": {"properties": {"b": {"type": "string"}}}, "c": ["d"], "e": {"required": ["f"]}}
    for names in ("ace", "cae", "aec"):
        schema = {"$schema": draft, "dependencies": {name: dependencies[name] for name in names}}
        parsed = parse(json.dumps(schema), {})
        assert list(json.loads(parsed.canonical)["dependencies"]) == list(names)
        codec = parsed.codec()
        codec.check(b'{"a":1,"b":"x","c":1,"d":1,"e":1,"f":1}')
        for wrong in (b'{"a":1,"b":1}', b'{"c":1}', b'{"e":1}'):
            with pytest.raises(DataError):
                codec.check(wrong)
