from __future__ import annotations

import pytest

from leafcuttr_mqtt.egress.messages import Left, Way
from leafcuttr_mqtt.mapping.fields import EGRESS_FIELDS, EGRESS_PREFIXES
from leafcuttr_mqtt.mapping.rules import Rules, make_rules
from leafcuttr_mqtt.mapping.templates import parse
from leafcuttr_mqtt.messages import Message
from leafcuttr_sdk.records import Headers, StoredRecord

NOW = 100_000


def way(template: str = "out/{key}", rules: Rules | None = None, qos: int = 1, retain: bool = False) -> Way:
    parsed = parse(template, EGRESS_FIELDS, prefixes=EGRESS_PREFIXES)
    return Way(parsed, qos, retain, rules or make_rules({}, {}))


def record(
    headers: Headers = (), key: bytes | None = b"k", value: bytes | None = b"v", timestamp: int = 1000
) -> StoredRecord:
    return StoredRecord("orders", 3, 7, timestamp, key, value, headers)


def test_the_message_of_a_record() -> None:
    found = way("{topic}/{partition}/{key}/{header.unit}", qos=2, retain=True).message(
        record((("unit", b"F"), ("unit", b"C"), ("mqtt.content_type", b"text/plain"))), NOW
    )
    assert found == Message(
        "orders/3/k/C", b"v", 2, True, "", NOW, content_type="text/plain",
        user_properties=(("unit", "F"), ("unit", "C")), via=("orders",),
    )  # fmt: skip


def test_null_is_an_empty_payload() -> None:
    found = way().message(record(value=None), NOW)
    assert isinstance(found, Message)
    assert found.payload == b""


@pytest.mark.parametrize(
    ("template", "found", "why"),
    [
        ("{key}", record(key=None), Left.NO_FIELD),
        ("{key}", record(key=b"\xff"), Left.NO_FIELD),
        ("{header.x}", record(), Left.NO_FIELD),
        ("{header.x}", record((("x", None),)), Left.NO_FIELD),
        ("{key}", record(key=b"a/+"), Left.NO_TOPIC),
        ("{key}", record(key=b""), Left.NO_TOPIC),
        ("{key}", record(key=b"a\0"), Left.NO_TOPIC),
        ("{key}", record(key=b"$SYS/x"), Left.NO_TOPIC),
        ("{key}", record(key=b"x" * 65_536), Left.NO_TOPIC),
        ("t", record((("mqtt.expiry_interval", b"99"),)), Left.EXPIRED),
    ],
)
def test_what_is_left_out(template: str, found: StoredRecord, why: Left) -> None:
    assert way(template).message(found, NOW) is why


def test_what_has_not_expired_yet_expires_when_it_does() -> None:
    found = way("t").message(record((("mqtt.expiry_interval", b"100"),)), NOW)
    assert isinstance(found, Message)
    assert found.expires_ms == 101_000


def test_what_was_published_to_the_topic_when_it_came_is_not_published_again() -> None:
    stored = record((("mqtt.topic", b"out/k"),))
    leads_back = make_rules({"out/+": "orders"}, {})
    assert way(rules=leads_back).message(stored, NOW) is Left.PUBLISHED
    # It came by another topic, or was stored by another broker.
    assert isinstance(way(rules=leads_back).message(record((("mqtt.topic", b"in/k"),)), NOW), Message)
    for other in (make_rules({"out/+": "others"}, {}), make_rules({"in/+": "orders"}, {})):
        assert isinstance(way(rules=other).message(stored, NOW), Message)


def test_it_carries_all_kafka_topics_that_it_has_come_from() -> None:
    for before, after in ((b"a,b", ("a", "b", "orders")), (b"orders,b", ("orders", "b"))):
        found = way().message(record((("mqtt.via", before),)), NOW)
        assert isinstance(found, Message)
        assert found.via == after
