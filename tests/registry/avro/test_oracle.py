"""Apache Avro's Java library reads the same texts, writes the same canonical ones, and finds the same differences, by
their types and nearly always their places; what it decodes is the same JSON. The gate compares recorded answers; with
`--long` the library is asked about 12,700 pairs, of which it reads 10,000."""

from __future__ import annotations

import base64
import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from leafcuttr_registry.avro.format import AvroFormat
from leafcuttr_registry.avro.schema import AvroSchema
from leafcuttr_sdk.schemas import ResolvedReference, SchemaError
from support import avro_oracle, jars
from support.avro_schemas import datum, make

FORMAT = AvroFormat()
TEXTS = [
    '{"type":"record","name":"a.R","fields":[{"name":"x","type":{"type":"Foo"}}]}',
    '{"type":"record","name":"a.R","fields":[{"name":"y","type":{"type":"fixed","name":"Foo","size":2}},{"name":"x","type":{"type":"Foo"}}]}',
    '{"type":{"type":"string"}}',
    '"string"',
    '"x"',
    '["null","null"]',
    "[]",
    '{"type":"array","items":["int",["int"]]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"R2"},{"name":"y","type":{"type":"record","name":"R2","fields":[]}}]}',
    '{"type":"enum","name":"int","symbols":[]}',
    '{"type":"enum","name":"a.int","symbols":["a"]}',
    '{"type":"enum","name":"E","symbols":["a","a"]}',
    '{"type":"enum","name":"E","symbols":["a"],"default":"b"}',
    '{"type":"enum","name":"E","symbols":["a"],"default":5}',
    '{"type":"fixed","name":"E","size":-1}',
    '{"type":"fixed","name":"E","size":0}',
    '{"type":"fixed","name":"E","size":1.0}',
    '{"type":"fixed","name":"E","size":3000000000}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"int","default":1.0}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"int","default":3000000000}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"double","default":"NaN"}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"double","default":"xx"}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":["null","string"],"default":"a"}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":["null","string"],"default":1}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"int","order":"foo"}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"int","order":"IGNORE"}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"int","order":5}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"int"},{"name":"x","type":"int"}]}',
    '{"type":"record","name":"R","fields":[{"name":"x-y","type":"int"}]}',
    '{"type":"record","name":"R","namespace":"a..b","fields":[]}',
    '{"type":"record","name":"R","namespace":"a-b","fields":[]}',
    '{"type":"record","name":".R","namespace":"a","fields":[]}',
    '{"type":"record","name":"a.","fields":[]}',
    '{"type":"record","name":"é","fields":[]}',
    '{"type":"record","name":5,"fields":[]}',
    '{"type":"record","name":"R","aliases":"x","fields":[]}',
    '{"type":"record","name":"R","aliases":["x-"],"fields":[]}',
    '{"type":"record","name":"R","aliases":["x"],"doc":5,"fields":['
    '{"name":"a","type":"int","aliases":["a b"],"doc":""}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["X"]}},{"name":"b","type":{"type":"enum","name":"E","symbols":["X"]}}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["X"]}},{"name":"b","type":{"type":"enum","name":"E","symbols":["Y"]}}]}',
    '{"type":"int","x":"\\u0000\\u001f\\u007f\\u2028/\\/\\n"}',
    '{"type":"int"} x',
    '// c\n{"type":"int"}',
    '{"type":"int",}',
    '{"type":"int","a":NaN}',
    "",
    '{"type":"bytes","logicalType":"decimal","precision":4,"scale":5}',
    '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}',
    '{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":5}',
    '{"type":"fixed","name":"F","size":2,"logicalType":"decimal","precision":4}',
    '{"type":"fixed","name":"F","size":16,"logicalType":"uuid"}',
    '{"type":"string","logicalType":"uuid","avro.java.string":"String"}',
    '{"type":"bytes","logicalType":"decimal","precision":"4"}',
    '{"type":"long","logicalType":"local-timestamp-nanos"}',
    '{"type":"record","name":"a.R","aliases":["x","b.y"],"fields":[{"name":"x","type":{"type":"record","name":"a.string","fields":[{"name":"q","type":["null","a.string"]}]}}]}',
    '{"type":"error","name":"R","fields":[]}',
    '{"type":"record","name":"a.R","fields":[{"name":"x","type":{"type":"record","name":"Q","namespace":"","fields":[{"name":"z","type":"Q"}]}},{"name":"w","type":"Q"}]}',
    '{"type":"array","items":"int","default":[],"doc":"x","aliases":5}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"R","default":{}}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"],"default":null},{"name":"b","type":{"type":"record","name":"R","fields":[]}}]}',
]
"""Texts that one parser or another takes in its own way."""
REFERENCES = [
    '{"type": "enum", "name": "one.E", "symbols": ["A"]}',
    '{"type": "record", "name": "one.M", "fields": [{"name": "e", "type": "E"}, {"name": "f", "type":'
    ' {"type": "fixed", "name": "F", "size": 1}}]}',
    '["null", {"type": "fixed", "name": "U", "size": 2}]',
]
REFERRING = [
    '"one.M"',
    '["one.E", "one.M", "one.F", "U"]',
    '{"type": "record", "name": "two.R", "fields": [{"name": "f", "type": "one.F"}, {"name": "m", "type": "one.M"}]}',
    '{"type": "record", "name": "one.R", "fields": [{"name": "f", "type": ["F", "E"]}, {"name": "x", "type": {"type":'
    ' "enum", "name": "E", "symbols": ["A"]}}]}',
    '{"type": "enum", "name": "one.E", "symbols": ["B"]}',
    '"F"',
]


