"""The JSON-Schema-Test-Suite: all of it where a clone is at hand, and a slice of its subjects written anew in the gate.

The suite is on no package index. `--long` with JSON_SCHEMA_TEST_SUITE naming a clone of it runs every required file of
the five drafts: each schema parses, and each value gets the verdict of the suite.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_registry.json_schema.schema import parse
from leafcuttr_sdk.schemas import DataError, ResolvedReference

ROOT = Path(os.environ.get("JSON_SCHEMA_TEST_SUITE", "/nowhere"))
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
BY_DESIGN = {
    "vocabulary.json": "a metaschema of one's own is no draft: such schemas are of draft-07, as in Confluent's registry"
}


def verdict(schema: Any, value: Any, references: dict[str, ResolvedReference]) -> bool:
    try:
        parse(json.dumps(schema), references).codec().check(json.dumps(value).encode())
    except DataError:
        return False
    return True


def with_draft(schema: Any, uri: str) -> Any:
    return {"$schema": uri, **schema} if isinstance(schema, dict) else schema


def remotes(draft: str) -> dict[str, ResolvedReference]:
    """What the suite serves over HTTP, as references."""
    found = {}
    for path in sorted((ROOT / "remotes").rglob("*.json")):
        name = path.relative_to(ROOT / "remotes").as_posix()
        if name.partition("/")[0] not in DRAFTS or name.startswith(f"{draft}/"):
            text = json.dumps(with_draft(json.loads(path.read_text()), DRAFTS[draft]))
            found[f"http://localhost:1234/{name}"] = ResolvedReference(text, {})
    return found


@pytest.mark.skipif(not ROOT.is_dir(), reason="JSON_SCHEMA_TEST_SUITE names no clone of the suite")
@pytest.mark.parametrize("draft", DRAFTS)
def test_the_whole_suite(draft: str) -> None:
    served = remotes(draft)
    wrong: list[str] = []
    count = 0
    for path in sorted((ROOT / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text()):
            schema = with_draft(group["schema"], DRAFTS[draft])
            references = served if "localhost:1234" in json.dumps(schema) else {}
            for test in group["tests"]:
                count += 1
                if verdict(schema, test["data"], references) != test["valid"] and path.name not in BY_DESIGN:
                    wrong.append(f"{path.name}: {group['description']}: {test['description']}")
    assert count > 500
    assert wrong == []


SLICE: list[tuple[int, Any, list[Any], list[Any]]] = [
    (4, {"maximum": 3, "exclusiveMaximum": True}, [2.9, "a"], [3]),
    (4, {"type": "integer"}, [1], [1.0]),
    (6, {"type": "integer"}, [1, 1.0], [1.5, "1"]),
    (6, {"contains": {"const": 5}}, [[5], {}], [[], [4]]),
    (6, {"propertyNames": {"maxLength": 2}}, [{}, {"ab": 1}], [{"abc": 1}]),
    (7, {"if": {"minimum": 0}, "then": {"multipleOf": 2}, "else": {"maximum": -5}}, [4, -6, "a"], [3, -1]),
    (7, {"$ref": "#/definitions/a", "definitions": {"a": {}}, "type": "string"}, [1], []),
    (7, {"items": [{}, False]}, [[], [1]], [[1, 2]]),
    (
        7,
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        [{"a": 1, "b": 1}, {"c": 1, "d": 1}],
        [{"a": 1}, {"c": 1}],
    ),
    (2019, {"$ref": "#/$defs/a", "$defs": {"a": {}}, "type": "string"}, ["a"], [1]),
    (
        2019,
        {"contains": {"const": 1}, "minContains": 2, "maxContains": 3},
        [[1, 1], [1, 1, 1, 2]],
        [[1], [1, 1, 1, 1]],
    ),
    (2019, {"dependentRequired": {"a": ["b"]}}, [{"b": 1}], [{"a": 1}]),
    (2019, {"items": [{"const": 1}], "unevaluatedItems": False}, [[1], []], [[1, 1]]),
    (
        2019,
        {
            "$recursiveAnchor": True,
            "properties": {"a": {"$recursiveRef": "#"}},
            "additionalProperties": False,
        },
        [{"a": {"a": {}}}],
        [{"a": {"b": 1}}],
    ),
    (2020, {"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [[1], ["a", 1]]),
    (
        2020,
        {"anyOf": [{"properties": {"a": {}}}, {"required": ["b"]}], "unevaluatedProperties": False},
        [{"a": 1}],
        [{"b": 1}],
    ),
    (2020, {"$anchor": "top", "items": {"$ref": "#top"}, "type": "array"}, [[[], [[]]]], [[1]]),
    (
        2020,
        {
            "$id": "http://x.org/a/",
            "$defs": {"b": {"$id": "b", "$defs": {"c": {"type": "null"}}}},
            "$ref": "b#/$defs/c",
        },
        [None],
        [1],
    ),
    (
        2020,
        {
            "anyOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {}}, "required": ["b"]},
            ],
            "unevaluatedProperties": False,
        },
        [{"a": 1}, {"a": 1, "b": 1}],
        [{"a": 2, "b": 1}],
    ),
]


def cases() -> Iterator[Any]:
    uris = {int(name.removeprefix("draft")[:4].partition("-")[0]): uri for name, uri in DRAFTS.items()}
    for number, schema, good, bad in SLICE:
        for value in good:
            yield pytest.param(with_draft(schema, uris[number]), value, True)
        for value in bad:
            yield pytest.param(with_draft(schema, uris[number]), value, False)


@pytest.mark.parametrize(("schema", "value", "valid"), list(cases()))
def test_what_the_drafts_say(schema: Any, value: Any, valid: bool) -> None:
    assert verdict(schema, value, {}) is valid
