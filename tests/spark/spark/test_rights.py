"""Source, sink and the official connector over SASL_SSL have the rights of the page, and no others: what is missing
they name, and go on once it is given; each record is there once."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from support.needed_rights import CONNECTOR, SPARK, Need, Rights, authorized_broker, client
from support.secured_broker import SecuredBroker

_NUMBERS = count()
VALUES = [str(number) for number in range(100)]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with authorized_broker(tmp_path_factory.mktemp("spark")) as broker:
        yield broker


@pytest.fixture
def app() -> str:
    return f"app-{next(_NUMBERS)}"


@pytest.fixture
def cluster(secured: SecuredBroker) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in client(secured).items()}


def begin(rights: Rights, needs: tuple[Need, ...], missing: Need, app: str) -> None:
    rights.give([one for one in needs if one != missing], app)
    rights.create([f"in-{app}", f"out-{app}"])
    rights.send(f"in-{app}", VALUES)


def rows(spark: Any, cluster: dict[str, str], source: str, app: str) -> Any:
    options = {**cluster, "subscribe": f"in-{app}", "startingOffsets": "earliest"}
    return spark.readStream.format(source).options(**options).load().select("value")


def run(written: Any, folder: Path) -> str:
    """What the query says where it fails."""
    query = written.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    with suppress(Exception):
        query.awaitTermination()
    return str(query.exception() or "")


@pytest.mark.parametrize("missing", SPARK, ids=str)
def test_a_right_is_missing(
    spark: Any,
    secured: SecuredBroker,
    cluster: dict[str, str],
    app: str,
    tmp_path: Path,
    missing: Need,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from leafcuttr_spark.spark.listener import GroupOffsets
    from leafcuttr_spark.spark.sink import TopicSink

    rights = Rights(secured)
    begin(rights, SPARK, missing, app)
    sink = TopicSink({**cluster, "topic": f"out-{app}", "kafka.transactional.id": app})
    written = rows(spark, cluster, "leafcuttr", app).writeStream.queryName(app).foreachBatch(sink)
    offsets = GroupOffsets({**cluster, "kafka.group.id": f"lag-{app}"}, app)
    spark.streams.addListener(offsets)
    try:
        with caplog.at_level(logging.INFO, "leafcuttr.spark"):
            failed = run(written, tmp_path / "checkpoint")
            rights.wait_for(missing, app, lambda: failed or caplog.text)
        rights.give([missing], app)
        if not failed:
            rights.send(f"in-{app}", ["more"])
        assert run(written, tmp_path / "checkpoint") == ""
        expected = VALUES if failed else [*VALUES, "more"]
        rights.wait_for_offset(f"lag-{app}", f"in-{app}", len(expected))
    finally:
        spark.streams.removeListener(offsets)
        sink.close()
    assert rights.read(f"out-{app}") == expected


@pytest.mark.parametrize("missing", CONNECTOR, ids=str)
def test_a_right_is_missing_to_the_connector(
    spark: Any, secured: SecuredBroker, cluster: dict[str, str], app: str, tmp_path: Path, missing: Need
) -> None:
    rights = Rights(secured)
    begin(rights, CONNECTOR, missing, app)
    written = rows(spark, cluster, "kafka", app).writeStream.format("kafka")
    written = written.options(**cluster, topic=f"out-{app}")
    failed = run(written, tmp_path / "checkpoint")
    assert re.search(missing.says.format(app=app), failed), failed
    rights.give([missing], app)
    assert run(written, tmp_path / "checkpoint") == ""
    assert rights.read(f"out-{app}") == VALUES
