"""Values of `_schemas`: what Confluent's registry writes, and what it and others have written."""

from __future__ import annotations

import json

import pytest

from leafcuttr_registry.storage.values import decode, encode
from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.events import (
    ConfigKey,
    ContextKey,
    DeletedUpTo,
    DeleteSubjectKey,
    Event,
    ModeKey,
    OtherKey,
    Present,
    SchemaKey,
    SchemaValue,
)
from leafcuttr_sdk.schemas import SchemaReference

KEY = SchemaKey("a", 2)
FULL = Content(
    "JSON",
    '{"type":"object"}',
    (SchemaReference("b.json", "b", 1),),
    {"tags": {"**.ssn": ["PII"]}, "properties": {"owner": "Ada"}},
    {
        "domainRules": [
            {"name": "check", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "disabled": False}
        ]
    },
)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        (
            Event(KEY, SchemaValue(7, Content("AVRO", '"string"'))),
            b'{"subject":"a","version":2,"id":7,"schemaType":"AVRO","schema":"\\"string\\"","deleted":false}',
        ),
        (
            Event(KEY, SchemaValue(7, FULL, deleted=True)),
            b'{"subject":"a","version":2,"id":7,"schemaType":"JSON","references":[{"name":"b.json","subject":"b",'
            b'"version":1}],"metadata":{"tags":{"**.ssn":["PII"]},"properties":{"owner":"Ada"}},"ruleSet":'
            b'{"domainRules":[{"name":"check","kind":"CONDITION","mode":"WRITE","type":"CEL","disabled":false}]},'
            b'"schema":"{\\"type\\":\\"object\\"}","deleted":true}',
        ),
        (Event(ConfigKey(None), Config({"compatibilityLevel": "FULL"})), b'{"compatibilityLevel":"FULL"}'),
        (
            Event(ConfigKey("a"), Config({"compatibilityLevel": "FULL", "alias": "b", "normalize": False})),
            b'{"subject":"a","alias":"b","normalize":false,"compatibilityLevel":"FULL"}',
        ),
        (Event(ModeKey("a"), "IMPORT"), b'{"subject":"a","mode":"IMPORT"}'),
        (Event(ModeKey(None), "READONLY"), b'{"mode":"READONLY"}'),
        (Event(DeleteSubjectKey("a"), DeletedUpTo(3)), b'{"subject":"a","version":3}'),
        (Event(ContextKey("default", ".c"), Present()), b'{"tenant":"default","context":".c"}'),
        (Event(KEY, None), None),
    ],
)
def test_values_there_and_back(event: Event, data: bytes | None) -> None:
    assert encode(event) == data
    back = decode(event.key, data)
    if isinstance(event.value, SchemaValue):
        assert isinstance(back, SchemaValue)
        assert (back.id, back.deleted, back.content.digest) == (
            event.value.id,
            event.value.deleted,
            event.value.content.digest,
        )
        assert encode(Event(event.key, back)) == data
    else:
        assert back == event.value


def test_what_others_write_is_read() -> None:
    # Confluent's registry before 5.5 has no schemaType; its readers put offset and ts in; md5 where metadata are
    # encrypted; and Karapace writes tombstones as empty values, and references in any order.
    old = decode(
        KEY, b'{"subject":"a","version":2,"id":1,"schema":"\\"int\\"","deleted":false,"offset":5,"ts":9}'
    )
    assert isinstance(old, SchemaValue) and old.content.type == "AVRO" and not old.deleted
    karapace = decode(
        KEY,
        b'{"subject":"a","version":2,"id":1,"schema":"x","deleted":true,"schemaType":"PROTOBUF","references":[{"version":1,"name":"n","subject":"s"}]}',
    )
    assert isinstance(karapace, SchemaValue)
    assert karapace.content.references == (SchemaReference("n", "s", 1),) and karapace.deleted
    assert decode(KEY, b"") is None
    hashed = decode(KEY, b'{"id":1,"schema":"x","md5":"AAAAAAAAAAAAAAAAAAAAAA=="}')
    assert isinstance(hashed, SchemaValue) and hashed.content.guid == "00000000-0000-0000-0000-000000000000"
    assert decode(OtherKey("ASSOC"), b"anything") == Present()


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"[]",
        b"{}",
        b'{"id":1}',
        b'{"id":"1","schema":"x"}',
        b'{"id":-1,"schema":"x"}',
        b'{"id":1,"schema":5}',
        b'{"id":1,"schema":"\\ud800"}',
        b'{"id":1,"schema":"x","references":[5]}',
        b"[" * 100000,
        b'{"id":1,"schema":"x","metadata":5}',
        b'{"id":1,"schema":"x","ruleSet":{"domainRules":{}}}',
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(KEY, data)


@pytest.mark.parametrize(
    ("key", "data"), [(ModeKey("a"), b'{"mode":"ALL"}'), (ConfigKey("a"), b'{"compatibilityLevel":"SOME"}')]
)
def test_words_that_are_none_are_refused(key: ModeKey | ConfigKey, data: bytes) -> None:
    with pytest.raises(ValueError, match=json.loads(data).popitem()[1]):
        decode(key, data)
