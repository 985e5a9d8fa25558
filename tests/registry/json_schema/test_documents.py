"""Documents of JSON Schema, and what they are not."""

from __future__ import annotations

import pytest

from leafcuttr_registry.json_schema.schema import parse
from leafcuttr_sdk.schemas import SchemaError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"$id":"http://[]/a"}', "an id in the schema is no URI"),
        ('{"$id":"http://a/b","properties":{"a":{"$id":"http://[x"}}}', "an id in the schema is no URI"),
        ('{"$id":"http://a/b","properties":{"a":[{"$id":"b"}]}}', "has something else|is a list|is an array"),
        ('{"pattern":"[z-\\na]"}', "not a regular expression"),
    ],
)
def test_what_is_none_is_one_line(text: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why) as caught:
        parse(text, {})
    assert "\n" not in str(caught.value)
