"""Spark's Kafka connector: `main.py JARS TASK ...`. A task prints what it has read, a JSON line each.

write ADDRESS TOPIC            300 rows in each codec, with key, headers and partition
read ADDRESS TOPIC OPTIONS     what a batch sees; OPTIONS is a JSON object of the connector's
stream ADDRESS TOPIC FOLDER    into files below FOLDER/out, its checkpoints in FOLDER/checkpoint, until it is stopped
copy ADDRESS TOPIC FOLDER      what is there into TOPIC-copy, then it ends
result FOLDER                  what the stream has written
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def source(reader: Any, address: str, topic: str, **options: str) -> Any:
    reader = reader.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    return reader.options(includeHeaders="true", startingOffsets="earliest").options(**options).load()


def write(spark: SparkSession, address: str, topic: str) -> None:
    rows = spark.range(300).select(
        f.format_string("key-%d", "id").alias("key"),
        f.format_string("%d %s", "id", f.lit("x" * 100)).alias("value"),
        f.array(
            f.struct(f.lit("n").alias("key"), f.col("id").cast("string").cast("binary").alias("value"))
        ).alias("headers"),
        (f.col("id") % 3).cast("int").alias("partition"),
    )
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        kafka = {"kafka.bootstrap.servers": address, "kafka.compression.type": codec}
        rows.write.format("kafka").options(**kafka, topic=topic, includeHeaders="true").save()


def read(spark: SparkSession, address: str, topic: str, options: str) -> None:
    show(source(spark.read, address, topic, **json.loads(options)))


def show(rows: Any) -> None:
    text = [f.col(name).cast("string").alias(name) for name in ("key", "value")]
    for row in rows.select(*text, "headers", "partition", "offset").toJSON().collect():
        print(row)


def stream(spark: SparkSession, address: str, topic: str, folder: str) -> None:
    rows = source(spark.readStream, address, topic, maxOffsetsPerTrigger="100").select(
        f.col("value").cast("string"), "partition", "offset"
    )
    query = rows.writeStream.format("json").option("checkpointLocation", f"{folder}/checkpoint")
    query.start(f"{folder}/out").awaitTermination()


def copy(spark: SparkSession, address: str, topic: str, folder: str) -> None:
    rows = source(spark.readStream, address, topic).select("key", "value", "headers")
    query = rows.writeStream.format("kafka").trigger(availableNow=True)
    kafka = {"kafka.bootstrap.servers": address, "topic": f"{topic}-copy", "includeHeaders": "true"}
    query.options(**kafka, checkpointLocation=f"{folder}/copied").start().awaitTermination()


def result(spark: SparkSession, folder: str) -> None:
    for row in spark.read.json(f"{folder}/out").toJSON().collect():
        print(row)


def main() -> None:
    jars, task, *words = sys.argv[1:]
    settings = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "768m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[2]").appName("leafcuttr-clients")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    {"write": write, "read": read, "stream": stream, "copy": copy, "result": result}[task](spark, *words)
    spark.stop()


if __name__ == "__main__":
    main()
