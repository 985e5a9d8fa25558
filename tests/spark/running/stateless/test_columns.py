"""Filter, map, select, cast, drop, rename and flat-map on a real Spark; rows that fail, and those that pass."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import PipelineError, PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Cast, Drop, Filter, FlatMap, Map, Rename, Select
from spark.running.stateless.steps import compiled, frame_of, rows

DDL = "id INT, text STRING, items ARRAY<INT>"
ROWS = [(1, "10", [1, 2]), (2, "x", []), (3, None, None)]


def test_filter_keeps_rows_for_which_it_is_true(spark: Any) -> None:
    frame = frame_of(spark, ROWS, DDL)
    assert [row["id"] for row in rows(compiled(spark, Filter("id <> 2"), frame))] == [1, 3]
    found = rows(compiled(spark, Filter("cast(text as int) > 5"), frame))
    assert [one if isinstance(one, str) else one["id"] for one in found] == [
        1,
        "this failed: cast(text as int) > 5",
    ]


def test_map_sees_the_row_as_it_came(spark: Any) -> None:
    frame = frame_of(spark, ROWS[:1], DDL)
    (row,) = rows(compiled(spark, Map({"id": "id + 1", "before": "id", "more": "id * 10"}), frame))
    assert row == {"id": 2, "text": "10", "items": [1, 2], "before": 1, "more": 10}
    assert list(row) == ["id", "text", "items", "before", "more"]


def test_a_row_with_an_error_passes_what_follows(spark: Any) -> None:
    frame = frame_of(spark, ROWS, DDL, record=True)
    failing = compiled(spark, Map({"number": "cast(text as int)"}), frame)
    once = compiled(spark, Filter("number > 0"), failing)
    twice = compiled(spark, FlatMap("items", "item"), compiled(spark, Map({"part": "1 / number"}), once))
    found = rows(compiled(spark, Select(("item", "part")), twice))
    assert found == [
        {"item": 1, "part": 0.1},
        {"item": 2, "part": 0.1},
        "this failed: number: cast(text as int)",
    ]


def test_without_dead_letters_the_first_one_stops(spark: Any) -> None:
    frame = frame_of(spark, ROWS, DDL)
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        rows(compiled(spark, Map({"number": "cast(text as int)"}), frame, catches=False))


def test_the_record_of_a_failed_row_is_kept_or_made(spark: Any) -> None:
    from leafcuttr_spark.running.rows import RECORD

    operation = Map({"number": "cast(text as int)"})
    (_, came, _) = compiled(spark, operation, frame_of(spark, ROWS, DDL, record=True)).collect()
    assert (came[RECORD]["topic"], came[RECORD]["offset"]) == ("t-v1", 1)
    good, made, _ = compiled(spark, operation, frame_of(spark, ROWS, DDL)).collect()
    assert good[RECORD] is None
    assert made[RECORD]["topic"] is None
    assert bytes(made[RECORD]["value"]) == b'{"id":2,"text":"x","items":[]}'


def test_select(spark: Any) -> None:
    frame = frame_of(spark, [(1, ("a", 2))], "id INT, part STRUCT<x: STRING, y: INT>")
    assert rows(compiled(spark, Select(("part.*", "id + 1 AS next", "part.y AS y2")), frame)) == [
        {"x": "a", "y": 2, "next": 2, "y2": 2}
    ]
    assert rows(compiled(spark, Select(("*", "upper(part.x) AS big")), frame)) == [
        {"id": 1, "part": {"x": "a", "y": 2}, "big": "A"}
    ]
    with pytest.raises(PipelineRefusedError, match="two columns id"):
        compiled(spark, Select(("id", "id + 1 AS id")), frame)


def test_cast_never_makes_null_of_a_value(spark: Any) -> None:
    frame = frame_of(spark, ROWS, DDL)
    found = rows(compiled(spark, Cast({"text": "int", "id": "string"}), frame))
    assert found == [
        {"id": "1", "text": 10, "items": [1, 2]},
        "this failed: text: cast(`text` as int)",
        {"id": "3", "text": None, "items": None},
    ]
    with pytest.raises(PipelineError, match="there is no column txt; there are id, text, items"):
        compiled(spark, Cast({"txt": "int"}), frame)


def test_drop_and_rename(spark: Any) -> None:
    frame = frame_of(spark, ROWS[:1], DDL)
    assert rows(compiled(spark, Drop(("items", "id")), frame)) == [{"text": "10"}]
    renamed = compiled(spark, Rename({"id": "text", "text": "id"}), frame)
    assert rows(renamed) == [{"text": 1, "id": "10", "items": [1, 2]}]
    with pytest.raises(PipelineRefusedError, match="two columns would have the name text"):
        compiled(spark, Rename({"id": "text"}), frame)
    with pytest.raises(PipelineError, match="there is no column none"):
        compiled(spark, Drop(("none",)), frame)


def test_flat_map(spark: Any) -> None:
    frame = frame_of(spark, ROWS, DDL)
    assert rows(compiled(spark, FlatMap("items"), frame)) == [
        {"id": 1, "text": "10", "items": [1, 2], "item": 1},
        {"id": 1, "text": "10", "items": [1, 2], "item": 2},
    ]
    kept = rows(compiled(spark, FlatMap("items", "items", keep_empty=True), frame))
    assert [(row["id"], row["items"]) for row in kept] == [(1, 1), (1, 2), (2, None), (3, None)]
    by_name = frame_of(spark, [({"a": 1},)], "of MAP<STRING, INT>")
    assert rows(compiled(spark, FlatMap("of", "one"), by_name)) == [
        {"of": {"a": 1}, "one": {"key": "a", "value": 1}}
    ]
    with pytest.raises(PipelineError, match="id is of the type integer; a flat-map takes an array or a map"):
        compiled(spark, FlatMap("id"), frame)


def test_names_of_the_pipeline_are_refused(spark: Any) -> None:
    with pytest.raises(PipelineError, match="the name _lc_error is the pipeline's own"):
        compiled(spark, Map({"_lc_error": "1"}), frame_of(spark, ROWS, DDL))
