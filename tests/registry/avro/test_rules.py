"""The table of rules: each example shows its rule, and what it says of data is so."""

from __future__ import annotations

import io
import json

import fastavro
import pytest

from leafcuttr_registry.avro.compatibility import differences
from leafcuttr_registry.avro.rules import RULES
from leafcuttr_registry.budget import Budget
from leafcuttr_sdk.schemas import SchemaRule
from support.avro_types import schema_of

DATA = {
    "FIXED_SIZE_MISMATCH": b"0123456789abcdef",
    "MISSING_ENUM_SYMBOLS": "GREEN",
    "READER_FIELD_MISSING_DEFAULT_VALUE": {"id": 1},
    "TYPE_MISMATCH": {"id": 1},
    "MISSING_UNION_BRANCH": {"note": "text"},
    "FIELD_ADDED_WITH_DEFAULT": {"id": 1},
    "FIELD_REMOVED": {"id": 1, "note": "text"},
    "FIELDS_REORDERED": {"id": 1, "note": "text"},
    "FIELD_RENAMED_WITH_ALIAS": {"id": 1},
    "NAME_CHANGED_WITH_ALIAS": {"id": 1},
    "NAMESPACE_CHANGED": {"id": 1},
    "TYPE_PROMOTED": {"id": 1},
    "ENUM_SYMBOL_ADDED": "RED",
    "ENUM_SYMBOL_REMOVED_WITH_DEFAULT": "GREEN",
    "UNION_WIDENED": {"note": "text"},
    "UNION_REPLACED": {"id": 1},
    "ANNOTATION_CHANGED": {"at": 1},
}
"""Of the writer's schema, for fastavro. It compares no names of records outside of unions, and knows nothing of fields
with two candidates."""


@pytest.mark.parametrize("rule", RULES, ids=[rule.type for rule in RULES])
def test_an_example_shows_its_rule(rule: SchemaRule) -> None:
    reader, writer = schema_of(rule.new).parsed.root, schema_of(rule.old).parsed.root
    found = {one.type for one in differences(reader, writer, Budget())}
    assert found == ({rule.type} if rule.breaks else set())
    assert rule.summary.endswith(".") and "\n" not in rule.summary


def test_no_rule_comes_twice() -> None:
    assert len({rule.type for rule in RULES}) == len(RULES)
    assert {rule.type for rule in RULES} - DATA.keys() == {"NAME_MISMATCH", "READER_FIELD_AMBIGUOUS"}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.type in DATA], ids=lambda rule: rule.type)
def test_data_are_read_or_not(rule: SchemaRule) -> None:
    out = io.BytesIO()
    writer, reader = (fastavro.parse_schema(json.loads(text)) for text in (rule.old, rule.new))
    fastavro.schemaless_writer(out, writer, DATA[rule.type])
    out.seek(0)
    if rule.breaks:
        with pytest.raises(Exception, match=r"."):
            fastavro.schemaless_reader(out, writer, reader)
    else:
        assert fastavro.schemaless_reader(out, writer, reader)
