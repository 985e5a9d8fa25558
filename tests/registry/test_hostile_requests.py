"""Requests that nobody means well: an error in JSON, nothing in the log, and others are served."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr_registry.api.bodies import TooManyValuesError, parse
from support.registry import Asked, RegistryProcess

LONE = "\ud800"
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**31,
    10**400,
    "",
    "x",
    "\0",
    LONE,
    [],
    [1],
    [None],
    {},
    {"a": {"b": [{}]}},
    float("nan"),
    float("inf"),
)
MEMBERS = {
    "POST /subjects/odd/versions": (
        "schema schemaType references metadata ruleSet version id schemaTagsToAdd schemaTagsToRemove"
    ),
    "POST /subjects/odd": "schema schemaType references metadata ruleSet version id",
    "POST /compatibility/subjects/odd/versions": "schema schemaType references metadata ruleSet version id",
    "PUT /config/odd": (
        "compatibility normalize alias compatibilityGroup defaultMetadata overrideMetadata defaultRuleSet "
        "overrideRuleSet validateFields"
    ),
    "PUT /mode/odd": "mode",
    "POST /subjects/odd/versions/1/tags": (
        "tagsToAdd tagsToRemove rulesToMerge rulesToRemove newVersion metadata ruleSet"
    ),
}
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no object": b"[]",
    "cut": b'{"schema"',
    "no UTF-8": b'{"schema":"\xff"}',
    "UTF-16": '{"schema":"a"}'.encode("utf-16"),
    "a surrogate in bytes": b'{"schema":"\xed\xa0\x80"}',
    "a surrogate in UTF-16": json.dumps({"metadata": {"properties": {"a": LONE}}}).encode("utf-16"),
    "nested": b'{"schema":' + b"[" * 100_000,
    "nested and large": b"[" * 2_000_000 + b"]" * 2_000_000,
    "many digits": b'{"id":' + b"9" * 5000 + b"}",
    "many values": b'{"a":[' + b"[]," * 1_300_000 + b"[]]}",
    "many members": b"{" + b",".join(b'"k%d":1' % n for n in range(300_000)) + b"}",
    "too large": b'{"schema":"' + b"a" * 5_000_000 + b'"}',
}


@pytest.fixture(scope="module")
def registry(own_registry: RegistryProcess) -> RegistryProcess:
    return own_registry


@pytest.fixture(autouse=True)
def version(ask: Asked) -> None:
    ask("DELETE", "/config/odd")  # an alias would be another subject
    schema = '{"type":"record","name":"odd","fields":[]}'
    ask.register("odd", schema, schemaType="AVRO")


WAYS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda odd: odd,
    "tags": lambda odd: {"tags": odd},
    "rules": lambda odd: {"domainRules": [{"name": "a", "type": "b", "params": odd}]},
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("endpoint", "way"), list(itertools.product(MEMBERS, WAYS)))
def test_members_of_wrong_types(registry: RegistryProcess, ask: Asked, endpoint: str, way: str) -> None:
    method, path = endpoint.split()
    for name in MEMBERS[endpoint].split():
        for odd in ODD:
            inner = WAYS[way](odd)
            answer = ask(method, path, {"schema": '"string"', name: inner})
            assert answer.status < 500 and answer.json is not None, (name, inner, answer)
            assert answer.status < 400 or (answer.code and answer.json["message"])
    assert "Traceback" not in registry.broker.log


@pytest.mark.one_in(2)
@pytest.mark.parametrize("what", BODIES)
def test_bodies(registry: RegistryProcess, ask: Asked, what: str) -> None:
    for endpoint in MEMBERS:
        method, path = endpoint.split()
        answer = ask(method, path, content=BODIES[what])
        assert answer.status in (400, 413, 422) and answer.json["message"], answer
    assert "Traceback" not in registry.broker.log


def test_values_are_counted() -> None:
    assert parse(b"[" + b"1," * 19_998 + b"1]") == [1] * 19_999
    with pytest.raises(TooManyValuesError):
        parse(b"[" + b"1," * 20_000 + b"1]")
    with pytest.raises(TooManyValuesError):
        parse(b"{" + b",".join(b'"%d":[{}]' % n for n in range(10_001)) + b"}")


@pytest.mark.long
def test_tags_of_what_is_no_schema(ask: Asked) -> None:
    """The text is read for its tags before its format reads it."""
    tags = [{"schemaEntity": {"entityType": "sr_record", "entityPath": "a"}, "tags": ["t"]}]
    for text in (
        '{"type":"record","name":"a","fields":5}',
        '{"type":"record","name":"a","confluent:tags":5}',
        '{"type":"record","name":"a","confluent:tags":[[]]}',
        '{"type":"record","name":"a","fields":[' + "1," * 200_000 + "1]}",
    ):
        body = {"schema": text, "schemaTagsToAdd": tags}
        answer = ask("POST", "/subjects/tagged/versions", body)
        assert (answer.status, answer.code) == (422, 42201), answer
