"""The formats of files: a pipeline writes each of them, and another one reads them as streams; a table in one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from leafcuttr_spark.pipelines.model import FileOrigin, FileTarget, Sink, Source, Step
from leafcuttr_spark.pipelines.operations import Map, Select, Union
from leafcuttr_spark.pipelines.reading.format_parts import FILE_FORMATS
from spark.running.pipes import fill, pipeline, records, run, sink, source
from support import librdkafka
from support.broker_process import BrokerProcess

WITH_TYPES = [each for each in FILE_FORMATS if each != "text"]
COLUMNS = "id STRING, amount BIGINT"


def orders(first: int, end: int) -> list[dict[str, Any]]:
    return [{"id": f"o{number}", "amount": number} for number in range(first, end)]


def test_each_format_is_written_and_read(spark: Any, live: BrokerProcess, wide: str, tmp_path: Path) -> None:
    assert {*FILE_FORMATS} == {"csv", "json", "parquet", "orc", "text"}
    librdkafka.create(live.address, f"{wide}-out", 1)
    options = {"csv": {"header": "true"}}
    steps = [
        Step("rows", Select(("id", "amount")), "orders"),
        Step("lines", Select(("id AS value",)), "orders"),
    ]
    written = {
        each: Sink(
            "rows" if each in WITH_TYPES else "lines", FileTarget(each, each, options=options.get(each, {}))
        )
        for each in FILE_FORMATS
    }
    to_files = pipeline(live.address, tmp_path, {"orders": source(wide)}, steps, written)
    to_files = replace(to_files, file=tmp_path / "to.yaml")
    read = {
        each: Source(
            FileOrigin(
                f"{each}/*", each, COLUMNS if each in WITH_TYPES else "value STRING", options.get(each, {})
            )
        )
        for each in FILE_FORMATS
    }
    named = [
        Step(
            f"{each} rows",
            Map(
                {"format": f"'{each}'"}
                if each in WITH_TYPES
                else {"id": "value", "amount": "-1L", "format": "'text'"}
            ),
            each,
        )
        for each in FILE_FORMATS
    ]
    same = [Step(f"{each} same", Select(("format", "id", "amount")), f"{each} rows") for each in FILE_FORMATS]
    united = Step("all", Union(tuple(one.name for one in same)))
    from_files = replace(
        pipeline(live.address, tmp_path, read, [*named, *same, united], {"out": sink("all", f"{wide}-out")}),
        file=tmp_path / "from.yaml",
        checkpoint=str(tmp_path / "from"),
        name="from",
    )
    for first, end in ((0, 5), (5, 8)):
        fill(live.address, wide, orders(first, end))
        run(to_files, spark)
        run(from_files, spark)
        found = records(spark, live.address, f"{wide}-out", 5 * end)
        assert sorted((one.json["format"], one.json["id"], one.json["amount"]) for one in found) == sorted(
            (each, f"o{number}", number if each in WITH_TYPES else -1)
            for each in FILE_FORMATS
            for number in range(end)
        )
