"""Parsing: drafts, references, canonical and other forms; what is refused and what it costs."""

from __future__ import annotations

import json
import pickle
import resource
import time
from typing import Any

import pytest

from leafcuttr_registry.json_schema.format import JSON_SCHEMA
from leafcuttr_registry.json_schema.schema import JsonSchema, parse
from leafcuttr_sdk.schemas import DataError, ResolvedReference, SchemaError

D20 = "https://json-schema.org/draft/2020-12/schema"


def refer(text: Any, **references: ResolvedReference) -> ResolvedReference:
    return ResolvedReference(json.dumps(text), references)


def valid(schema: JsonSchema, value: Any) -> bool:
    try:
        schema.codec().check(json.dumps(value).encode())
    except DataError:
        return False
    return True


def test_the_canonical_text_keeps_order_numbers_and_unknown_keywords() -> None:
    text = '{ "type": "number", "x-own": {"b": 1.10, "a": [1e3]}, "$schema": "http://json-schema.org/draft-07/schema#"}'
    schema = parse(text, {})
    assert schema.canonical == (
        '{"type":"number","x-own":{"b":1.10,"a":[1E+3]},"$schema":"http://json-schema.org/draft-07/schema#"}'
    )
    assert schema.normalized() == (
        '{"$schema":"http://json-schema.org/draft-07/schema#","type":"number","x-own":{"a":[1E+3],"b":1.10}}'
    )
    assert schema.formatted("serialized") == schema.canonical
    assert parse("true", {}).canonical == "true"
    # What is done for the loader is not in the text.
    assert (
        parse('{"definitions":{"a":{}},"pattern":"^\\\\d$"}', {}).canonical
        == '{"definitions":{"a":{}},"pattern":"^\\\\d$"}'
    )


def test_the_record_name_is_the_title() -> None:
    assert parse('{"title": "Order"}', {}).record_name == "Order"
    assert parse("{}", {}).record_name is None
    assert parse("true", {}).record_name is None


@pytest.mark.parametrize(
    ("uri", "reads_const", "reads_prefix"),
    [
        ("http://json-schema.org/draft-04/schema#", False, False),
        ("https://json-schema.org/draft-04/schema", False, False),
        ("http://json-schema.org/draft-06/schema#", True, False),
        ("http://json-schema.org/draft-07/schema", True, False),
        ("https://json-schema.org/draft/2019-09/schema", True, False),
        ("https://json-schema.org/draft/2020-12/schema#", True, True),
        ("http://json-schema.org/draft/2020-12/schema", True, True),
        ("http://example.com/own", True, False),
        (None, True, False),
    ],
)
def test_the_draft_is_the_one_that_schema_says_and_draft_07_otherwise(
    uri: str | None, reads_const: bool, reads_prefix: bool
) -> None:
    schema = parse(
        json.dumps({"const": [1], "prefixItems": [{"type": "string"}]} | ({"$schema": uri} if uri else {})),
        {},
    )
    assert valid(schema, [2]) != reads_const
    assert valid(schema, [1]) != reads_prefix


def test_references_by_name_and_by_the_uri_below_the_identifier() -> None:
    address = refer({"type": "object", "required": ["zip"]})
    for root in (
        {"properties": {"a": {"$ref": "address.json"}}},
        {"properties": {"a": {"$ref": "./address.json"}}},
        {"properties": {"a": {"$ref": "address.json#"}}},
        {"$id": "http://example.com/order.json", "properties": {"a": {"$ref": "address.json"}}},
        {
            "$schema": D20,
            "$id": "http://example.com/order.json",
            "properties": {"a": {"$ref": "http://example.com/address.json"}},
        },
    ):
        schema = parse(json.dumps(root), {"address.json": address})
        assert valid(schema, {"a": {"zip": 1}})
        assert not valid(schema, {"a": {}})


