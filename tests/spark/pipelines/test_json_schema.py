"""The JSON Schema of files says what the reader says."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml

from leafcuttr_spark.commands.files import TEMPLATES, template
from leafcuttr_spark.pipelines.json_schema import json_schema
from leafcuttr_spark.pipelines.reading.kinds import Key, Part
from leafcuttr_spark.pipelines.reading.pipeline_parts import PIPELINE
from leafcuttr_spark.pipelines.reading.sink_parts import SINK as SINK_PART
from leafcuttr_spark.pipelines.reading.source_parts import SOURCE as SOURCE_PART
from leafcuttr_spark.pipelines.reading.step_parts import OPERATIONS
from leafcuttr_spark.pipelines.reading.transform_parts import TRANSFORMS
from spark.pipelines.written import HEAD, SINK, faults_of

SCHEMA = json_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
SOURCES = (
    "sources: {orders: {topic: orders}, customers: {topic: c, table: key}, payments: {topic: p}, rest: {topic: r},"
    " large: {topic: l}}\n"
)


class Texts(yaml.SafeLoader):
    """YAML 1.2: `on` is a text, as editors read it."""


Texts.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:bool" or first in "tfTF"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def problems(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(yaml.load(text, Texts))]


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("part", [PIPELINE, SOURCE_PART, SINK_PART], ids=lambda part: part.name)
def test_each_key_is_in_it_with_what_it_says(part: Part) -> None:
    schema = SCHEMA if part is PIPELINE else SCHEMA["$defs"][part.name]
    assert list(schema["properties"]) == [key.name for key in part.keys]
    for key in part.keys:
        assert schema["properties"][key.name]["description"].startswith(key.what)


def test_each_operation_and_each_transform_is_in_it() -> None:
    assert set(SCHEMA["$defs"]["step"]["properties"]) == {"name", "from", *(one.name for one in OPERATIONS)}
    assert {f"transform-{part.name}" for part in TRANSFORMS} <= SCHEMA["$defs"].keys()


def test_all_that_it_refers_to_is_there() -> None:
    def references(node: Any) -> set[str]:
        if isinstance(node, dict):
            own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
            return own.union(*(references(value) for value in node.values()))
        return set().union(*(references(value) for value in node)) if isinstance(node, list) else set()

    assert references(SCHEMA) == {f"#/$defs/{name}" for name in SCHEMA["$defs"]}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_valid(name: str) -> None:
    assert problems(template(name)) == []


@pytest.mark.parametrize(
    "example", [one.example for one in OPERATIONS] + [f"- transform: {one.example}" for one in TRANSFORMS]
)
def test_what_the_reader_takes_is_valid(example: str) -> None:
    text = f"{HEAD}{SOURCES}steps:\n  {example}\n{SINK}"
    if "union" not in example and "sql" not in example:
        text = text.replace(f"  {example}\n", f"  {example}\n    from: orders\n")
    assert faults_of(text.replace("${file:/etc/leafcuttr/salt}", "x")) == []
    assert problems(text) == []


@pytest.mark.parametrize(
    "line",
    [
        "pipelin: x",
        "trigger: {evry: 5s}",
        "trigger: {every: 5 apples}",
        "limits: {records-per-batch: many}",
        "steps: [{filtr: x}]",
        "steps: [{filter: a, drop: b}]",
        "steps: [{name: a}]",
        "steps: [{transform: {type: hsh}}]",
        "steps: [{join: {with: a}}]",
        "late: dead",
        "dead-letters: {topi: d}",
    ],
)
def test_what_the_reader_refuses_is_not_valid(line: str) -> None:
    text = f"{HEAD}{SOURCES}{SINK}{line}\n"
    assert faults_of(text) != []
    assert problems(text) != []


def test_a_variable_may_stand_for_any_text() -> None:
    text = f"{HEAD}{SOURCES}{SINK}variables: {{x: 5s, n: 5}}\n"
    text += 'trigger: {every: "${x}"}\nlimits: {records-per-batch: "${n}"}\n'
    assert (faults_of(text), problems(text)) == ([], [])


def test_all_keys_say_something() -> None:
    def keys(part: Part) -> list[Key]:
        inner = [key.kind for key in part.keys if isinstance(key.kind, Part)]
        return [*part.keys, *(key for one in inner for key in keys(one))]

    for part in (PIPELINE, SOURCE_PART, SINK_PART):
        for key in keys(part):
            assert key.what.endswith("."), key.name
            assert key.kind.words, key.name
