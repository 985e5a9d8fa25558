"""A plugin's view of a real broker on a temporary directory, without sockets; with filters and validators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk import Broker
from support.live_broker import opening
from support.logs import HandClock
from support.mqtt_chains import PLUGIN, open_with, ready


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    ready["now"] = False
    with opening(tmp_path / "data", HandClock()) as opened:
        yield opened


@pytest.fixture
def core(opened: Any) -> Core:
    return open_with(opened)


@pytest.fixture
def broker(core: Core) -> Broker:
    return make_broker_view(core, PLUGIN)