def test_references_have_references_of_their_own_and_definitions() -> None:
    inner = refer({"$schema": D20, "$defs": {"x": {"type": "integer"}}})
    outer = refer({"properties": {"n": {"$ref": "inner.json#/$defs/x"}}}, **{"inner.json": inner})
    schema = parse('{"items": {"$ref": "outer.json"}}', {"outer.json": outer})
    assert valid(schema, [{"n": 1}])
    assert not valid(schema, [{"n": "a"}])


def test_definitions_are_found_as_defs_at_the_root() -> None:
    assert not valid(parse('{"$ref": "#/$defs/a", "definitions": {"a": {"type": "string"}}}', {}), 1)


def test_a_name_of_two_texts_is_refused() -> None:
    one, other = refer({"type": "string"}), refer({"type": "number"})
    nested = refer({"$ref": "x.json"}, **{"x.json": other})
    with pytest.raises(SchemaError, match=r'two references are called "x.json", and their schemas differ'):
        parse('{"items": {"$ref": "y.json"}}', {"x.json": one, "y.json": nested})


def test_an_error_in_a_reference_names_it() -> None:
    with pytest.raises(SchemaError, match=r'in the reference "x.json": type has to be one of'):
        parse('{"$ref": "x.json"}', {"x.json": refer({"type": 1})})


