"""The columns that transforms make."""

from __future__ import annotations

import pytest

from leafcuttr_spark.pipelines.checking.expressions import Columns
from leafcuttr_spark.pipelines.checking.transforms import columns_of_transform
from leafcuttr_spark.pipelines.checking.types import parse_ddl
from leafcuttr_spark.pipelines.reading.transform_parts import BY_TYPE, transform

COLUMNS = Columns(
    parse_ddl("key STRING, id STRING, n INT, at TIMESTAMP, a STRUCT<b: INT, c: STRUCT<d: DATE>>")
)
SAME = COLUMNS.text()


def of(type_: str, options: dict[str, object], columns: Columns = COLUMNS) -> tuple[str, list[str]]:
    said: list[str] = []
    return columns_of_transform(transform(type_, options), columns, said.append).text(), said


@pytest.mark.parametrize(
    ("type_", "options", "columns"),
    [
        ("extract", {"field": "a"}, "key string, b int, c struct<d:date>"),
        ("extract", {"field": "a.b"}, "key string, value int"),
        ("extract", {"field": "n"}, "key string, value int"),
        (
            "insert",
            {
                "static.field": "s",
                "static.value": "x",
                "topic.field": "t",
                "offset.field": "o",
                "timestamp.field": "at",
            },
            SAME + ", t string, o bigint, s string",
        ),
        ("insert", {"partition.field": "p", "key.field": "k"}, SAME + ", p int, k binary"),
        ("replace", {"include": ("id", "n"), "exclude": ("n",), "renames": {"id": "x"}}, "x string"),
        ("mask", {"fields": ("id", "a.b")}, SAME),
        ("hash", {"fields": ("n",)}, SAME.replace("n int", "n string")),
        ("flatten", {"delimiter": "_"}, "key string, id string, n int, at timestamp, a_b int, a_c_d date"),
        ("flatten", {}, "key string, id string, n int, at timestamp, a.b int, a.c.d date"),
        ("timestamp", {"field": "at", "target.type": "unix"}, SAME.replace("at timestamp", "at bigint")),
        ("timestamp", {"field": "at", "target.type": "string"}, SAME.replace("at timestamp", "at string")),
        ("timestamp", {"field": "n", "target.type": "Timestamp"}, SAME.replace("n int", "n timestamp")),
        ("timestamp", {"field": "at", "target.type": "Date"}, SAME.replace("at timestamp", "at date")),
        ("timestamp", {"field": "at", "target.type": "Time"}, SAME.replace("at timestamp", "at ?")),
        ("route", {"regex": "a", "replacement": "b"}, SAME + ", topic string"),
        ("drop-tombstones", {}, SAME),
        ("value-to-key", {"fields": ("n",)}, SAME.replace("key string", "key int")),
        ("value-to-key", {"fields": ("id", "n"), "as": "k"}, SAME + ", k struct<id:string,n:int>"),
        (
            "header",
            {"fields": ("id",), "headers": ("x",), "operation": "move"},
            SAME.replace("id string, ", "") + ", headers array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_the_columns_of_a_transform(type_: str, options: dict[str, object], columns: str) -> None:
    assert of(type_, options) == (columns, [])


@pytest.mark.parametrize(
    ("type_", "options", "what"),
    [
        ("extract", {"field": "a.x"}, "field: a has no field x; there are b, c"),
        ("replace", {"include": ("idd",)}, "include: there is no column idd: did you mean id?"),
        ("replace", {"exclude": ("idd",)}, "exclude: there is no column idd: did you mean id?"),
        ("replace", {"renames": {"idd": "x"}}, "renames: there is no column idd: did you mean id?"),
        ("mask", {"fields": ("card",)}, "fields: there is no column card"),
        ("hash", {"fields": ("card",)}, "fields: there is no column card"),
        (
            "timestamp",
            {"field": "att", "target.type": "unix"},
            "field: there is no column att: did you mean at?",
        ),
        ("value-to-key", {"fields": ("card",)}, "fields: there is no column card"),
        ("header", {"fields": ("card",), "headers": ("x",)}, "fields: there is no column card"),
    ],
)
def test_columns_that_are_not_there(type_: str, options: dict[str, object], what: str) -> None:
    said = of(type_, options)[1]
    assert len(said) == 1 and said[0].startswith(what), said


@pytest.mark.parametrize("type_", BY_TYPE)
def test_of_an_open_frame_nothing_is_said(type_: str) -> None:
    options = {"field": "x", "fields": ("x",), "headers": ("x",), "target.type": "unix", "include": ("x",)}
    known = {key.name for key in BY_TYPE[type_].keys}
    given = {name: value for name, value in options.items() if name in known}
    assert of(type_, given, Columns(is_open=True))[1] == []


def test_a_column_of_an_unknown_type_may_become_several() -> None:
    assert of("flatten", {}, Columns((("x", None),)))[0] == "x ?, ..."
