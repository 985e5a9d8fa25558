"""Where each step of a topic's creation leads when it ends early. Kills are in test_topics.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import StorageError
from leafcuttr.log.manager import LogManager, LogSpec
from leafcuttr.state.broker import Broker

MANY = 130
"""More than are worked on in two goes."""


async def folders(broker: Broker) -> list[str]:
    """Every folder of the directory that is there once those that may go are gone."""
    await broker.logs.remove_deleted()
    return sorted(path.name for path in Path(broker.logs.directory).iterdir() if path.is_dir())


@pytest.fixture
def broker(start: Callable[..., Broker]) -> Broker:
    return start()


async def test_partitions_of_a_preparation_that_fails_are_taken_back(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await folders(broker)
    prepare = LogManager.prepare

    def fails_at_100(logs: LogManager, spec: LogSpec) -> None:
        if spec.topic_partition.partition == 100:
            raise StorageError("the disk is full")
        prepare(logs, spec)

    monkeypatch.setattr(LogManager, "prepare", fails_at_100)
    with pytest.raises(StorageError, match="the disk is full"):
        await broker.topics.create("orders", MANY, {})
    assert await folders(broker) == before
    assert broker.topics.by_name == {}


async def test_partitions_of_a_commit_that_fails_are_taken_back(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await folders(broker)

    def fails(_records: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(broker.metadata, "add_topics", fails)
    with pytest.raises(StorageError, match="the disk is full"):
        await broker.topics.create("orders", MANY, {})
    assert await folders(broker) == before


async def test_partitions_of_a_cancelled_caller_are_taken_back_before_the_commit(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await folders(broker)
    prepare = LogManager.prepare
    scope = trio.CancelScope()

    def cancels_at_100(logs: LogManager, spec: LogSpec) -> None:
        prepare(logs, spec)
        if spec.topic_partition.partition == 100:
            trio.from_thread.run_sync(scope.cancel)

    monkeypatch.setattr(LogManager, "prepare", cancels_at_100)
    with scope:
        await broker.topics.create("orders", MANY, {})
    assert scope.cancelled_caught
    assert await folders(broker) == before
    assert broker.topics.by_name == {}


async def test_a_cancelled_caller_takes_nothing_back_after_the_commit(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopt = LogManager.adopt
    scope = trio.CancelScope()

    def cancels_at_10(logs: LogManager, spec: LogSpec) -> object:
        if spec.topic_partition.partition == 10:
            scope.cancel()
        return adopt(logs, spec)

    monkeypatch.setattr(LogManager, "adopt", cancels_at_10)
    told: list[str] = []
    broker.topics.on_changed.append(told.append)
    with scope:
        await broker.topics.create("orders", MANY, {})
    assert [partition.index for partition in broker.topics.by_name["orders"].partitions] == list(range(MANY))
    assert all(partition.log.offline is None for partition in broker.topics.by_name["orders"].partitions)
    assert told == ["orders"]


async def test_a_folder_that_gets_no_name_is_one_partition_offline_until_the_next_start(
    start: Callable[..., Broker],
) -> None:
    broker = start()
    # Not a folder, so nothing that is set aside; and renaming a folder to it fails.
    blocking = Path(broker.logs.directory) / "orders-1"

    adopt = broker.logs.adopt

    def blocked(spec: LogSpec) -> object:
        if spec.topic_partition.partition == 1:
            blocking.write_text("")
        return adopt(spec)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(broker.logs, "adopt", blocked)
        topic = await broker.topics.create("orders", 3, {})
    offline = [partition.log.offline for partition in topic.partitions]
    assert offline[0] is None and offline[2] is None
    assert "orders-1 cannot be made" in str(offline[1])
    blocking.unlink()
    again = start().topics.by_name["orders"]
    assert [(partition.log.offline, partition.log.high_watermark) for partition in again.partitions] == [
        (None, 0)
    ] * 3