@pytest.mark.parametrize(
    "text",
    [
        '{"$ref": "http://example.com/other.json"}',
        '{"$ref": "#/definitions/none"}',
        '{"properties": {"a": {"$ref": "#nowhere"}}}',
        '{"items": {"$ref": "file:///etc/passwd"}}',
        '{"items": {"$ref": "http://[broken"}}',
    ],
)
def test_what_is_not_there_is_never_fetched(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> None:
        raise AssertionError("a socket is used")

    monkeypatch.setattr("socket.socket.connect", connect)
    monkeypatch.setattr("socket.getaddrinfo", connect)
    with pytest.raises(SchemaError, match=r"leads to nothing") as refused:
        parse(text, {})
    assert refused.value.path.endswith("/$ref")


def test_metaschemas_are_there() -> None:
    for uri in ("http://json-schema.org/draft-07/schema#", D20, "https://json-schema.org/draft-04/schema"):
        schema = parse(json.dumps({"$ref": uri, "$schema": uri}), {})
        assert valid(schema, {"type": "string"})
        assert not valid(schema, {"type": 1})


def test_what_only_a_reference_leads_to_is_checked_too() -> None:
    with pytest.raises(SchemaError, match="what a reference leads to: type has to be"):
        parse('{"$ref": "#/components/a", "components": {"a": {"type": 1}}}', {})
    schema = parse('{"$ref": "#/components/a", "components": {"a": {"pattern": "^\\\\d$"}}}', {})
    assert not valid(schema, "\u0661")


def test_resolved_has_the_references_within_and_means_the_same() -> None:
    named = {"properties": {"a": {"$ref": "address.json#/definitions/zip"}, "b": {"$ref": "other.json"}}}
    address = refer({"definitions": {"zip": {"type": "string"}}, "properties": {"o": {"$ref": "other.json"}}})
    other = refer({"$id": "http://example.com/of-its-own.json", "type": "integer"})
    for extra in ({}, {"$schema": D20}, {"$id": "http://example.com/root.json"}):
        references = {"address.json": address, "other.json": other}
        schema = parse(json.dumps(named | extra), references)
        alone = parse(schema.formatted("resolved"), {})
        for value in ({"a": "1", "b": 1}, {"a": 1}, {"b": "1"}):
            assert valid(schema, value) == valid(alone, value)
        assert not valid(alone, {"a": 1}) and not valid(alone, {"b": "1"})
    assert parse("{}", {}).formatted("resolved") == "{}"


def test_schemas_of_other_drafts_are_referred_to() -> None:
    old = refer(
        {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": True}
    )
    schema = parse(json.dumps({"$schema": D20, "prefixItems": [{"$ref": "old.json"}]}), {"old.json": old})
    assert valid(schema, [2])
    assert not valid(schema, [3])


def test_the_format_is_pickled_by_name() -> None:
    assert type(pickle.loads(pickle.dumps(JSON_SCHEMA))) is type(JSON_SCHEMA)
    assert (JSON_SCHEMA.name, JSON_SCHEMA.summary[:11]) == ("JSON", "JSON Schema")


@pytest.mark.parametrize(
    ("schema", "worker"),
    [
        ({"properties": {"a": {"pattern": "^[a-z]+$"}}}, False),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, True),
        ({"patternProperties": {"(a|b)*c": {}}}, True),
        ({"patternProperties": {f"^a{n}": {} for n in range(300)}}, True),
        ({"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}}, False),
        ({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}, False),
        ({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}, True),
        ({"items": {"$ref": "#"}, "contains": {"$ref": "#"}}, True),
        ({"definitions": {"a": {"pattern": "(a+)+$"}}}, False),
    ],
)
def test_what_needs_a_worker(schema: Any, worker: bool) -> None:
    assert parse(json.dumps(schema), {}).needs_worker is worker


# Bad input


def nested(keyword: str, levels: int, inner: Any) -> Any:
    for _ in range(levels):
        inner = {keyword: {"a": inner}} if keyword == "properties" else {keyword: [inner]}
    return inner


FIELDS = {f"field{n}": {"type": "string", "description": "x" * 40, "maxLength": 10} for n in range(10_000)}
BOMB = {f"a{n}": {"allOf": [{"$ref": f"#/definitions/a{n + 1}"}] * 2} for n in range(60)} | {
    "a60": {"type": "string"}
}
MUTUAL = {
    f"a{n}": {
        "oneOf": [
            {
                "properties": {"x": {"$ref": f"#/definitions/a{(n + k) % 12}"}, "k": {"const": k}},
                "required": ["k"],
            }
            for k in range(12)
        ]
    }
    for n in range(12)
}
CHANGED = json.loads(json.dumps(MUTUAL))
CHANGED["a5"]["oneOf"][3]["properties"]["n"] = {"type": "number"}
TAGGED = [{"properties": {"t": {"const": n}}, "required": ["t"]} for n in range(1001)]

HOSTILE: dict[str, tuple[Any, Any]] = {
    "10,000 fields": (
        {"properties": FIELDS, "additionalProperties": False},
        {"properties": FIELDS | {"x": {"type": "string"}}},
    ),
    "10,000 fields, 2020-12": (
        {"$schema": D20, "properties": FIELDS, "required": list(FIELDS)},
        {"$schema": D20, "properties": FIELDS},
    ),
    "200 levels of members": (
        nested("properties", 200, {"type": "string"}),
        nested("properties", 200, {"type": "number"}),
    ),
    "200 levels of allOf": (
        nested("allOf", 200, {"type": "string"}),
        nested("allOf", 200, {"type": "number"}),
    ),
    "200 levels of anyOf": (
        nested("anyOf", 200, {"type": "string"}),
        nested("anyOf", 200, {"type": "number"}),
    ),
    "200 levels of oneOf": (nested("oneOf", 200, {"type": "string"}), nested("oneOf", 200, {"maxLength": 1})),
    "schemas that refer to one another": (
        {"$ref": "#/definitions/a0", "definitions": MUTUAL},
        {"$ref": "#/definitions/a0", "definitions": CHANGED},
    ),
    "1,000 alternatives": ({"oneOf": TAGGED[:1000]}, {"oneOf": TAGGED}),
    "unions of unions": (
        {"allOf": [{"anyOf": [{"required": [f"a{n}{k}"]} for k in range(10)]} for n in range(20)]},
        {"allOf": [{"anyOf": [{"required": [f"a{n}{k}x"]} for k in range(10)]} for n in range(20)]},
    ),
    "50,000 values": (
        {"enum": [f"v{n}" for n in range(50_000)]},
        {"enum": [f"v{n}" for n in range(1, 50_001)]},
    ),
    "10,000 references": (
        {
            "definitions": {"s": {"type": "string"}},
            "properties": {f"f{n}": {"$ref": "#/definitions/s"} for n in range(10_000)},
        },
        {
            "definitions": {"s": {"type": "number"}},
            "properties": {f"f{n}": {"$ref": "#/definitions/s"} for n in range(10_000)},
        },
    ),
    "patterns and names": (
        {
            "properties": {f"f{n}": {} for n in range(2000)},
            "patternProperties": {f"^g{n}": {"type": "string"} for n in range(1000)},
        },
        {
            "properties": {f"h{n}": {} for n in range(2000)},
            "patternProperties": {f"^i{n}": {"type": "string"} for n in range(1000)},
        },
    ),
    "dependencies": (
        {"dependencies": {f"f{n}": [f"f{n + 1}"] for n in range(5000)}},
        {"dependencies": {f"f{n}": [f"f{n + 2}"] for n in range(5000)}},
    ),
    "a chain of references": (
        {
            "definitions": {f"a{n}": {"$ref": f"#/definitions/a{n + 1}"} for n in range(5000)}
            | {"a5000": {}},
            "$ref": "#/definitions/a0",
        },
        {"type": "string"},
    ),
}


@pytest.mark.one_in(7)
@pytest.mark.parametrize("name", HOSTILE)
def test_large_and_hostile_schemas_are_answered(name: str) -> None:
    """Within two seconds of processor time each on an idle machine (ten here: tests run beside others)."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    old, new = (json.dumps(one) for one in HOSTILE[name])
    for reader, writer in ((new, old), (old, new)):
        began = time.process_time()
        try:
            one, other = JSON_SCHEMA.parse(reader, {}), JSON_SCHEMA.parse(writer, {})
            parsed = time.process_time()
            found = JSON_SCHEMA.differences(one, other)
            assert len(found) <= 100
        except SchemaError as error:
            assert str(error).startswith("too complex")
            parsed = began
        assert parsed - began < 10
        assert time.process_time() - parsed < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024 * 1024


@pytest.mark.parametrize(
    ("text", "message", "path", "line"),
    [
        (
            json.dumps({"$ref": "#/definitions/a0", "definitions": BOMB}),
            "too complex: more than 20000 schemas",
            None,
            None,
        ),
        ('{"$ref": "#"}', "a schema refers to itself for the same value", "", None),
        (
            '{"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}}',
            "refers to itself",
            "/properties/a",
            None,
        ),
        ('{"a": 1,\n"a": 2}', 'the key "a" is there twice', "", 2),
        ('{"minimum": NaN}', "NaN is no JSON", "", None),
        ("[" * 1_000_000, "nested deeper than 500", "", 1),
        ('{"type": "string"', "not JSON", "", 1),
        ("", "not JSON", "", 1),
        ("[]", "an object, true or false", "", None),
        ('{"pattern": "("}', "not a regular expression", "/pattern", None),
        ('{"patternProperties": {"[": {}}}', "not a regular expression", "/patternProperties/[", None),
        (
            '{"items": {"properties": {"a": 1}}}',
            "a schema of draft-07 is an object, true or false",
            "/items/properties/a",
            None,
        ),
        (
            '{"$schema": "http://json-schema.org/draft-04/schema#", "not": true}',
            "a schema of draft-04 is an object",
            "/not",
            None,
        ),
        ('{"title": "\\ud800"}', "half of a surrogate pair", "", None),
        ('{"properties": {"' + "x" * 100_000 + '": {"type": 1}}}', "type has to be", None, None),
    ],
)
def test_bad_schemas_are_refused_with_the_place(
    text: str, message: str, path: str | None, line: int | None
) -> None:
    began = time.process_time()
    with pytest.raises(SchemaError) as refused:
        JSON_SCHEMA.parse(text, {})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 600
    assert refused.value.line == line
    if path is not None:
        assert refused.value.path == path
    assert time.process_time() - began < 10


def test_too_many_references() -> None:
    tree = ResolvedReference("{}", {})
    for n in range(1200):
        tree = ResolvedReference("{}", {f"r{n}.json": tree})
    with pytest.raises(SchemaError, match="too complex: more than 1000 references"):
        parse("{}", {"first.json": tree})
