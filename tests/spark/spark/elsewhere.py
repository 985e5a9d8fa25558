"""A program that reads a topic of JSON and writes another one, on a master or with Spark Connect:
`elsewhere.py MASTER|sc://HOST:PORT ADDRESS FROM TO FOLDER`. It prints a line of JSON at its end."""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from leafcuttr_spark.options import OptionError
from leafcuttr_spark.spark.frames import topic_frame
from leafcuttr_spark.spark.sink import TopicSink, write_topics


def session(where: str) -> Any:
    builder = SparkSession.builder
    if where.startswith("sc://"):
        return builder.remote(where).getOrCreate()
    return (
        builder.master(where)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.cores", "1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


def main() -> None:
    where, address, topic, to, folder = sys.argv[1:]
    spark = session(where)
    cluster = {"kafka.bootstrap.servers": address}
    read = {
        **cluster,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "value.format": "json",
        "value.schema": "n BIGINT",
        "columns": "key,value,error",
    }
    rows = topic_frame(spark, read, stream=False)
    total, bad = rows.agg(f.sum("value.n"), f.count("error")).collect()[0]
    out = f.to_json(f.struct((f.col("value.n") * 2).alias("n"))).alias("value")
    exactly = {**cluster, "topic": to, "kafka.transactional.id": to}
    told: dict[str, Any] = {"total": total, "bad": bad}
    try:
        topic_frame(spark, {**cluster, "subscribe": topic}, stream=False, via="kafka")
    except OptionError as error:
        told["without the connector"] = str(error)
    written = topic_frame(spark, read, stream=True).where("error IS NULL").select("key", out).writeStream
    sink = TopicSink(exactly)
    if where.startswith("sc://"):
        try:
            write_topics(rows.where("error IS NULL").select("key", out), exactly)
        except OptionError as error:
            told["refused"] = str(error)
        at_least = {**cluster, "topic": to, "delivery": "at-least-once"}
        told["batch"] = write_topics(rows.where("error IS NULL").select("key", out), at_least)
        sink = TopicSink(at_least)
    query = written.foreachBatch(sink).option("checkpointLocation", folder).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
