"""What tests of routing share."""

from __future__ import annotations

import pytest

from support.mqtt_routing import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()
