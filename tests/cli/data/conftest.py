"""The same tests against our broker and, in the long run, against a real Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import jars
from support.broker_process import running_broker
from support.real_kafka import real_kafka


@pytest.fixture(scope="session", params=["leafcuttr", pytest.param("kafka", marks=pytest.mark.long)])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp(f"data-{request.param}")
    if request.param == "leafcuttr":
        with running_broker(folder, {"num.partitions": "2"}) as broker:
            yield broker.address
        return
    reason = jars.missing()
    if reason:
        pytest.skip(reason)
    with real_kafka(folder, "num.partitions=2") as kafka:
        yield str(kafka)
