"""Filters beside the transforms of Kafka Connect that they correspond to, and the values that both get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

TOPIC = "orders-v1"
TIMESTAMP = 1_795_249_800_123


class Case(NamedTuple):
    """A filter, the transform, and the text of a value; None is a tombstone."""

    filter: str
    name: str
    config: dict[str, str]
    value: str | None


DOCUMENTS: list[Any] = [
    {
        "id": 7,
        "name": "ann",
        "tags": ["a", "b"],
        "at": {"city": "Åre", "deep": {"x": 1, "y": None}},
        "ok": True,
    },
    {"id": "7", "name": None, "total": 1.5, "empty": {}, "list": [], "a.b": 1},
    {},
    {"id": {"id": {"id": 1}}, "name": ""},
]
NO_OBJECTS: list[Any] = [[1], "text", 5, True]
SCALARS: list[Any] = [
    0, 1, -1, 127, 128, -129, 300, 32768, 2**31, 2**40, -(2**40), 2**63 - 1, 0.5, -2.9, 2.5, 1e7, 1e10, -1e300,
    0.001, 1e-5, 123456.789, 0.1, 3.4e38, True, False, "", "5", "-5", "+5", "007", "128", "x", "1.5", " 1 ", "true",
    "TRUE", "false", "1e3", "-1E-2", "1f", ".5", "5.", "9223372036854775808", None, [1], {"a": 1},
]  # fmt: skip
TIMES: list[Any] = [
    0, -1, 1, 999, 1_795_249_800_123, -1_999, "2026-11-21T08:30:00Z", "1969-12-31T23:59:59Z", "2026-11-21T10:30:00+02",
    "x", "", 1.5, True, None,
]  # fmt: skip
ISO = "yyyy-MM-dd'T'HH:mm:ssX"


def cases() -> Iterator[Case]:
    for document in [*DOCUMENTS, *NO_OBJECTS, None]:
        text = None if document is None else json.dumps(document, ensure_ascii=False)
        yield from _of_documents(text)
    for kind in ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"):
        for value in SCALARS:
            text = json.dumps({"a": value, "b": 1})
            yield Case(f"cast spec=a:{kind}", "Cast$Value", {"spec": f"a:{kind}"}, text)
            if value is not None:
                yield Case(f"cast spec={kind}", "Cast$Value", {"spec": kind}, json.dumps(value))
    for value in TIMES:
        for target in ("unix", "string"):
            for precision in ("seconds", "milliseconds", "microseconds", "nanoseconds"):
                config = {"target.type": target, "format": ISO, "unix.precision": precision}
                options = f"target.type={target} format={ISO} unix.precision={precision}"
                yield Case(
                    f"timestamp field=a {options}",
                    "TimestampConverter$Value",
                    {**config, "field": "a"},
                    json.dumps({"a": value, "b": 1}),
                )
    yield from _routes()


def _of_documents(text: str | None) -> Iterator[Case]:
    for field in ("id", "at", "missing", "name"):
        yield Case(f"extract field={field}", "ExtractField$Value", {"field": field}, text)
    nested = {"field": "at.deep.x", "field.syntax.version": "V2"}
    yield Case("extract field=at.deep.x", "ExtractField$Value", nested, text)
    yield Case(
        "insert static.field=site static.value=x topic.field=t timestamp.field=ts",
        "InsertField$Value",
        {"static.field": "site", "static.value": "x", "topic.field": "t", "timestamp.field": "ts"},
        text,
    )
    for ours, theirs in (
        ("exclude=name,at", {"exclude": "name,at"}),
        ("include=id,name,missing", {"include": "id,name,missing"}),
        ("renames=id:ID,missing:x", {"renames": "id:ID,missing:x"}),
        (
            "include=id,name exclude=name renames=id:x",
            {"include": "id,name", "exclude": "name", "renames": "id:x"},
        ),
    ):
        yield Case(f"replace {ours}", "ReplaceField$Value", theirs, text)
    yield Case("mask fields=id,name,tags,at,ok,total,list,missing", "MaskField$Value",
               {"fields": "id,name,tags,at,ok,total,list,missing"}, text)  # fmt: skip
    for replacement in ("hidden", "42"):
        yield Case(
            f"mask fields=id,name replacement={replacement}",
            "MaskField$Value",
            {"fields": "id,name", "replacement": replacement},
            text,
        )
    yield Case("flatten", "Flatten$Value", {}, text)
    yield Case("flatten delimiter=_", "Flatten$Value", {"delimiter": "_"}, text)
    for operation in ("copy", "move"):
        yield Case(
            f"headers fields=id,name,missing headers=a,b,c operation={operation}",
            "HeaderFrom$Value",
            {"fields": "id,name,missing", "headers": "a,b,c", "operation": operation},
            text,
        )


def _routes() -> Iterator[Case]:
    for regex, replacement in (
        ("(.*)-v1", "$1"), ("(.*)-v2", "$1"), (".*", "all"), ("orders", "x"), ("(o)(.*)-(v)1", "$3$2-$1"),
        ("(.*)-v(.)", "$1.\\$$2"), ("orders-v[0-9]+", "x$0"),
    ):  # fmt: skip
        yield Case(
            f"route regex={regex} replacement={replacement}",
            "RegexRouter",
            {"regex": regex, "replacement": replacement},
            "{}",
        )
    for format, times in (
        ("${topic}-${timestamp}", "yyyyMMdd"),
        ("x.${timestamp}", "yyyy-MM-dd-HH"),
        ("${topic}", "yyyy"),
    ):
        yield Case(
            f"route topic.format={format} timestamp.format={times}",
            "TimestampRouter",
            {"topic.format": format, "timestamp.format": times},
            "{}",
        )