def parsed(text: str, canonical: str | None) -> AvroSchema | None:
    try:
        schema = FORMAT.parse(text, {})
    except SchemaError as error:
        # Defaults that the specification forbids, and Java's parser lets pass.
        assert canonical is None or "/default: " in str(error), (text, error)
        return None
    assert schema.canonical == canonical, text
    return schema


def compare(answers: list[dict[str, Any]]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for one in answers:
        reader, writer = map(parsed, one["texts"], one["canonical"])
        if reader is None or writer is None:
            counted["refused"] += 1
            continue
        found = FORMAT.differences(reader, writer)
        if one["differences"] is None:
            # It ends with an exception, for which the rule has another name.
            assert "READER_FIELD_AMBIGUOUS" in {each.type for each in found}, one["texts"]
            counted["ambiguous"] += 1
            continue
        theirs = {(type, path) for type, path in one["differences"]}
        ours = {(each.type, each.path) for each in found}
        assert {type for type, _ in ours} == {type for type, _ in theirs}, (one["texts"], ours, theirs)
        counted["incompatible" if theirs else "compatible"] += 1
        # Its paths begin anew within unions, and are kept for pairs that it meets again.
        counted["places"] += ours == theirs
        counted.update(type for type, _ in ours)
    return counted


def test_recorded_answers() -> None:
    lines = avro_oracle.RECORDED.read_text(encoding="utf-8").splitlines()
    assert len(lines) == avro_oracle.PAIRS
    counted = compare([json.loads(line) for line in lines])
    assert counted["compatible"] > 60 and counted["incompatible"] > 120
    for rule in FORMAT.rules:
        assert not rule.breaks or rule.type == "READER_FIELD_AMBIGUOUS" or counted[rule.type] > 2, rule.type


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason="Java and Maven")
def test_ten_thousand_pairs() -> None:
    counted = compare(avro_oracle.answered(avro_oracle.pairs(12_700, seed=1)))
    judged = counted["compatible"] + counted["incompatible"]
    assert judged > 10_000 and counted["places"] > judged - 30
    print(dict(counted))


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason="Java and Maven")
def test_texts_are_read_alike() -> None:
    answers = avro_oracle.ask([{"ask": "parse", "references": [], "text": text} for text in TEXTS])
    read = 0
    for text, answer in zip(TEXTS, answers, strict=True):
        schema = parsed(text, answer.get("canonical"))
        read += schema is not None
        assert (schema and schema.parsed.root.logical) == answer.get("logical"), text
    assert 20 < read < len(TEXTS) - 20


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason="Java and Maven")
def test_references_are_named_alike() -> None:
    references = {str(at): ResolvedReference(text, {}) for at, text in enumerate(REFERENCES)}
    questions = [{"ask": "parse", "references": REFERENCES, "text": text} for text in REFERRING]
    for text, answer in zip(REFERRING, avro_oracle.ask(questions), strict=True):
        try:
            schema = FORMAT.parse(text, references)
        except SchemaError as error:
            assert "canonical" not in answer, (text, error)
            continue
        assert schema.canonical == answer["canonical"]
        assert schema.formatted("resolved") == answer["resolved"]


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason="Java and Maven")
def test_what_is_encoded_is_decoded_alike() -> None:
    random = Random(3)
    cases: list[tuple[str, bytes, Any]] = []
    while len(cases) < 2_000:
        text = json.dumps(make(random))
        try:
            schema = FORMAT.parse(text, {})
            value = datum(random, schema.parsed.root)
        except (SchemaError, RecursionError):
            continue
        cases.append((text, schema.codec().encode(value), value))
    questions = [
        {"ask": "decode", "text": text, "data": base64.b64encode(data).decode()} for text, data, _ in cases
    ]
    for (text, data, value), answer in zip(cases, avro_oracle.ask(questions), strict=True):
        assert "value" in answer, (text, answer)
        assert FORMAT.parse(text, {}).codec().decode(data) == value
        if answer["value"] or data:
            # Where all takes no bytes, its encoder writes nothing, or half of it.
            assert json.loads(answer["value"]) == value, (text, answer)
