"""A running broker for all tests of one file, a topic for each, and `change`: one setting, in every place it can be
changed while running.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from leafcuttr.config.catalog import TOPIC
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.wire_client import WireClient

_NUMBERS = itertools.count(1)
SET, DELETE = 0, 1
BROKER = 4
SCOPES = {"of the topic": None, "of this broker": "1", "of all brokers": ""}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "setting(name): the test sees this topic setting act (see test_every_setting)"
    )


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """A broker in this process. Its retention never starts by itself: `pass_time` does it."""
    settings = {"log.retention.check.interval.ms": "86400000"}
    with live_broker(tmp_path_factory.mktemp("live") / "data", settings) as broker:
        yield broker


@pytest.fixture
def topic(live: LiveBroker) -> str:
    """A new topic of one partition."""
    name = f"topic-{next(_NUMBERS)}"
    librdkafka.create(live.address, name)
    return name


def alter_all_brokers(address: str, settings: dict[str, str | None]) -> None:
    """Change a default of all brokers; librdkafka cannot name them all, Java's admin can."""
    configs = [
        AlterableConfig(name=name, value=value, config_operation=DELETE if value is None else SET)
        for name, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=configs)
    with WireClient(address) as client:
        answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert [(each.error_code, each.error_message) for each in answer.responses] == [(0, None)]


class Change:
    """Changes topic settings of one topic by a real client: its own, or the default that it has from the broker."""

    def __init__(self, address: str, topic: str, scope: str | None) -> None:
        self._address = address
        self._topic = topic
        self._scope = scope
        self._changed: set[str] = set()

    def __call__(self, **settings: str | None) -> None:
        """Names with `_` for `.`; in this test's scope."""
        if self._scope is None:
            self.topic(**settings)
            return
        given = {TOPIC[name.replace("_", ".")].synonyms[0][0]: value for name, value in settings.items()}
        self._changed.update(given)
        self._alter_broker(given)

    def topic(self, **settings: str | None) -> None:
        """As a call, but always of the topic: what the test needs beside the setting that it is about."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        librdkafka.alter(self._address, "topic", self._topic, given)

    def of(self, topic: str) -> None:
        """Be about another topic from here on."""
        self._topic = topic

    def undo(self) -> None:
        """Put the broker's defaults back."""
        if self._changed and self._scope is not None:
            self._alter_broker(dict.fromkeys(self._changed))

    def _alter_broker(self, settings: dict[str, str | None]) -> None:
        if self._scope:
            librdkafka.alter(self._address, "broker", self._scope, settings)
        else:
            alter_all_brokers(self._address, settings)


@pytest.fixture(params=SCOPES)
def change(request: pytest.FixtureRequest, live: LiveBroker, topic: str) -> Iterator[Change]:
    """`change(retention_ms="1000")` on `topic`, in each of the three places."""
    changing = Change(live.address, topic, SCOPES[request.param])
    yield changing
    changing.undo()
