from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.mapping.records import (
    body_of,
    fixed_headers,
    has_others,
    message_of,
    other_headers,
    with_number,
    with_others,
)
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.topics.names import why_no_name
from leafcuttr_sdk.batches import encode_headers
from leafcuttr_sdk.records import Headers, StoredRecord

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TOPIC = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0+#"), min_size=1, max_size=20)
MESSAGES = st.builds(
    Message,
    topic=TOPIC,
    payload=st.binary(max_size=30),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    client_id=TEXT,
    arrived_ms=st.just(1_700_000_000_000),
    expires_ms=st.none() | st.integers(0, 2**32 - 1).map(lambda s: 1_700_000_000_000 + 1000 * s),
    payload_format=st.none() | st.just(0),
    content_type=st.none() | TEXT,
    response_topic=st.none() | TOPIC,
    correlation_data=st.none() | st.binary(max_size=10),
    user_properties=st.lists(
        st.tuples(
            TEXT | st.sampled_from(["mqtt.topic", "mqtt.user.x", "mqtt.", "mqtt.message.number"]), TEXT
        ),
        max_size=4,
    ).map(tuple),
    via=st.sampled_from([(), ("a",), ("a", "b.c")]),
)


def headers_of(message: Message, number: int | None = None) -> Headers:
    fixed = fixed_headers(message.topic, message.qos, message.retain, message.client_id)
    return (*fixed, *other_headers(message, number))


def stored(headers: Headers, value: bytes | None = b"v", timestamp: int = 1000) -> StoredRecord:
    return StoredRecord("t", 0, 7, timestamp, b"k", value, headers)


@given(MESSAGES, st.none() | st.integers(0, 2**63 - 1))
def test_there_and_back(message: Message, number: int | None) -> None:
    headers = headers_of(message, number)
    assert message_of(stored(headers, message.payload, message.arrived_ms)) == message
    assert dict(headers).get("mqtt.message.number") == (None if number is None else b"%d" % number)
    assert has_others(message) == (len(headers) - (number is not None) > 4)


@given(MESSAGES, st.integers(0, 2**63 - 1))
def test_encoded_pieces_make_the_same_bytes(message: Message, number: int) -> None:
    fixed = fixed_headers(message.topic, message.qos, message.retain, message.client_id)
    body = body_of(fixed)
    assert with_others(body, []) == encode_headers(fixed)
    assert with_others(body, other_headers(message)) == encode_headers(headers_of(message))
    numbered = (*fixed, ("mqtt.message.number", b"%d" % number))
    assert with_number(body, number) == encode_headers(numbered)


def test_the_headers_of_a_message() -> None:
    message = Message(
        "a/b", b"\xff", 2, True, "dev", 1000, 61_999, 1, "text/plain", "answers/1", b"\x00\x01",
        (("unit", "C"), ("mqtt.client_id", "other"), ("unit", "F")), ("orders", "x"),
    )  # fmt: skip
    assert headers_of(message, 17) == (
        ("mqtt.topic", b"a/b"),
        ("mqtt.qos", b"2"),
        ("mqtt.retain", b"true"),
        ("mqtt.client_id", b"dev"),
        ("mqtt.content_type", b"text/plain"),
        ("mqtt.response_topic", b"answers/1"),
        ("mqtt.correlation_data", b"\x00\x01"),
        ("mqtt.payload_format", b"1"),
        ("mqtt.expiry_interval", b"60"),
        ("mqtt.via", b"orders,x"),
        ("mqtt.message.number", b"17"),
        ("unit", b"C"),
        ("mqtt.user.mqtt.client_id", b"other"),
        ("unit", b"F"),
    )


def test_no_client_can_write_the_headers_of_another() -> None:
    spoof = Message(
        "a", b"", client_id="me", user_properties=(("mqtt.client_id", "you"), ("mqtt.message.number", "9"))
    )
    headers = dict(headers_of(spoof))
    assert headers["mqtt.client_id"] == b"me"
    assert "mqtt.message.number" not in headers


def test_records_that_are_no_messages() -> None:
    assert message_of(stored(())) is None
    for topic in (b"", b"a/+", b"\xff", b"a\x00", None, b"x" * 70_000):
        assert message_of(stored((("mqtt.topic", topic),))) is None


def test_what_filters_and_others_have_left_is_taken_as_far_as_it_goes() -> None:
    found = message_of(
        stored(
            (
                ("mqtt.topic", b"a"),
                ("mqtt.qos", b"7"),
                ("mqtt.retain", None),
                ("mqtt.client_id", b"\xff"),
                ("mqtt.content_type", b"\xff"),
                ("mqtt.response_topic", b"#"),
                ("mqtt.correlation_data", b"x" * 65_536),
                ("mqtt.payload_format", b"1"),
                ("mqtt.expiry_interval", b"-1"),
                ("binary", b"\xff"),
                ("null", None),
                ("zero\0", b"a"),
                ("zero", b"a\0b"),
                ("\udcff", b"a"),
                ("n" * 65_536, b"a"),
                ("ok", b"v"),
                ("mqtt.unknown", b"v"),
            ),
            b"\xff",
        )
    )
    assert found == Message("a", b"\xff", arrived_ms=1000, user_properties=(("ok", "v"),))
    assert message_of(stored((("mqtt.topic", b"a"),), None)) == Message("a", b"", arrived_ms=1000)
    text = message_of(stored((("mqtt.topic", b"a"), ("mqtt.payload_format", b"1")), b"x" * 70_000 + b"\0"))
    assert text is not None
    assert text.payload_format == 1
    forever = message_of(stored((("mqtt.topic", b"a"), ("mqtt.expiry_interval", b"9" * 10))))
    assert forever is not None
    assert forever.expires_ms == 1000 + 0xFFFFFFFF * 1000


NAMES = st.sampled_from(
    ["mqtt.topic", "mqtt.qos", "mqtt.expiry_interval", "mqtt.message.number", "mqtt.user.", "mqtt.via", "x"]
)


@given(st.lists(st.tuples(NAMES | st.text(max_size=5), st.none() | st.binary(max_size=12)), max_size=8))
def test_any_record_is_a_message_or_none(headers: list[tuple[str, bytes | None]]) -> None:
    found = message_of(stored(tuple(headers), None))
    if found is not None:
        assert why_no_name(found.topic) is None
        for name, value in found.user_properties:
            assert "\0" not in name + value
            (name + value).encode()
