"""A will as the message that is published."""

from __future__ import annotations

from leafcuttr_mqtt.packets.types import Properties, Will
from leafcuttr_mqtt.routing.wills import will_message


def test_a_will_has_the_time_at_which_it_is_published_and_its_properties() -> None:
    properties = Properties(
        will_delay_interval=5,
        message_expiry_interval=7,
        payload_format_indicator=1,
        content_type="t",
        response_topic="r",
        correlation_data=b"c",
        user_properties=(("a", "b"),),
    )
    message = will_message("c", Will("topic", b"x", 2, True, properties), 1000)
    assert (message.topic, message.payload, message.qos, message.retain) == ("topic", b"x", 2, True)
    assert (message.client_id, message.arrived_ms, message.expires_ms) == ("c", 1000, 8000)
    assert (message.payload_format, message.content_type, message.response_topic) == (1, "t", "r")
    assert (message.correlation_data, message.user_properties) == (b"c", (("a", "b"),))
    assert will_message("c", Will("topic", b"x", 2, True), 1000).expires_ms is None
