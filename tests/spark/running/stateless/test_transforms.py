"""Kafka Connect's transforms on columns, on a real Spark: what each does, and that it is what Connect's does, whose
results `tests/filters/connect` has recorded."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from datetime import UTC, date, datetime
from typing import Any

import pytest

from filters.connect.cases import TIMES, TIMESTAMP, TOPIC, cases
from filters.test_as_connect import recorded
from leafcuttr_spark.pipelines.errors import PipelineError
from leafcuttr_spark.pipelines.reading.transform_parts import transform
from spark.running.stateless.steps import compiled, frame_of, rows

DDL = "id INT, name STRING, at STRUCT<city: STRING, deep: STRUCT<x: INT, y: INT>>, tags ARRAY<STRING>"
ROW = (7, "ann", ("Åre", (1, None)), ["a"])
ALL = {"id": 7, "name": "ann", "at": {"city": "Åre", "deep": {"x": 1, "y": None}}, "tags": ["a"]}


@pytest.fixture
def one(spark: Any) -> Any:
    return frame_of(spark, [ROW], DDL, record=True)


def done(frame: Any, type_: str, **options: Any) -> list[Any]:
    given = {name.replace("_", "."): value for name, value in options.items()}
    return rows(compiled(frame.sparkSession, transform(type_, given), frame))


def test_extract(spark: Any, one: Any) -> None:
    assert done(one, "extract", field="at.deep") == [{"x": 1, "y": None}]
    assert done(one, "extract", field="at.city") == [{"value": "Åre"}]
    with_key = frame_of(spark, [("k", ("v",))], "key STRING, part STRUCT<a: STRING>")
    assert done(with_key, "extract", field="part") == [{"key": "k", "a": "v"}]
    with pytest.raises(PipelineError, match=r"there is no column at\.town; at has city, deep"):
        done(one, "extract", field="at.town")


def test_insert(one: Any) -> None:
    (row,) = done(
        one, "insert", static_field="site", static_value="x", topic_field="t", partition_field="p",
        offset_field="o", timestamp_field="ts", key_field="k",
    )  # fmt: skip
    time = datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123_000, tzinfo=None)
    assert row == {**ALL, "site": "x", "t": "t-v1", "p": 3, "o": 0, "ts": time, "k": b"k"}


def test_replace(one: Any) -> None:
    assert done(one, "replace", include=["at.deep.x", "id"]) == [{"id": 7, "at": {"deep": {"x": 1}}}]
    assert done(one, "replace", exclude=["at.deep", "tags"], renames={"id": "ID"}) == [
        {"ID": 7, "name": "ann", "at": {"city": "Åre"}}
    ]
    assert done(one, "replace", include=["id", "name"], exclude=["name", "tags"]) == [{"id": 7}]


def test_mask(spark: Any, one: Any) -> None:
    (row,) = done(one, "mask", fields=["id", "name", "at.city", "at.deep.y", "tags"])
    assert row == {"id": 0, "name": "", "at": {"city": "", "deep": {"x": 1, "y": None}}, "tags": []}
    assert done(one, "mask", fields=["id", "name"], replacement="42") == [{**ALL, "id": 42, "name": "42"}]
    with pytest.raises(PipelineError, match="the replacement 'x' cannot stand for a integer"):
        done(one, "mask", fields=["id"], replacement="x")
    with pytest.raises(PipelineError, match="a replacement stands for texts and numbers, and this is array"):
        done(one, "mask", fields=["tags"], replacement="x")
    with pytest.raises(PipelineError, match="a struct cannot be masked"):
        done(one, "mask", fields=["at"])
    none = frame_of(spark, [(None, True, 1.5)], "a STRING, b BOOLEAN, c DOUBLE")
    assert done(none, "mask", fields=["a", "b", "c"]) == [{"a": None, "b": False, "c": 0.0}]


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize("salt", ["pepper", "p" * 200])
def test_hash_is_that_of_python(one: Any, algorithm: str, salt: str) -> None:
    (row,) = done(one, "hash", fields=["name", "id"], algorithm=algorithm)
    assert row["name"] == hashlib.new(algorithm, b"ann").hexdigest()
    assert row["id"] == hashlib.new(algorithm, b"7").hexdigest()
    (row,) = done(one, "hash", fields=["at.city", "at.deep"], algorithm=algorithm, salt=salt)
    assert row["at"]["city"] == hmac.digest(salt.encode(), "Åre".encode(), algorithm).hex()
    assert row["at"]["deep"] == hmac.digest(salt.encode(), b'{"x":1,"y":null}', algorithm).hex()


def test_flatten(one: Any) -> None:
    (row,) = done(one, "flatten")
    assert row == {"id": 7, "name": "ann", "at.city": "Åre", "at.deep.x": 1, "at.deep.y": None, "tags": ["a"]}
    (again,) = rows(
        compiled(
            one.sparkSession,
            transform("mask", {"fields": ["at.city"]}),
            compiled(one.sparkSession, transform("flatten", {}), one),
        )
    )
    assert again["at.city"] == "", "a name with a dot is a column"


def test_timestamp(spark: Any) -> None:
    frame = frame_of(spark, [("2026-11-21 08:30",), ("no time",)], "at STRING")
    found = done(frame, "timestamp", field="at", target_type="Timestamp", format="yyyy-MM-dd HH:mm")
    assert found == [{"at": datetime(2026, 11, 21, 8, 30)}, "this failed: at"]
    as_date = done(frame.limit(1), "timestamp", field="at", target_type="Date", format="yyyy-MM-dd HH:mm")
    assert as_date == [{"at": date(2026, 11, 21)}]
    time = done(frame.limit(1), "timestamp", field="at", target_type="Time", format="yyyy-MM-dd HH:mm")
    assert time == [{"at": (8 * 60 + 30) * 60_000}]


def test_route_and_headers(one: Any) -> None:
    (row,) = done(one, "route", regex="(.*)-v1", replacement="$1")
    assert row == {**ALL, "topic": "t"}
    (row,) = done(one, "route", topic_format="${topic}-${timestamp}", **{"as": "to"})
    assert row["to"] == "t-v1-20231114"
    (row,) = done(
        one, "header", fields=["id", "at.deep"], headers=["a", "b"], operation="move", insert={"c": "text"}
    )
    assert row == {
        "name": "ann",
        "at": {"city": "Åre"},
        "tags": ["a"],
        "headers": [
            {"key": "own", "value": b"x"},
            {"key": "a", "value": b"7"},
            {"key": "b", "value": b'{"x":1,"y":null}'},
            {"key": "c", "value": b"text"},
        ],
    }
    (row,) = done(one, "header", drop=["own"], **{"as": "h"})
    assert row == {**ALL, "h": []}


def test_value_to_key_and_tombstones(spark: Any, one: Any) -> None:
    assert done(one, "value-to-key", fields=["id"]) == [{**ALL, "key": 7}]
    assert done(one, "value-to-key", fields=["id", "name"], **{"as": "k"}) == [
        {**ALL, "k": {"id": 7, "name": "ann"}}
    ]
    from pyspark.sql import functions as f

    from leafcuttr_spark.running.rows import RECORD

    some = frame_of(spark, [(1,), (2,)], "id INT", record=True)
    gone = some.withColumn(RECORD, f.when(f.col("id") == 1, f.col(RECORD)))
    assert done(gone, "drop-tombstones") == [{"id": 1}]


def test_rows_of_several_records_have_no_record(spark: Any) -> None:
    frame = frame_of(spark, [(1,)], "id INT")
    for type_, options in (
        ("route", {"regex": "a", "replacement": "b"}),
        ("insert", {"topic_field": "t"}),
        ("drop-tombstones", {}),
    ):
        with pytest.raises(
            PipelineError, match="it reads the record of a row, and here a row is made of several"
        ):
            done(frame, type_, **options)


# As Connect


NAMES = {
    "ReplaceField$Value": "replace",
    "MaskField$Value": "mask",
    "Flatten$Value": "flatten",
    "ExtractField$Value": "extract",
}


@pytest.mark.parametrize("name", NAMES)
def test_documents_as_connect(spark: Any, name: str) -> None:
    """Of documents whose fields are all there, which columns have to be."""
    compared = 0
    for case, result in zip(cases(), recorded(), strict=True):
        document = None if case.name != name or case.value is None else json.loads(case.value)
        if not isinstance(document, dict) or not document or "error" in result:
            continue
        options = {
            key: value.split(",") if key in ("include", "exclude", "fields") else value
            for key, value in case.config.items()
            if key != "field.syntax.version"
        }
        if "renames" in options:
            options["renames"] = {
                one: other
                for one, other in (pair.split(":") for pair in options["renames"].split(","))
                if one in document
            }
        for key in ("include", "exclude", "fields"):
            if key in options:
                options[key] = [each for each in options[key] if each in document and document[each] != {}]
        if options.get("field", "id").split(".")[0] not in document or options.get("fields") == []:
            continue
        frame = spark.read.json(spark.sparkContext.parallelize([case.value]))
        frame = frame.select(*(f"`{each}`" for each in document if each in frame.columns))
        if any(value in (None, {}, []) for value in document.values()):
            # Spark finds no type in them.
            document = {key: value for key, value in document.items() if value not in (None, {}, [])}
        try:
            made = compiled(spark, transform(NAMES[name], options), frame)
        except PipelineError as error:
            assert re.search("cannot stand for|no column|a struct cannot be masked", str(error)), error
            continue
        (row,) = made.select(made_json(made)).collect()
        ours, theirs = json.loads(row[0]), json.loads(result["value"] or "null")
        if name == "ExtractField$Value" and set(ours) == {"value"}:
            ours = ours["value"]
        elif isinstance(theirs, dict):
            theirs = {key: value for key, value in theirs.items() if key in ours}
        assert ours == theirs, case
        compared += 1
    assert compared >= 3


def made_json(frame: Any) -> Any:
    from pyspark.sql import functions as f

    from leafcuttr_spark.running.rows import user_columns

    return f.to_json(
        f.struct(*(f.col(f"`{name}`") for name in user_columns(frame))), {"ignoreNullFields": "false"}
    )


@pytest.mark.parametrize("kind", ["BIGINT", "STRING"])
def test_times_as_connect(spark: Any, kind: str) -> None:
    type_ = int if kind == "BIGINT" else str
    values = [value for value in TIMES if type(value) is type_ and value != ""]
    results = {(case.value, case.filter): result for case, result in zip(cases(), recorded(), strict=True)}
    frame = frame_of(spark, [(value, 1) for value in values], f"a {kind}, b INT")
    for target in ("unix", "string"):
        for precision in ("seconds", "milliseconds", "microseconds", "nanoseconds"):
            if kind == "STRING" and target == "string":
                continue
            iso = "yyyy-MM-dd'T'HH:mm:ssX"
            options = {"field": "a", "target.type": target, "format": iso, "unix.precision": precision}
            found = rows(compiled(spark, transform("timestamp", options), frame))
            for value, ours in zip(values, found, strict=True):
                name = f"timestamp field=a target.type={target} format={iso} unix.precision={precision}"
                result = results[json.dumps({"a": value, "b": 1}), name]
                theirs = None if "error" in result else json.loads(result["value"])
                if theirs is not None and str(theirs["a"]).startswith("58859-"):
                    continue  # Java's calendar has such a year without a sign, DateTimeFormatter with one.
                unit = {"microseconds": 1000, "nanoseconds": 1_000_000}.get(precision, 1)
                if type(value) is int and value % unit:
                    continue  # Java's times are milliseconds: it cuts off what is kept here.
                assert (None if isinstance(ours, str) else ours) == theirs, (value, options)


def test_routes_as_connect(spark: Any) -> None:
    from pyspark.sql import functions as f

    from leafcuttr_spark.running.rows import RECORD

    frame = frame_of(spark, [(1,)], "id INT", record=True).withColumn(
        RECORD,
        f.col(RECORD)
        .withField("topic", f.lit(TOPIC))
        .withField("timestamp", f.timestamp_millis(f.lit(TIMESTAMP))),
    )
    compared = 0
    for case, result in zip(cases(), recorded(), strict=True):
        if case.name in ("RegexRouter", "TimestampRouter"):
            (row,) = rows(compiled(spark, transform("route", case.config), frame))
            assert row["topic"] == result["topic"], case
            compared += 1
    assert compared == 10
