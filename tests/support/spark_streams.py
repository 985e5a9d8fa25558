# pyright: reportMissingImports=false
"""Streams of Spark whose batches a test decides on: one file of rows for each batch, and steps of a pipeline on them.

Rows are dictionaries. Of their columns `at` is the event time in ms, unless the feed names another; `offset` is the
offset, `deleted` whether a table's record had no value: these two become hidden columns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leafcuttr_spark.pipelines.model import (
    DeadLetters,
    FileOrigin,
    Pipeline,
    Sink,
    Source,
    Step,
    Table,
    TopicTarget,
)
from leafcuttr_spark.pipelines.operations import StepOperation

DEAD = "dead letters"
Rows = Sequence[Mapping[str, Any]]


@dataclass
class Feed:
    """The batches of one source; a batch may be empty."""

    ddl: str
    batches: Sequence[Rows]
    watermark_ms: int | None = None
    is_table: bool = False
    time: str = "at"
    """The column of event time."""


@dataclass
class Ran:
    """What came of it."""

    batches: dict[int, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    """By the number of the batch, then by the frame's name."""
    late: dict[str, int] = field(default_factory=dict)
    """Late rows by the step."""
    checkpoint: str = ""

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Of all batches."""
        return [row for number in sorted(self.batches) for row in self.batches[number].get(name, [])]

    def by_batch(self, name: str) -> list[list[dict[str, Any]]]:
        """Without the batches that gave none."""
        found = [self.batches[number].get(name, []) for number in sorted(self.batches)]
        return [rows for rows in found if rows]


class Streams:
    """Runs steps on feeds, each run as a query of its own."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._runs = 0

    def run(
        self,
        feeds: Mapping[str, Feed],
        *steps: Step,
        late: Any = "count",
        extra: Mapping[str, Any] | None = None,
        between: Any = None,
        folder: Path | None = None,
    ) -> Ran:
        """The rows of all frames of steps that no other step reads. `extra` are more frames; `between` is called with
        the number of each batch that is done, `folder` is the pipeline's."""
        from leafcuttr_spark.running.stateful.modes import mode_settings, output_mode

        self._runs += 1
        home, folder = folder, self._folder / str(self._runs)
        folder.mkdir(parents=True)
        read = {name for step in steps for name in step.inputs}
        wanted = [step.name for step in steps if step.name not in read]
        sources = {
            name: Source(
                FileOrigin(str(folder / name)),
                time=feed.time,
                watermark_ms=feed.watermark_ms,
                table=Table(("id",)) if feed.is_table else None,
            )
            for name, feed in feeds.items()
        }
        pipeline = Pipeline(
            "p",
            sources,
            steps,
            {name: Sink(name, TopicTarget("t")) for name in wanted},
            dead_letters=DeadLetters("dead"),
            late=late,
            file=home / "pipeline.yaml" if home else None,
        )
        frames = self._frames(feeds, pipeline, folder)
        ran = Ran(checkpoint=str(folder / "checkpoint"))
        for setting, value in mode_settings(pipeline).items():
            self._spark.conf.set(setting, value)
        query = self._start(
            self._all(pipeline, {**frames, **(extra or {})}, wanted), ran, output_mode(pipeline), between
        )
        for setting in mode_settings(pipeline):
            self._spark.conf.unset(setting)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        for progress in query.recentProgress:
            for name, metric in (progress.get("observedMetrics") or {}).items():
                if name.startswith("lc.late."):
                    step = name.removeprefix("lc.late.")
                    ran.late[step] = ran.late.get(step, 0) + metric["rows"]
        return ran

    def _frames(self, feeds: Mapping[str, Feed], pipeline: Pipeline, folder: Path) -> dict[str, Any]:
        from leafcuttr_spark.running.rows import DELETED, OFFSET
        from leafcuttr_spark.running.stateful.event_time import with_event_time

        frames = {}
        for name, feed in feeds.items():
            _write(folder / name, feed.batches)
            reader = self._spark.readStream.schema(feed.ddl).option("maxFilesPerTrigger", 1)
            frame = reader.json(str(folder / name))
            if "offset" in frame.columns:
                frame = frame.withColumnRenamed("offset", OFFSET)
            if feed.is_table:
                frame = frame.withColumnRenamed("deleted", DELETED)
            frames[name] = with_event_time(frame, pipeline.sources[name], pipeline)
        return frames

    def _all(self, pipeline: Pipeline, frames: dict[str, Any], wanted: Sequence[str]) -> Any:
        from pyspark.sql import functions as f

        from leafcuttr_spark.running.compiling import Compilation, StepContext
        from leafcuttr_spark.running.rows import ERROR, record_of
        from leafcuttr_spark.running.stateful import COMPILERS

        common = Compilation(pipeline, self._spark, True)
        for step in pipeline.steps:
            context = StepContext(step, common, frozenset())
            compiler = COMPILERS[type(step.operation)]
            frames[step.name] = compiler(step.operation, [frames[each] for each in step.inputs], context)
        parts = [
            frames[name].select(f.lit(name).alias("name"), f.to_json(f.struct("*"), _WHOLE).alias("row"))
            for name in wanted
        ]
        for each in common.asides:
            letter = f.struct(f.col(ERROR), record_of(each)["value"].cast("string").alias("value"))
            parts.append(each.select(f.lit(DEAD).alias("name"), f.to_json(letter, _WHOLE).alias("row")))
        whole = parts[0]
        for each in parts[1:]:
            whole = whole.unionByName(each)
        return whole

    def _start(self, frame: Any, ran: Ran, mode: str, between: Any) -> Any:
        from leafcuttr_spark.running.stateful.late import announce

        def take(batch: Any, number: int) -> None:
            announce(batch.sparkSession, number)
            found = ran.batches.setdefault(number, {})
            for row in batch.collect():
                found.setdefault(row["name"], []).append(json.loads(row["row"]))
            if between is not None:
                between(number)

        writer = frame.writeStream.foreachBatch(take).outputMode(mode)
        return writer.option("checkpointLocation", ran.checkpoint).trigger(processingTime="0 seconds").start()


_WHOLE = {"ignoreNullFields": "false"}


def _write(folder: Path, batches: Sequence[Rows]) -> None:
    folder.mkdir()
    for number, rows in enumerate(batches):
        path = folder / f"{number:05d}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        # The order in which Spark reads them.
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def step(name: str, operation: StepOperation, from_: str) -> Step:
    return Step(name, operation, from_)
