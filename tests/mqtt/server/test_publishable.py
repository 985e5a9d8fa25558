"""Which topics a client may publish to."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.bridge.topics import state_topic
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_mqtt.server.publishable import PROTECTED, why_refused
from leafcuttr_mqtt.topics.names import MAX_LEVELS

DENIED = ReasonCode.NOT_AUTHORIZED, PROTECTED


@pytest.mark.parametrize(
    ("topic", "refusal"),
    [
        ("a/b", None),
        ("a/$b", None),
        ("$SYS/broker/uptime", DENIED),
        ("$mine", DENIED),
        (state_topic("c"), None),
        (state_topic("other"), DENIED),
        (state_topic("c") + "/more", DENIED),
        ("/" * (MAX_LEVELS - 1), None),
        ("/" * MAX_LEVELS, (ReasonCode.TOPIC_NAME_INVALID, "topic name: it has 201 levels; allowed are 200")),
        (
            "$" + "/" * MAX_LEVELS,
            (ReasonCode.TOPIC_NAME_INVALID, "topic name: it has 201 levels; allowed are 200"),
        ),
    ],
)
def test_topics(topic: str, refusal: tuple[ReasonCode, str] | None) -> None:
    assert why_refused(topic, "c") == refusal
