"""Schemas that are large, deep, or made to be slow: an answer within two seconds, and bounded memory."""

from __future__ import annotations

import contextlib
import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr_registry.avro.format import AvroFormat
from leafcuttr_registry.avro.json_text import MOST_BYTES
from leafcuttr_sdk.schemas import SchemaError
from support.avro_types import array, enum, record

FORMAT = AvroFormat()


def fields(number: int, of: Any = "int", **more: Any) -> str:
    return json.dumps(record(*((f"f{at}", of, more) for at in range(number))))


def nested(levels: int) -> str:
    made: Any = "int"
    for at in range(levels):
        made = record(("x", made), name=f"R{at}")
    return json.dumps(made)


def padded(text: str) -> str:
    return text + " " * (MOST_BYTES - len(text))


LARGE: dict[str, Callable[[], str]] = {
    "10,000 fields": lambda: fields(10_000),
    "10,000 nullable fields": lambda: fields(10_000, ["null", "string"], default=None),
    "10,000 fields of one enum": lambda: json.dumps(
        record(("e", enum("A")), *((f"f{at}", "E", {"default": "A"}) for at in range(10_000)))
    ),
    "1 MB": lambda: padded(fields(15_000)),
    "1 MB of documentation": lambda: json.dumps(record(("x", "int", {"doc": "x" * 1_000_000}))),
    "1 MB of a name": lambda: json.dumps(record(name="x" * 1_000_000)),
    "1 MB of symbols": lambda: json.dumps(enum(*(f"S{at}" for at in range(90_000)))),
    "1 MB of properties": lambda: json.dumps({"type": "int", "own": [[at] for at in range(90_000)]}),
    "1 MB of escapes": lambda: '{"type": "int", "own": "' + "\\ud83d\\ude00" * 80_000 + '"}',
    "200 levels": lambda: nested(200),
    "200 levels of arrays": lambda: '{"type": "array", "items": ' * 200 + '"int"' + "}" * 200,
    "600 records in a union": lambda: json.dumps([record(name=f"R{at}") for at in range(600)]),
    "10,000 references to itself": lambda: json.dumps(
        record(*((f"f{at}", ["null", "R"]) for at in range(10_000)))
    ),
    "one definition, 1,000 times": lambda: json.dumps(
        record(*((f"f{at}", enum(*(f"S{one}" for one in range(50)))) for at in range(1_000)))
    ),
}
REFUSED: dict[str, Callable[[], str]] = {
    "too long": lambda: " " * MOST_BYTES + '"int"',
    "201 levels": lambda: nested(201),
    "1 MB of brackets": lambda: "[" * 1_000_000,
    "1 MB of pairs of brackets": lambda: "[" + "[]," * 300_000 + "[]]",
    "1 MB of objects": lambda: '{"type":' * 120_000,
    "1 MB of branches": lambda: json.dumps(["int"] * 100_000),
    "300 levels": lambda: '{"type": "array", "items": ' * 300 + '"int"' + "}" * 300,
    "600 levels of defaults": lambda: (
        json.dumps(record(("x", array("int"), {"default": eval("[" * 90 + "]" * 90)})))
        .replace("[" * 90, "[" * 600)
        .replace("]" * 90, "]" * 600)
    ),
    "a name that comes twice": lambda: json.dumps([record(("x", "int"), name="R"), record(name="R")]),
    "duplicate keys": lambda: '{"type": "int", "type": "int"}',
    "1 MB of one key": lambda: "{" + ",".join(['"a":1'] * 150_000) + "}",
    "NaN": lambda: '{"type": "int", "own": NaN}',
    "surrogates": lambda: '{"type": "int", "own": "' + "\\ud83d" * 150_000 + '"}',
    "invalid UTF-8": lambda: b'{"type": "int", "own": "\xff"}'.decode(errors="surrogateescape"),
    "digits": lambda: '{"type": "int", "own": ' + "1" * 1_000_000 + "}",
    "an exponent": lambda: '{"type": "int", "own": 1e1000000}',
    "names without end": lambda: json.dumps(record(("x", ".".join(["a"] * 400_000)))),
}


@pytest.mark.alone
@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", LARGE)
def test_large_schemas_are_read_and_compared(name: str) -> None:
    text = LARGE[name]()
    started = time.process_time()
    schema = FORMAT.parse(text, {})
    assert schema.canonical
    parsed = time.process_time()
    assert parsed - started < 2
    assert schema.normalized() and schema.formatted("resolved")
    assert FORMAT.differences(schema, FORMAT.parse(text, {})) == []
    schema.codec()
    assert time.process_time() - parsed < 4


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize("name", [*LARGE, *REFUSED])
def test_memory_is_bounded(name: str) -> None:
    text = (LARGE | REFUSED)[name]()
    tracemalloc.start()
    try:
        with contextlib.suppress(SchemaError):
            schema = FORMAT.parse(text, {})
            FORMAT.differences(schema, schema)
            assert schema.canonical
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.alone
@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused(name: str) -> None:
    text = REFUSED[name]()
    started = time.process_time()
    with pytest.raises(SchemaError) as raised:
        FORMAT.parse(text, {})
    assert time.process_time() - started < 2
    message = str(raised.value)
    message.encode()
    assert "\n" not in message and len(message) < 1100
    assert len(raised.value.path) < 10_000


@pytest.mark.alone
def test_a_comparison_that_explodes_ends() -> None:
    def many(prefix: str) -> Any:
        """Each branch of each level may be each of the other's."""
        names = [f"{prefix}{at}" for at in range(40)]
        everyone = [f"B{at}" for at in range(40)] + [f"A{at}" for at in range(40)]
        return [
            record(
                ("x", [*names, "null"]),
                ("y", {"type": "array", "items": list(names)}),
                name=name,
                aliases=everyone,
            )
            for name in names
        ]

    one, other = (FORMAT.parse(json.dumps(many(prefix)), {}) for prefix in "AB")
    started = time.process_time()
    FORMAT.differences(one, other)
    assert time.process_time() - started < 2


@pytest.mark.alone
def test_many_aliases() -> None:
    started = time.process_time()
    parsed = FORMAT.parse(json.dumps(record(name="R", aliases=[f"A{at}" for at in range(30_000)] * 2)), {})
    assert parsed.canonical.count('"A') == 30_000
    assert time.process_time() - started < 2
