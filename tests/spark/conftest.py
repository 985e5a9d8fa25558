"""A session of Spark for all tests that need one, and topics for them. Without Spark and Java they are skipped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from leafcuttr_spark.running.workers import worker_python
from support import jars, librdkafka
from support.broker_process import BrokerProcess, running_broker

PRESENT = importlib.util.find_spec("pyspark") is not None
_NUMBERS = count()
CONNECTOR = "4.2.0"
"""The last version of Spark whose Kafka connector is on Maven."""
KAFKA = "3.9.1"
"""The clients that this version of Spark's connector is built with."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a Spark is long, but for the gate's slice."""
    for item in items:
        if item.get_closest_marker("on_spark") is not None:
            continue
        needs_spark = "spark" in getattr(item, "fixturenames", ())
        if "tests/spark/spark/" in str(item.path) or (
            "tests/spark/running/" in str(item.path) and needs_spark
        ):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two cores; each task may be tried twice. Its own Kafka connector is there where Maven can fetch it."""
    if not PRESENT or not shutil.which("java"):
        pytest.skip("Spark is not here: the dependency group `spark-source`, and Java 17")
    # As a pipeline starts them: Spark waits ten seconds for some workers.
    os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"] = worker_python(), sys.executable
    import pyspark
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2,2]")
        .appName("leafcuttr-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "768m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if jars.missing() is None and pyspark.__version__ == CONNECTOR:
        found = jars.spark(pyspark.__version__, KAFKA)
        builder = builder.config("spark.jars", ",".join(map(str, found)))
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker whose clock is the right one: that in this process has its hands moved by tests."""
    with running_broker(tmp_path_factory.mktemp("live"), {"log.retention.ms": "-1"}) as broker:
        yield broker


@pytest.fixture
def wide(live: BrokerProcess) -> str:
    """A new topic of three partitions."""
    name = f"wide-{next(_NUMBERS)}"
    librdkafka.create(live.address, name, 3)
    return name
