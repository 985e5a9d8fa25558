"""Keys of `_schemas`: the bytes of Confluent's registry, and those that others have written."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_registry.storage.keys import NotAKeyError, decode, encode
from leafcuttr_registry.subjects.events import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    Key,
    ModeKey,
    NoopKey,
    OtherKey,
    SchemaKey,
)

# As Jackson writes the key classes of Confluent's registry 8: `@JsonPropertyOrder`, NON_EMPTY.
BYTES: list[tuple[Key, bytes]] = [
    (SchemaKey("a-value", 3), b'{"keytype":"SCHEMA","subject":"a-value","version":3,"magic":1}'),
    (ConfigKey(None), b'{"keytype":"CONFIG","magic":0}'),
    (ConfigKey("a"), b'{"keytype":"CONFIG","subject":"a","magic":0}'),
    (ModeKey(None), b'{"keytype":"MODE","magic":0}'),
    (ModeKey(":.ctx:"), b'{"keytype":"MODE","subject":":.ctx:","magic":0}'),
    (DeleteSubjectKey("a"), b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}'),
    (ClearSubjectKey("a"), b'{"keytype":"CLEAR_SUBJECT","subject":"a","magic":0}'),
    (NoopKey(), b'{"keytype":"NOOP","magic":0}'),
    (ContextKey("default", ".ctx"), b'{"keytype":"CONTEXT","tenant":"default","context":".ctx","magic":0}'),
    (
        SchemaKey('ä"\\\n\x1f/\x7f', 1),
        '{"keytype":"SCHEMA","subject":"ä\\"\\\\\\n\\u001F/\x7f","version":1,"magic":1}'.encode(),
    ),
]


@pytest.mark.parametrize(("key", "data"), BYTES)
def test_the_bytes_are_those_of_confluents_registry(key: Key, data: bytes) -> None:
    assert encode(key) == data
    assert decode(data) == key


@pytest.mark.parametrize(
    ("data", "key"),
    [
        # Karapace's keys of old, and its keys without a subject.
        (b'{"subject":"a","version":1,"magic":1,"keytype":"SCHEMA"}', SchemaKey("a", 1)),
        (b'{"subject":null,"magic":0,"keytype":"CONFIG"}', ConfigKey(None)),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', ConfigKey(None)),
        # Confluent's registry before magic 1.
        (b'{"magic":0,"keytype":"SCHEMA","subject":"a","version":1}', SchemaKey("a", 1)),
        (b'{ "keytype" : "NOOP" }', NoopKey()),
        (b'{"keytype":"ASSOC","tenant":"default"}', OtherKey("ASSOC")),
        (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":2}', OtherKey("SCHEMA")),
        (b'{"keytype":"FUTURE","magic":5}', OtherKey("FUTURE")),
    ],
)
def test_others_are_read(data: bytes, key: Key) -> None:
    assert decode(data) == key


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"\xff",
        b"[]",
        b"{}",
        b'{"keytype":1}',
        b'{"keytype":"SCHEMA","subject":"a"}',
        b"[" * 100000,
        b'{"keytype":"SCHEMA","subject":"a","version":"1"}',
        b'{"keytype":"MODE","subject":1}',
        b'{"keytype":"SCHEMA","subject":"a","version":true}',
        b'{"keytype":"DELETE_SUBJECT"}',
    ],
)
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(NotAKeyError):
        decode(data)


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(subject=NAMES, version=st.integers(1, 2**31 - 1))
def test_any_subject_comes_back_and_is_json(subject: str, version: int) -> None:
    for key in (SchemaKey(subject, version), ConfigKey(subject), ModeKey(subject), DeleteSubjectKey(subject)):
        data = encode(key)
        assert decode(data) == key
        assert json.loads(data)["subject"] == subject


@given(data=st.binary())
def test_any_bytes_are_a_key_or_refused(data: bytes) -> None:
    with contextlib.suppress(NotAKeyError):
        decode(data)
