"""A real broker without sockets, and stores on it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import leafcuttr_mqtt
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr_sdk import Broker
from support.live_broker import opening
from support.logs import HandClock

Start = Callable[..., Broker]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def start(tmp_path: Path, clock: HandClock) -> Iterator[Start]:
    """Open a broker on the test's directory, as the plugin sees it; calling it again is a restart."""
    with opening(tmp_path / "data", clock) as opened:
        yield lambda **settings: make_broker_view(
            opened({name.replace("_", "."): value for name, value in settings.items()}), leafcuttr_mqtt.PLUGIN
        )
