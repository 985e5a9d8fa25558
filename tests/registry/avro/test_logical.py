"""Which logical types are valid."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.avro.logical import NAMES
from support.avro_types import fixed, schema_of, type_of

DECIMAL = {"logicalType": "decimal"}
VALID: list[Any] = [
    {"type": "bytes", **DECIMAL, "precision": 4},
    {"type": "bytes", **DECIMAL, "precision": 4, "scale": 4},
    fixed(2, **DECIMAL, precision=4),
    fixed(16, **DECIMAL, precision=38),
    {"type": "bytes", "logicalType": "big-decimal"},
    {"type": "string", "logicalType": "uuid"},
    fixed(16, logicalType="uuid"),
    fixed(12, logicalType="duration"),
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    *(
        {"type": "long", "logicalType": name}
        for name in sorted(NAMES)
        if name.startswith(("timestamp", "local")) or name == "time-micros"
    ),
]
IGNORED: list[Any] = [
    {"type": "bytes", **DECIMAL},
    {"type": "bytes", **DECIMAL, "precision": 0},
    {"type": "bytes", **DECIMAL, "precision": "4"},
    {"type": "bytes", **DECIMAL, "precision": True},
    {"type": "bytes", **DECIMAL, "precision": 4.0},
    {"type": "bytes", **DECIMAL, "precision": 4, "scale": 5},
    {"type": "bytes", **DECIMAL, "precision": 4, "scale": -1},
    {"type": "bytes", **DECIMAL, "precision": 1 << 31},
    {"type": "string", **DECIMAL, "precision": 4},
    fixed(2, **DECIMAL, precision=5),
    fixed(0, **DECIMAL, precision=1),
    fixed(15, logicalType="uuid"),
    fixed(11, logicalType="duration"),
    {"type": "bytes", "logicalType": "duration"},
    {"type": "string", "logicalType": "date"},
    {"type": "long", "logicalType": "time-millis"},
    {"type": "int", "logicalType": "timestamp-millis"},
    {"type": "string", "logicalType": "uuid", "avro.java.string": "String"},
    {"type": "int", "logicalType": 1},
    {"type": "int", "logicalType": "unknown"},
]


@pytest.mark.parametrize("of", VALID, ids=str)
def test_valid_ones(of: Any) -> None:
    assert type_of(of).logical == of["logicalType"]


@pytest.mark.parametrize("of", IGNORED, ids=str)
def test_others_are_ignored_and_kept(of: Any) -> None:
    schema = schema_of(of)
    assert schema.parsed.root.logical is None
    assert '"logicalType":' in schema.canonical


def test_all_are_tested() -> None:
    assert {one["logicalType"] for one in VALID} == NAMES
