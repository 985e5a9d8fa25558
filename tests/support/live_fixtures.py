"""Fixtures of tests that use a broker in this process."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from leafcuttr.state.broker import Broker
from support import librdkafka
from support.live_broker import LiveBroker, live_broker, serve_here

Serve = Callable[..., Awaitable[Broker]]

_NUMBERS = itertools.count(1)
BROKER_SCOPES = {"of this broker": "1", "of all brokers": ""}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """A broker in this process. Its retention never starts by itself: `pass_time` does it."""
    settings = {"log.retention.check.interval.ms": "86400000"}
    with live_broker(tmp_path_factory.mktemp("live") / "data", settings) as broker:
        yield broker


@pytest.fixture
def serve(tmp_path: Path, nursery: trio.Nursery) -> Serve:
    """Start a broker with these settings (Kafka's names), with sockets on the test's own loop; see `serve_here`."""
    return partial(serve_here, nursery, tmp_path / "data")


@pytest.fixture
def topic(live: LiveBroker) -> str:
    """A new topic of one partition."""
    name = f"topic-{next(_NUMBERS)}"
    librdkafka.create(live.address, name)
    return name


@pytest.fixture(params=BROKER_SCOPES)
def scope(request: pytest.FixtureRequest) -> str:
    """Where a broker setting is changed while running: for this broker, or for all."""
    return BROKER_SCOPES[request.param]
