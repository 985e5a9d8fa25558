"""A session of Spark for all tests of this folder, and topics for them. Without Spark and Java they are skipped."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from support import jars, librdkafka
from support.live_broker import LiveBroker

PRESENT = importlib.util.find_spec("pyspark") is not None
_NUMBERS = count()
KAFKA = "3.9.1"
"""The clients that this version of Spark's connector is built with."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/spark/spark/" in str(item.path):
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two cores; each task may be tried twice. Its own Kafka connector is there where Maven can fetch it."""
    if not PRESENT or not shutil.which("java"):
        pytest.skip("Spark is not here: the dependency group `spark-source`, and Java 17")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
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
    if jars.missing() is None:
        found = jars.spark(pyspark.__version__, KAFKA)
        builder = builder.config("spark.jars", ",".join(map(str, found)))
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def wide(live: LiveBroker) -> str:
    """A new topic of three partitions."""
    name = f"wide-{next(_NUMBERS)}"
    # The clock of this broker stands in the past.
    librdkafka.create(live.address, name, 3, message_timestamp_after_max_ms=str(2**63 - 1))
    return name
