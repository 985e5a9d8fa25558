"""From JSON to types."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.avro.parser import MOST_LEVELS, Parsed, parse
from leafcuttr_registry.avro.types import (
    NO_DEFAULT,
    ArrayType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError


def read(text: str, validate: bool = True, **references: str) -> Parsed:
    named = {name: ResolvedReference(one, {}) for name, one in references.items()}
    return parse(text, named, Budget(), validate=validate)


def record(fields: str, name: str = "R", more: str = "") -> str:
    return f'{{"type": "record", "name": "{name}"{more}, "fields": [{fields}]}}'


def field(type: str, more: str = "", name: str = "x") -> str:
    return record(f'{{"name": "{name}", "type": {type}{more}}}')


def root(text: str) -> Any:
    return read(text).root


@pytest.mark.parametrize("kind", ["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
def test_primitives(kind: str) -> None:
    assert root(f'"{kind}"').kind == kind
    found = root(f'{{"type": "{kind}", "doc": "left out", "own": 1}}')
    assert (found.kind, found.props) == (kind, {"own": 1})


def test_a_record() -> None:
    found = root(
        record(
            '{"name": "a", "type": "int", "doc": "d", "default": 1, "order": "descending", "aliases": ["b", "b"],'
            ' "own": [1]}, {"name": "c", "type": "string"}',
            more=', "namespace": "one", "doc": "D", "aliases": ["Q", "two.P", ".N"], "own": {}',
        )
    )
    assert isinstance(found, RecordType)
    assert (found.name.full, found.doc, found.is_error, found.props) == ("one.R", "D", False, {"own": {}})
    assert [one.full for one in found.aliases] == ["one.Q", "two.P", "N"]
    a, c = found.fields
    assert (a.name, a.type.kind, a.doc, a.default, a.order, a.aliases, a.props) == (
        *("a", "int", "d", 1, "descending", ["b"]),
        {"own": [1]},
    )
    assert (c.default, c.order, c.aliases) == (NO_DEFAULT, "ascending", [])
    assert found.by_name == {"a": a, "c": c} and found.aliased
    assert root('{"type": "error", "name": "E", "fields": []}').is_error


def test_the_other_complex_types() -> None:
    enum = root('{"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "B", "own": 1}')
    assert isinstance(enum, EnumType)
    assert (enum.symbols, enum.default, enum.props) == (["A", "B"], "B", {"own": 1})
    fixed = root('{"type": "fixed", "name": "one.F", "size": 16}')
    assert isinstance(fixed, FixedType) and (fixed.size, fixed.name.full) == (16, "one.F")
    array = root('{"type": "array", "items": "int", "default": []}')
    assert isinstance(array, ArrayType) and (array.items.kind, array.props) == ("int", {"default": []})
    map = root('{"type": "map", "values": "int"}')
    assert isinstance(map, MapType) and map.values.kind == "int"
    union = root('["null", "int"]')
    assert isinstance(union, UnionType) and [one.label for one in union.branches] == ["null", "int"]


def test_a_namespace_is_that_of_what_is_around() -> None:
    found = root(
        '{"type": "record", "name": "one.R", "fields": ['
        '{"name": "a", "type": {"type": "enum", "name": "E", "symbols": []}},'
        '{"name": "b", "type": {"type": "fixed", "name": "F", "namespace": "two", "size": 1}},'
        '{"name": "c", "type": ["E", "two.F", "R"]},'
        '{"name": "d", "type": {"type": "enum", "name": "N", "namespace": "", "symbols": []}},'
        '{"name": "e", "type": {"type": "array", "items": "N"}}]}'
    )
    a, b, c, d, e = (one.type for one in found.fields)
    assert [a.label, b.label, d.label] == ["one.E", "two.F", "N"]
    assert c.branches == [a, b, found]
    assert e.items is d


def test_names_may_be_defined_later() -> None:
    found = root(
        record(
            '{"name": "a", "type": "E", "default": "A"}, {"name": "b", "type": {"type": "map", "values": "E"}},'
            '{"name": "c", "type": {"type": "array", "items": "R"}}, {"name": "d", "type": ["null", "E"]},'
            '{"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}}'
        )
    )
    a, b, c, d, e = (one.type for one in found.fields)
    assert a is e and b.values is e and c.items is found and d.branches[1] is e


def test_a_definition_may_come_again_if_it_says_the_same() -> None:
    enum = '{"type": "enum", "name": "E", "symbols": ["A"], "doc": "%s"}'
    assert root(record(f'{{"name": "a", "type": {enum % 1}}}, {{"name": "b", "type": {enum % 2}}}'))
    other = '{"type": "enum", "name": "E", "symbols": ["B"]}'
    with pytest.raises(SchemaError, match="/fields/1/type: E is defined twice"):
        root(record(f'{{"name": "a", "type": {enum % 1}}}, {{"name": "b", "type": {other}}}'))


def test_a_text_number_of_a_float() -> None:
    assert root(field('"double"', ', "default": "1.5"')).fields[0].default == 1.5
    value = root(field('"float"', ', "default": "NaN"')).fields[0].default
    assert value != value


REFUSED = [
    ("1", "/: 1 is no type", ""),
    ("null", "/: null is no type", ""),
    ("{}", "a type needs `type`", ""),
    ('{"type": {"type": "string"}}', "a type needs `type`", ""),
    ('{"type": "Unknown"}', "is neither a primitive type nor", "/type"),
    ('"Unknown"', "'Unknown' is not defined", ""),
    (field('["null", "one.Unknown"]'), "'one.Unknown' is not defined", "/fields/0/type/1"),
    ('{"type": "array"}', "the array has no `items`", ""),
    ('{"type": "map", "items": "int"}', "the map has no `values`", ""),
    ('{"type": "record", "fields": []}', "has no `name`", ""),
    ('{"type": "record", "name": 1, "fields": []}', "has no `name`", ""),
    ('{"type": "record", "name": "R"}', "has no list `fields`", ""),
    ('{"type": "record", "name": "R", "fields": {}}', "has no list `fields`", ""),
    (record("1"), "a field is an object", "/fields/0"),
    (record('{"name": "x"}'), "the field has no `type`", "/fields/0"),
    (record('{"type": "int"}'), "the field has no `name`", "/fields/0"),
    (field('"int"', name="x-y"), "the field 'x-y' is no name", "/fields/0/name"),
    (field('"int"', name=""), "the field '' is empty", "/fields/0/name"),
    (
        record('{"name": "x", "type": "int"}, {"name": "x", "type": "int"}'),
        "two fields 'x'",
        "/fields/1/name",
    ),
    (field('"int"', ', "order": "up"'), "is none of ascending, descending, ignore", "/fields/0/order"),
    (field('"int"', ', "order": 1'), "is none of", "/fields/0/order"),
    (field('"int"', ', "aliases": "a"'), "it is a list of strings", "/fields/0/aliases"),
    (field('"int"', ', "aliases": [1]'), "it is a list of strings", "/fields/0/aliases"),
    (field('"int"', ', "default": "1"'), "is no int, which the field 'x' is", "/fields/0/default"),
    (field('"int"', ', "default": null'), "null is no int", "/fields/0/default"),
    (field('["null", "int"]', ', "default": "a"'), "is no union of null, int", "/fields/0/default"),
    (field('"float"', ', "default": "one"'), "'one' is no number", "/fields/0/default"),
    ('{"type": "record", "name": "int", "fields": []}', "is the name of a primitive type", "/name"),
    ('{"type": "record", "name": "é", "fields": []}', "is no name", "/name"),
    ('{"type": "record", "name": "one.", "fields": []}', "is empty", "/name"),
    ('{"type": "record", "name": "R", "namespace": "a-b", "fields": []}', "a part of the namespace", "/name"),
    ('{"type": "record", "name": "a..R", "fields": []}', "a part of the namespace", "/name"),
    ('{"type": "record", "name": "R", "aliases": ["a-b"], "fields": []}', "the alias 'a-b'", "/aliases"),
    ('{"type": "enum", "name": "E"}', "has no list `symbols`", ""),
    ('{"type": "enum", "name": "E", "symbols": "A"}', "has no list `symbols`", ""),
    ('{"type": "enum", "name": "E", "symbols": ["A", 1]}', "a symbol is a string", "/symbols/1"),
    ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', "'A' comes twice", "/symbols/1"),
    ('{"type": "enum", "name": "E", "symbols": ["A-"]}', "the symbol 'A-' is no name", "/symbols/0"),
    ('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}', "'B' is no symbol", "/default"),
    ('{"type": "fixed", "name": "F"}', "the size of the fixed F", "/size"),
    *(
        (f'{{"type": "fixed", "name": "F", "size": {size}}}', "is an integer from 0", "/size")
        for size in ("-1", "1.0", '"1"', "true", "2147483640", "null")
    ),
    ('[["int"]]', "a union is no branch of a union", "/0"),
    ('["int", "string", "int"]', "more than one branch int", "/2"),
    ('[{"type": "array", "items": "int"}, {"type": "array", "items": "long"}]', "branch array", "/1"),
    (field('{"type": "map", "values": ["R", "R"]}'), "more than one branch R", "/fields/0/type/values/1"),
]


@pytest.mark.parametrize(("text", "words", "path"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(text: str, words: str, path: str) -> None:
    with pytest.raises(SchemaError) as raised:
        read(text)
    assert words in str(raised.value)
    assert raised.value.path == path
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        '["null"]',
        "[]",
        record(""),
        '{"type": "enum", "name": "E", "symbols": []}',
        '{"type": "enum", "name": "E", "symbols": [], "default": 1}',
        '{"type": "enum", "name": "one.int", "symbols": []}',
        '{"type": "fixed", "name": "F", "size": 0}',
        field('"int"', ', "order": "IGNORE"'),
        field('"int"', ', "aliases": ["not a name"], "doc": 1'),
        field('["null", "string"]', ', "default": "a"'),
        field('["null", "R"]', ', "default": null'),
        '[{"type": "enum", "name": "one.E", "symbols": []}, {"type": "enum", "name": "two.E", "symbols": []}]',
    ],
)
def test_what_is_accepted(text: str) -> None:
    assert read(text)


def test_old_schemas_are_judged_less() -> None:
    for text in (
        '{"type": "record", "name": "größe", "namespace": "a-b", "fields": []}',
        field('"int"', ', "default": "one"'),
        record(
            '{"name": "a", "type": {"type": "fixed", "name": "F", "size": 1}}, {"name": "b", "type": {"type": "F"}}'
        ),
    ):
        assert read(text, validate=False)
        with pytest.raises(SchemaError):
            read(text)
    with pytest.raises(SchemaError, match="is no name"):
        read('{"type": "record", "name": "a b", "fields": []}', validate=False)


# References


def test_a_reference_defines_names() -> None:
    found = read(
        field('["E", "one.F"]'),
        enum='{"type": "enum", "name": "E", "symbols": ["A"]}',
        fixed='{"type": "fixed", "name": "one.F", "size": 1}',
    )
    assert isinstance(found.root, RecordType)
    assert [one.label for one in found.root.fields[0].type.branches] == ["E", "one.F"]  # type: ignore[attr-defined]
    assert found.referenced == {"E", "one.F"}
    assert found.types.keys() == {"E", "one.F", "R"}


def test_references_of_references_come_first() -> None:
    inner = ResolvedReference('{"type": "enum", "name": "E", "symbols": ["A"]}', {})
    outer = ResolvedReference(field('"E"').replace('"R"', '"M"'), {"E": inner})
    other = ResolvedReference(field('"M"').replace('"R"', '"N"'), {"M": outer, "E": inner})
    found = parse(field('["E", "M", "N"]'), {"N": other, "M": outer}, Budget())
    assert found.referenced == {"E", "M", "N"}


def test_what_is_wrong_in_a_reference_is_said_to_be_there() -> None:
    with pytest.raises(SchemaError, match=r"^in the reference 'x': /size: ") as raised:
        read('"int"', x='{"type": "fixed", "name": "F"}')
    assert raised.value.path == "/size"
    with pytest.raises(SchemaError, match="E is defined twice"):
        read('{"type": "fixed", "name": "E", "size": 1}', x='{"type": "enum", "name": "E", "symbols": []}')


# Too much


def nested(levels: int) -> str:
    text = '"int"'
    for level in range(levels):
        text = record(f'{{"name": "x", "type": {text}}}', name=f"R{level}")
    return text


def test_levels() -> None:
    assert read(nested(MOST_LEVELS))
    with pytest.raises(SchemaError, match="too complex: types are nested more than 200 levels deep"):
        read(nested(MOST_LEVELS + 1))
    with pytest.raises(SchemaError, match="too complex"):
        read('{"type": "array", "items": ' * 300 + '"int"' + "}" * 300)


def test_references_without_number() -> None:
    many = {f"r{at}": ResolvedReference('"int"', {}) for at in range(1001)}
    with pytest.raises(SchemaError, match="too complex: more than 1000 references"):
        parse('"int"', many, Budget())


def test_steps() -> None:
    with pytest.raises(SchemaError, match="too complex"):
        parse(record(", ".join(f'{{"name": "f{at}", "type": "int"}}' for at in range(20))), {}, Budget(10))
