"""What tests of the MQTT broker share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.mqtt import RunningMqtt, running_mqtt


@pytest.fixture
async def mqtt(tmp_path: Path) -> AsyncIterator[RunningMqtt]:
    """The broker with its defaults, and two mappings."""
    settings = {
        "mqtt.topic.mapping.devices/#": "from-devices",
        "mqtt.topic.mapping.test/topic/+": "from-mqtt",
    }
    async with running_mqtt(tmp_path / "data", settings) as found:
        yield found
