"""A program that copies a topic in small batches, exactly once: `copying.py ADDRESS TOPIC TO FOLDER [POINT BATCH]`.

It kills itself, and its JVM, at a named point of a batch: `begun` (the transaction is open), `written` (the records are
there, and not committed), `committed` (and the checkpoint does not know). It ends once it has copied all there is.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from pyspark.sql import SparkSession

from leafcuttr_spark.spark import sink as module


def die() -> None:
    os.killpg(0, signal.SIGKILL)


def dies_at(point: str, number: str) -> None:
    write, in_transaction = module._write, module._in_transaction
    now = {"batch": ""}

    def writes(*given: Any) -> Any:
        if point == "begun" and now["batch"] == number:
            die()
        written = write(*given)
        if point == "written" and now["batch"] == number:
            die()
        return written

    def within(frame: Any, options: Any, owner: Any, this: Any, flushed: Any) -> Any:
        now["batch"] = str(this.batch)
        written = in_transaction(frame, options, owner, this, flushed)
        if point == "committed" and now["batch"] == number:
            die()
        return written

    module._write, module._in_transaction = writes, within  # type: ignore[assignment]


def main() -> None:
    address, topic, to, folder, *point = sys.argv[1:]
    if point:
        dies_at(*point)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    cluster = {"kafka.bootstrap.servers": address}
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "300", **cluster}
    rows = spark.readStream.format("leafcuttr").options(**options).load().select("key", "value")
    sink = module.TopicSink({"topic": to, "kafka.transactional.id": to, **cluster})
    query = (
        rows.writeStream.foreachBatch(sink).option("checkpointLocation", folder).trigger(availableNow=True)
    )
    query.start().awaitTermination()


if __name__ == "__main__":
    main()
