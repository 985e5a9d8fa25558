"""The one setting that all brokers always have a value of: `min.insync.replicas`, as Kafka keeps it since KIP-966."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from leafcuttr.config.settings import Source
from leafcuttr.state.broker import Broker
from leafcuttr.state.metadata import FILE_NAME

NAME = "min.insync.replicas"
Start = Callable[..., Broker]


def stored(broker: Broker) -> dict[str, dict[str, str]]:
    return broker.metadata.broker_configs()


def test_a_new_directory_takes_the_value_of_the_first_start(start: Start) -> None:
    broker = start(min_insync_replicas="2")
    assert stored(broker) == {"": {NAME: "2"}}
    assert broker.settings.source(NAME) is Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    again = start(min_insync_replicas="3")
    assert (stored(again), again.settings.int(NAME)) == ({"": {NAME: "2"}}, 2)


def test_a_start_that_finds_it_writes_nothing(start: Start) -> None:
    changes = start().metadata.changes
    assert start().metadata.changes == changes


@pytest.mark.parametrize("of_all", [None, "4"])
def test_a_directory_of_an_earlier_version_gets_it(start: Start, of_all: str | None) -> None:
    before = start().metadata
    before.set_broker_configs("1", {NAME: "3", "log.retention.ms": "5"})
    before.set_broker_configs("", {NAME: of_all, "message.max.bytes": "1000"})
    broker = start(min_insync_replicas="2")
    expected = of_all or "2"
    assert stored(broker) == {
        "": {NAME: expected, "message.max.bytes": "1000"},
        "1": {"log.retention.ms": "5"},
    }
    assert broker.settings.int(NAME) == int(expected)
    assert broker.settings.source(NAME) is Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert (broker.settings.int("log.retention.ms"), broker.settings.int("message.max.bytes")) == (5, 1000)


def test_a_disk_that_refuses_it_keeps_nothing_from_starting(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    start().metadata.close()
    with closing(sqlite3.connect(tmp_path / "data" / FILE_NAME)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON broker_configs BEGIN SELECT RAISE(FAIL, 'disk is full'); END"
        )
        connection.execute("DELETE FROM broker_configs")
        connection.commit()
    broker = start()
    assert stored(broker) == {}
    assert broker.settings.source(NAME) is Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    (record,) = [one for one in caplog.records if one.name == "leafcuttr.state.dynamic_settings"]
    assert record.exc_info is None
    assert "min.insync.replicas for all brokers is not stored" in record.message
    assert "disk is full" in record.message
