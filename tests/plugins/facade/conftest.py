"""A plugin's view of a real broker on a temporary directory, without sockets."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker
from leafcuttr_sdk import Broker as View
from leafcuttr_sdk import Plugin
from support.live_broker import opening
from support.logs import HandClock

PLUGIN = Plugin("sample", 1, "one for tests")

Open = Callable[..., Broker]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def open_core(tmp_path: Path, clock: HandClock) -> Iterator[Open]:
    """Open a broker with these settings on the test's directory; calling it again is a restart."""
    with opening(tmp_path / "data", clock) as opened:
        yield lambda **settings: opened({name.replace("_", "."): value for name, value in settings.items()})


@pytest.fixture
def core(open_core: Open) -> Broker:
    return open_core()


@pytest.fixture
def view(core: Broker) -> View:
    return make_broker_view(core, PLUGIN)
