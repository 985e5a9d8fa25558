"""The settings of the broker for pipelines. What a pipeline does stands in its file."""

from collections.abc import Iterable
from typing import Final

from leafcuttr_sdk.settings import Setting, Type

FOLDER: Final = "lc.spark.pipelines"
PROGRAM: Final = "lc.spark.program"
MEMORY: Final = "lc.spark.memory.max.bytes"
STOP: Final = "lc.spark.stop.timeout.ms"
SCAN: Final = "lc.spark.scan.interval.ms"


def settings() -> Iterable[Setting]:
    yield Setting(
        FOLDER,
        Type.STRING,
        None,
        "The folder with the files of pipelines (`*.yaml`, `*.yml`) that the broker runs, each in a process of its "
        "own: `leafcuttr spark run FILE`. New, changed and removed files are noticed.",
    )
    yield Setting(
        PROGRAM,
        Type.LIST,
        (),
        "The words of another program that runs a pipeline, as that of an environment with Spark: `/opt/spark/bin/"
        "leafcuttr,spark,run`. The file, and options of `leafcuttr spark run`, come behind them.",
    )
    yield Setting(
        MEMORY,
        Type.LONG,
        -1,
        "How much memory a pipeline may have, its JVM and all its processes together; one that has more is killed and "
        "started again. -1: without limit.",
        unit="bytes",
        minimum=-1,
    )
    yield Setting(
        STOP,
        Type.LONG,
        60_000,
        "How long a pipeline may take to finish its batch when it is stopped; then it is killed.",
        unit="ms",
        minimum=1,
        maximum=86_400_000,
    )
    yield Setting(
        SCAN,
        Type.LONG,
        2000,
        "Time between two scans of the folder. A file that has changed is taken once two of them have found the same.",
        unit="ms",
        minimum=10,
        maximum=3_600_000,
    )
