"""Digests and guids, as Confluent's registry computes them (`Schema.updateHash`, `MD5`)."""

from __future__ import annotations

import hashlib
import uuid

from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.metadata import read_metadata, read_rules
from leafcuttr_sdk.schemas import SchemaReference


def guid(data: bytes) -> str:
    return str(uuid.UUID(bytes=hashlib.md5(data, usedforsecurity=False).digest()))


def test_a_schema_alone() -> None:
    assert Content("AVRO", '"string"').guid == guid(b'"string"')


def test_all_of_it_counts_and_what_is_empty_is_not_what_is_absent() -> None:
    references = (SchemaReference("n", "s", 258),)
    metadata = read_metadata(
        {"tags": {"b": ["2", "1"], "a": ["0"]}, "properties": {"p": "v"}, "sensitive": ["p"]}
    )
    rules = read_rules(
        {
            "encodingRules": [
                {"name": "e", "type": "ENCRYPT", "tags": ["PII"], "params": {"k": "v"}, "disabled": True}
            ],
            "domainRules": [
                {"name": "d", "doc": "o", "type": "CEL", "expr": "x", "onSuccess": "s", "onFailure": "f"}
            ],
            "enableAt": "CLIENT",
        }
    )
    expected = b"text" + b"ns\0\0\1\2" + b"\1" + b"a0b12pvp" + b"\1"
    expected += b"doTRANSFORMWRITEREADCELxsf" + b"eTRANSFORMWRITEREADENCRYPTPIIkv\1" + b"CLIENT"
    assert Content("JSON", "text", references, metadata, rules).guid == guid(expected)
    assert Content("JSON", "text", (), {}).guid == guid(b"text\1")
    assert Content("AVRO", "text").guid == Content("JSON", "text").guid


def test_the_same_but_for_the_version_in_metadata() -> None:
    one = Content("AVRO", "a", (), {"properties": {"confluent:version": "1"}})
    assert one.same(Content("AVRO", "a")) and one.digest != Content("AVRO", "a").digest
    assert not one.same(Content("AVRO", "b")) and not one.same(Content("JSON", "a"))
    assert not one.same(Content("AVRO", "a", (), {"properties": {"o": "1"}}))
