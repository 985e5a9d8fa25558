"""Tests that end in every way there is when a setting keeps its default; test_setting_marks runs them that way.

The name keeps them out of every other run: of itself each that is about `num.partitions` and is not meant to fail
passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import topic_config
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support import librdkafka
from support.broker_process import running_broker
from support.changing import alter_broker
from support.live_broker import LiveBroker, live_broker
from support.waiting import until
from support.wire_client import WireClient


def partitions() -> int:
    return Settings({"num.partitions": "3"}).int("num.partitions")


def test_asserts() -> None:
    assert partitions() == 3


def test_expects_an_exception() -> None:
    def crash_with_three() -> None:
        if partitions() == 3:
            raise KeyError

    with pytest.raises(KeyError):
        crash_with_three()


async def test_asserts_in_a_group() -> None:
    async def look() -> None:
        assert partitions() == 3

    async with trio.open_nursery(strict_exception_groups=True) as nursery:
        nursery.start_soon(look)
        nursery.start_soon(look)


async def test_asserts_and_crashes_in_a_group() -> None:
    async def look(crash: bool) -> None:
        if crash and partitions() != 3:
            raise KeyError
        assert partitions() == 3

    async with trio.open_nursery(strict_exception_groups=True) as nursery:
        nursery.start_soon(look, True)
        nursery.start_soon(look, False)


def test_awaits() -> None:
    until(lambda: partitions() == 3, "three partitions", seconds=0.1)


def test_awaits_what_never_comes() -> None:
    until(lambda: partitions() == 4, "four partitions", seconds=0.1)


def test_of_a_child(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"num.partitions": "3"}) as broker, WireClient(broker.address) as client:
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True)
        until(lambda: client.ask(asked, 4).topics[0].error_code == 0, "the topic")
        assert len(client.ask(asked, 4).topics[0].partitions) == 3


def test_passes() -> None:
    assert partitions() > 0


def test_is_never_given() -> None:
    assert Settings().int("num.partitions") == 3


def test_gives_the_default() -> None:
    assert Settings({"num.partitions": "1"}).int("num.partitions") == 3


def test_crashes() -> None:
    assert {3: "three"}[partitions()]


def test_crashes_in_the_product() -> None:
    Settings()._known("num.partitions" if partitions() == 3 else "no.such.setting")


def test_runs_into_a_bound() -> None:
    if partitions() != 3:
        pytest.fail("Timeout (>120.0s) from pytest-timeout.")


def test_is_skipped() -> None:
    if partitions() != 3:
        pytest.skip("it cannot be tried")


@pytest.fixture
def three() -> int:
    assert partitions() == 3
    return 3


def test_has_a_fixture_that_fails(three: int) -> None:
    assert three == 3


# Every way to a value, all of retention.ms


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path / "data") as broker:
        yield broker


def retention(broker: LiveBroker, topic: str = "t") -> int:
    return broker.call(lambda: broker.log(topic).config.retention_ms)


def test_started_with_hours(tmp_path: Path) -> None:
    with live_broker(tmp_path / "data", {"log.retention.hours": "1"}) as broker:
        librdkafka.create(broker.address, "t")
        assert retention(broker) == 3_600_000


@pytest.mark.parametrize("scope", ["1", ""])
def test_changed_while_it_runs(live: LiveBroker, scope: str) -> None:
    librdkafka.create(live.address, "t")
    alter_broker(live.address, scope, {"log.retention.ms": "1000"})
    assert retention(live) == 1000


def test_created_with(live: LiveBroker) -> None:
    config = CreatableTopicConfig(name="retention.ms", value="1000")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=[config])
    with WireClient(live.address) as client:
        assert client.ask(CreateTopicsRequest(topics=[topic]), 5).topics[0].error_code == 0
    assert retention(live) == 1000


def test_altered(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t")
    librdkafka.alter(live.address, "topic", "t", {"retention.ms": "1000"})
    assert retention(live) == 1000


def test_read_back_after_a_restart(tmp_path: Path) -> None:
    with live_broker(tmp_path / "data") as broker:
        librdkafka.create(broker.address, "t", retention_ms="1000")
    with live_broker(tmp_path / "data") as broker:
        assert retention(broker) == 1000


def test_made_by_hand() -> None:
    assert topic_config(Settings(), {"retention.ms": "1000"}).retention_ms == 1000
