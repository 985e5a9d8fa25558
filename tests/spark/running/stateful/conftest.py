"""Streams whose batches a test decides on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.spark_streams import Streams

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="module")
def streams(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streams]:
    from leafcuttr_spark.running.sharing import SETTINGS

    settings = {**SETTINGS, "spark.sql.streaming.stateStore.providerClass": ROCKSDB}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield Streams(spark, tmp_path_factory.mktemp("streams"))
    for name in settings:
        spark.conf.unset(name)
