"""`change`: one setting of the broker of `support.live_fixtures`, in every place it can be changed while running."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from leafcuttr.config.catalog import OF_TOPICS, TOPIC
from leafcuttr.runtime.clock import SystemClock
from support import librdkafka
from support.changing import alter_broker
from support.live_broker import LiveBroker, live_broker
from support.live_fixtures import BROKER_SCOPES

Serve = Callable[..., AbstractContextManager[LiveBroker]]
SCOPES = {"of the topic": None, **BROKER_SCOPES}


def broker_name(setting: str, topic: str) -> str:
    """The broker setting that gives this topic its default: one for all topics, or of a family one for it."""
    if setting in OF_TOPICS:
        return OF_TOPICS[setting].partition("<")[0] + topic
    return TOPIC[setting].synonyms[0][0]


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
        given = {broker_name(name.replace("_", "."), self._topic): value for name, value in settings.items()}
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
        alter_broker(self._address, self._scope or "", settings)


@pytest.fixture(params=SCOPES)
def change(request: pytest.FixtureRequest, live: LiveBroker, topic: str) -> Iterator[Change]:
    """`change(retention_ms="1000")` on `topic`, in each of the three places."""
    changing = Change(live.address, topic, SCOPES[request.param])
    yield changing
    changing.undo()


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """`with serve({...}) as broker`, with the broker's clock standing still unless the test needs time."""

    @contextmanager
    def start(
        settings: Mapping[str, str] | None = None, *, real_time: bool = False, directory: str = "data"
    ) -> Iterator[LiveBroker]:
        given = {"offsets.topic.num.partitions": "1", **(settings or {})}
        with live_broker(tmp_path / directory, given, clock=SystemClock() if real_time else None) as broker:
            yield broker

    return start
