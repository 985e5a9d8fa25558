#!/usr/bin/env python3
"""The plugin for Spark beside Spark's own Kafka connector, in one session; it ends with 1 where something is slower
than it has to be.

  spark.py [--rounds N] [--records N] [--size BYTES] [--only NAMES] [--cores N] [--memory 2g]

Both read the same topic of a broker of LeafCuttr, in turn, the other one first in every second round; the first round
is dropped. A line has the median seconds of each, and the median of the ratios of pairs, which a busy machine changes
least.

`batch`      a batch read, all columns aggregated
`stream`     a stream of one batch
`batches`    a stream of batches of a tenth of the records
`topic`      topic to topic, one batch: the connector writes at least once, `TopicSink` exactly once
`codec`      decoding, encoding and Avro on one core: `spark_codec.py`, best of the rounds
`memory`     this process and its JVM, idle, after the first job; beside them the workers that Spark keeps for the next

Needs the dependency group `spark-source`, Java 17, and Maven or what it has fetched.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from spark_codec import batches, decoding, order_values, rate

from leafcuttr.wire.compression import Codec
from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.codec.decoding import Wanted
from leafcuttr_spark.codec.encoding import Rows, encode
from support import jars, librdkafka
from support.broker_process import running_broker

PARTITIONS = 4
KAFKA = "3.9.1"
"""The clients that the connector of Spark 4.2 is built with."""
LEAST = {"batch": 1.5, "stream": 1.2, "batches": 0.8, "topic": 0.9}
"""How many times as fast as the connector."""
LEAST_RATES = {"decode": 1.5, "encode": 3.0, "avro": 1.5}
"""Millions of records a second."""
LARGEST_MB = 550
PARTS = (*LEAST, "codec", "memory")


class Bench:
    """One session, one broker, one topic."""

    def __init__(self, spark: Any, address: str, records: int, folder: Path) -> None:
        self.spark = spark
        self.address = address
        self.records = records
        self._folder = folder
        self._numbers = itertools.count()

    def frame(self, way: str, *, stream: bool = False, **more: str) -> Any:
        reader = self.spark.readStream if stream else self.spark.read
        given = {
            "kafka.bootstrap.servers": self.address,
            "subscribe": "read",
            "startingOffsets": "earliest",
            **more,
        }
        return reader.format(way).options(**given).load()

    def batch(self, way: str) -> None:
        from pyspark.sql import functions as f

        found = self.frame(way).agg(
            f.count("*"),
            f.sum(f.length("value")),
            f.sum("offset"),
            f.max("timestamp"),
            f.sum(f.length("key")),
        )
        assert found.collect()[0][0] == self.records

    def stream(self, way: str, **more: str) -> None:
        query = self._started(self.frame(way, stream=True, **more).writeStream.format("noop"))
        assert sum(each["numInputRows"] for each in query.recentProgress) == self.records

    def batches(self, way: str) -> None:
        self.stream(way, maxOffsetsPerTrigger=str(self.records // 10))

    def topic(self, way: str) -> None:
        from leafcuttr_spark.spark.sink import TopicSink

        to = f"written-{next(self._numbers)}"
        librdkafka.create(self.address, to, PARTITIONS)
        rows = self.frame(way, stream=True).select("key", "value").writeStream
        client = {"kafka.bootstrap.servers": self.address}
        if way == "kafka":
            self._started(rows.format("kafka").options(**client, topic=to))
        else:
            sink = TopicSink({**client, "topic": to, "kafka.transactional.id": to})
            self._started(rows.foreachBatch(sink))
        with open_peer({"bootstrap.servers": self.address}) as peer:
            ends = peer.offsets({TopicPartition(to, n): -1 for n in range(PARTITIONS)})
        # A transaction leaves a marker in each partition.
        assert sum(ends.values()) - self.records in (0, PARTITIONS)
        librdkafka.delete(self.address, to)

    def _started(self, writer: Any) -> Any:
        checkpoint = self._folder / f"checkpoint-{next(self._numbers)}"
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        shutil.rmtree(checkpoint)
        return query


def fill(address: str, records: int, size: int) -> None:
    """The same records in each partition, in batches as a producer makes them."""
    # They are older than a week, which the first check of retention after the half minute would delete.
    librdkafka.create(address, "read", PARTITIONS, retention_ms="-1")
    each = records // PARTITIONS
    values = pa.array([bytes(size - number % 7) for number in range(10_000)], pa.binary())
    keys = pa.array([b"key-%06d" % number for number in range(10_000)], pa.binary())
    times = np.full(10_000, 1_700_000_000_000, np.int64)
    with open_peer({"bootstrap.servers": address}) as peer, peer.appender() as appender:
        for partition in range(PARTITIONS):
            for at in range(0, each, 10_000):
                for made in encode(Rows(keys, values, times).part(0, min(10_000, each - at))):
                    appender.send([NewBatch(TopicPartition("read", partition), made.data)])
        appender.flush()


def compared(name: str, work: Callable[[str], None], rounds: int) -> bool:
    """Whether it is fast enough."""
    ways = ["kafka", "leafcuttr"]
    took: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way in ways if number % 2 else reversed(ways):
            began = time.perf_counter()
            work(way)
            took[way].append(time.perf_counter() - began)
    theirs, ours = (took[way][1:] for way in ways)
    ratio = statistics.median(a / b for a, b in zip(theirs, ours, strict=True))
    good = ratio >= LEAST[name]
    print(
        f"{name:8} connector {statistics.median(theirs):6.2f} s   leafcuttr {statistics.median(ours):6.2f} s  "
        f" {ratio:5.2f} times as fast, at least {LEAST[name]}{'' if good else '   TOO SLOW'}",
        flush=True,
    )
    return good


def rates(records: int, size: int, rounds: int) -> bool:
    """On one core, by the processor's time."""
    plain = batches(records, size, Codec.NONE)
    keys = pa.array([b"key-%06d" % (n * 7919 % 50000) for n in range(records)], pa.binary())
    values = pa.array([bytes(size - n % 7) for n in range(records)], pa.binary())
    rows = Rows(keys, values, np.full(records, 1_700_000_000_000, np.int64))
    pieces = [rows.part(at, min(at + 10_000, records)) for at in range(0, records, 10_000)]
    works: dict[str, Callable[[], int]] = {
        "decode": decoding(plain, Wanted()),
        "encode": lambda: sum(made.records for piece in pieces for made in encode(piece)),
        "avro": decoding_values(records // 5),
    }
    good = True
    for name, work in works.items():
        _, best = rate(work, rounds)
        enough = best >= LEAST_RATES[name]
        good &= enough
        print(
            f"{name:8} {best:6.2f} M records/s on one core, at least {LEAST_RATES[name]}"
            f"{'' if enough else '   TOO SLOW'}",
            flush=True,
        )
    return good


def decoding_values(count: int) -> Callable[[], int]:
    """Values of five fields of Avro, as the source decodes them."""
    from leafcuttr_spark.formats.avro.schema import read_avro
    from leafcuttr_spark.formats.decoding import FieldDecoder, FormatPlan
    from leafcuttr_spark.formats.options import FormatName, FormatOptions, IdPlace

    schema, values = order_values(count)
    plan = FormatPlan(
        FormatOptions(FormatName.AVRO, id=IdPlace.NONE), "value", read_avro(schema.decode()).type, schema
    )
    decoder = FieldDecoder(plan)
    pieces = [values.slice(at, 10_000) for at in range(0, count, 10_000)]

    def work() -> int:
        found = [decoder.decode(piece) for piece in pieces]
        assert not any(one.errors for one in found)
        return sum(len(one.values) for one in found)

    return work


def resident_mb(process: int) -> dict[str, float]:
    """The proportional share of a process, and of its children by the names of their programs; workers that end
    meanwhile count for nothing."""
    found = dict.fromkeys(("driver", "java", "python"), 0.0)
    for one in [process, *children(process)]:
        with suppress(ProcessLookupError, FileNotFoundError):
            words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
            if b"leafcuttr" in words:
                continue
            name = "driver" if one == process else "java" if words[0].endswith(b"java") else "python"
            for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    found[name] += int(line.split()[1]) / 1024
    return found


def children(process: int) -> list[int]:
    found = []
    with suppress(ProcessLookupError, FileNotFoundError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for one in (task / "children").read_text().split():
                found += [int(one), *children(int(one))]
    return found


def small_enough(spark: Any, address: str) -> bool:
    given = {"kafka.bootstrap.servers": address, "subscribe": "small"}
    librdkafka.create(address, "small", 1)
    assert spark.read.format("leafcuttr").options(**given).load().collect() == []
    spark._jvm.System.gc()
    found = resident_mb(os.getpid())
    both = found["driver"] + found["java"]
    good = both <= LARGEST_MB
    print(
        f"memory   driver {found['driver']:.0f} MB and JVM {found['java']:.0f} MB idle, at most {LARGEST_MB}; "
        f"Spark's Python workers {found['python']:.0f} MB{'' if good else '   TOO LARGE'}",
        flush=True,
    )
    return good


def session(cores: int, memory: str) -> Any:
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.jars", ",".join(map(str, jars.spark(pyspark.__version__, KAFKA))))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="2g")
    chosen = parser.parse_args()
    wanted = chosen.only.split(",")
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"--only is one of {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    good = True
    with tempfile.TemporaryDirectory() as folder:
        if set(wanted) - {"codec"}:
            with running_broker(Path(folder) / "broker") as broker:
                spark = session(chosen.cores, chosen.memory)
                try:
                    if "memory" in wanted:
                        good &= small_enough(spark, broker.address)
                    fill(broker.address, chosen.records, chosen.size)
                    bench = Bench(spark, broker.address, chosen.records, Path(folder))
                    for name in LEAST:
                        if name in wanted:
                            good &= compared(name, getattr(bench, name), chosen.rounds)
                finally:
                    spark.stop()
        if "codec" in wanted:
            good &= rates(min(chosen.records, 500_000), chosen.size, chosen.rounds)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
