"""What connections share."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.messages import Message
from support.mqtt import V3, RunningMqtt

MANY = 2300


@pytest.mark.long
async def test_many_retained_messages_are_sent_in_steps_and_none_is_lost(mqtt: RunningMqtt) -> None:
    for number in range(MANY):
        mqtt.running.hub.retained.put(Message(f"r/{number}", b"x", 1, True))
    other = await mqtt.connect("other")
    for qos in (0, 1):
        client = await mqtt.connect(f"c{qos}", V3)
        await client.subscribe("r/#", qos=qos)
        found = {(await client.message()).topic for _ in range(MANY)}
        assert found == {f"r/{number}" for number in range(MANY)}
        await client.nothing()
    await other.nothing()


@pytest.mark.long
async def test_a_client_that_leaves_meanwhile_gets_no_more_of_them(mqtt: RunningMqtt) -> None:
    for number in range(MANY):
        mqtt.running.hub.retained.put(Message(f"r/{number}", b"x", 1, True))
    client = await mqtt.connect("c", V3)
    await client.subscribe("r/#", qos=1)
    await client.vanish()
    other = await mqtt.connect("c", V3)
    await other.nothing()
    sleeper = await mqtt.connect("s", V3, clean=False)
    await sleeper.subscribe("r/#", qos=1)
    await sleeper.vanish()
    sleeper = await mqtt.connect("s", V3, clean=False, present=True)
    assert len({(await sleeper.message()).topic for _ in range(MANY)}) == MANY
