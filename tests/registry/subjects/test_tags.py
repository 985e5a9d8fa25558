"""Tags within schemas of Avro."""

from __future__ import annotations

import json
from typing import Any

import pytest

from leafcuttr_registry.subjects import tags
from leafcuttr_registry.subjects.refusals import Refusal

INNER = {"type": "record", "name": "I", "fields": [{"name": "g", "type": "int"}]}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "n.R",
    "fields": [{"name": "f", "type": ["null", {"type": "array", "items": INNER}]}],
}
TEXT = json.dumps(SCHEMA)


def test_they_come_and_go() -> None:
    added = {("sr_field", "n.I.g"): ["B", "A"], ("sr_record", "n.R"): ["C"]}
    once = tags.changed("AVRO", TEXT, added, {})
    found = json.loads(once)
    assert found["confluent:tags"] == ["C"]
    assert found["fields"][0]["type"][1]["items"]["fields"][0]["confluent:tags"] == ["A", "B"]
    again = tags.changed("AVRO", once, {}, {("sr_field", "n.I.g"): ["A", "B"], ("sr_record", "n.R"): ["C"]})
    assert json.loads(again) == SCHEMA
    assert tags.changed("AVRO", TEXT, {}, {}) is TEXT


@pytest.mark.parametrize("place", [("sr_field", "n.R"), ("sr_record", "R"), ("sr_field", "n.R.none")])
def test_places_that_are_none(place: tuple[str, str]) -> None:
    with pytest.raises(Refusal, match="No matching path"):
        tags.changed("AVRO", TEXT, {place: ["A"]}, {})


def test_what_is_refused() -> None:
    with pytest.raises(Refusal, match="type JSON"):
        tags.changed("JSON", "{}", {("sr_record", "a"): ["A"]}, {})
    for text in ("{", "[" * 5000):
        with pytest.raises(Refusal):
            tags.changed("AVRO", text, {("sr_record", "a"): ["A"]}, {})
    deep: Any = "int"
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    with pytest.raises(Refusal, match="too complex"):
        tags.changed("AVRO", json.dumps(deep), {("sr_record", "a"): ["A"]}, {})


@pytest.mark.parametrize(
    "given", [[5], [{}], [{"schemaEntity": {"entityType": "sr_none", "entityPath": "a"}, "tags": []}]]
)
def test_requests_that_are_none(given: Any) -> None:
    with pytest.raises(Refusal, match="tagsToAdd has to be"):
        tags.read({"tagsToAdd": given}, "tagsToAdd")


def test_requests() -> None:
    entity = {"entityType": "SR_FIELD", "entityPath": "a.b"}
    assert tags.read({"t": [{"schemaEntity": entity, "tags": ["A"]}]}, "t") == {("sr_field", "a.b"): ["A"]}
    assert tags.read({}, "t") == {}
