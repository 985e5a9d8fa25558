"""Sizes of packets, beside what the writer makes of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Properties, Publish, Version
from leafcuttr_mqtt.packets.writer import encode
from leafcuttr_mqtt.session.sizes import publish_size

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
lengths = st.sampled_from(
    [0, 1, 100, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 16_370, 16_383, 16_400]
)


@given(
    version=st.sampled_from([Version.V3_1_1, Version.V5]),
    topic=texts,
    length=lengths,
    qos=st.integers(0, 2),
    identifiers=st.lists(st.sampled_from([1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]), max_size=3),
    expiry=st.booleans(),
    alias=st.booleans(),
    left_out=st.booleans(),
    message_properties=st.fixed_dictionaries(
        {
            "payload_format": st.none() | st.integers(0, 1),
            "content_type": st.none() | texts,
            "response_topic": st.none() | texts,
            "correlation_data": st.none() | st.binary(max_size=130),
            "user_properties": st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
        }
    ),
)
def test_the_size_is_that_of_the_bytes(
    version: Version,
    topic: str,
    length: int,
    qos: int,
    identifiers: list[int],
    expiry: bool,
    alias: bool,
    left_out: bool,
    message_properties: dict[str, object],
) -> None:
    message = Message(topic, bytes(length), **message_properties)  # type: ignore[arg-type]
    left_out = left_out and alias and version == Version.V5
    properties = Properties(
        payload_format_indicator=message.payload_format,
        message_expiry_interval=5 if expiry else None,
        content_type=message.content_type,
        response_topic=message.response_topic,
        correlation_data=message.correlation_data,
        subscription_identifiers=tuple(identifiers),
        topic_alias=3 if alias else None,
        user_properties=message.user_properties,
    )
    packet = Publish("" if left_out else topic, message.payload, qos, False, 1, False, properties)
    size = publish_size(
        message,
        v5=version == Version.V5,
        qos=qos,
        identifiers=tuple(identifiers),
        expiry=expiry,
        alias=alias,
        topic_left_out=left_out,
    )
    assert size == len(encode(packet, version))
