"""Properties: which there are, in which packets, their values and their bytes; paho's tables and bytes beside ours."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from leafcuttr_mqtt.packets.encoding import varint
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.fields import MOST_REPEATED, Body
from leafcuttr_mqtt.packets.properties import (
    ALLOWED,
    BINARY,
    BYTE,
    FOUR,
    PAIR,
    PROPERTIES,
    TEXT,
    TWO,
    VARINT,
    WILL,
    Property,
    read_properties,
    write_properties,
)
from leafcuttr_mqtt.packets.types import NO_PROPERTIES, PacketType, Properties, ReasonCode
from support.gates_slice import sampled
from support.mqtt_packets import properties, values

R = ReasonCode
KINDS: Final = (WILL, *PacketType)
HAVING: Final = tuple(kind for kind in KINDS if ALLOWED[kind])
GOOD: Final = {
    id(BYTE): b"\1",
    id(TWO): b"\0\1",
    id(FOUR): b"\0\0\0\1",
    id(VARINT): b"\1",
    id(TEXT): b"\0\1t",
    id(BINARY): b"\0\1\xff",
    id(PAIR): b"\0\1k\0\1v",
}


def read(kind: int, block: bytes, more: bytes = b"") -> tuple[Properties, int]:
    """The properties, and where the reader is behind them."""
    raw = varint(len(block)) + block + more
    body = Body("X", raw, 0, len(raw))
    return read_properties(body, kind), body.at - len(raw) + len(more)


def refused(kind: int, block: bytes, more: bytes = b"") -> ReasonCode:
    with pytest.raises(PacketError) as caught:
        read(kind, block, more)
    assert caught.value.text.startswith("X: ")
    return caught.value.reason


def paho_kind(kind: int) -> int:
    return PacketTypes.WILLMESSAGE if kind == WILL else int(kind)


def test_paho_knows_the_same_properties_of_the_same_types_in_the_same_packets() -> None:
    """2.2.2.2"""
    paho = PahoProperties(PacketTypes.PUBLISH)
    ours = {
        each.identifier: (
            {
                id(BYTE): "Byte",
                id(TWO): "Two Byte Integer",
                id(FOUR): "Four Byte Integer",
                id(VARINT): "Variable Byte Integer",
                id(TEXT): "UTF-8 Encoded String",
                id(BINARY): "Binary Data",
                id(PAIR): "UTF-8 String Pair",
            }[id(each.type)],
            {paho_kind(kind) for kind in each.packets},
        )
        for each in PROPERTIES
    }
    theirs = {
        identifier: (paho.types[number], set(kinds))
        for identifier, (number, kinds) in paho.properties.items()
    }
    assert ours == theirs
    assert len(ours) == 27
    names = {name.replace(" ", "").lower(): identifier for name, identifier in paho.names.items()}
    for each in PROPERTIES:
        name = (
            each.name.replace("_", "").replace("properties", "property").replace("identifiers", "identifier")
        )
        assert names[name] == each.identifier


def test_each_field_has_a_property() -> None:
    assert {each.name for each in PROPERTIES} == set(Properties.__slots__)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("known", PROPERTIES, ids=lambda known: known.name)
def test_a_property_is_read_in_its_packets_only(known: Property, kind: int) -> None:
    block = bytes((known.identifier,)) + GOOD[id(known.type)]
    if kind not in known.packets:
        assert refused(kind, block) == R.MALFORMED_PACKET
        return
    found, at = read(kind, block, b"rest")
    assert at == 0
    value = getattr(found, known.name)
    assert value not in (None, ())
    assert found == Properties(**{known.name: value})
    assert write_properties(found, kind) == varint(len(block)) + block
    for cut in range(1, len(block)):
        # It ends within the block, though the packet has more bytes.
        assert refused(kind, block[:-cut], b"rest") == R.MALFORMED_PACKET


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", HAVING, ids=str)
@pytest.mark.parametrize("known", PROPERTIES, ids=lambda known: known.name)
def test_a_second_one_is_a_protocol_error(known: Property, kind: int) -> None:
    if kind not in known.packets:
        return
    one = bytes((known.identifier,)) + GOOD[id(known.type)]
    if known.many and not (known.name == "subscription_identifiers" and kind == PacketType.SUBSCRIBE):
        assert len(getattr(read(kind, one * 3)[0], known.name)) == 3
    else:
        assert refused(kind, one + one) == R.PROTOCOL_ERROR


@pytest.mark.parametrize("known", PROPERTIES, ids=lambda known: known.name)
def test_values_that_are_not_allowed(known: Property) -> None:
    kind = known.packets[0]
    start = bytes((known.identifier,))
    zero, two = known.type.write(0) if known.type in (BYTE, TWO, FOUR, VARINT) else b"", b"\2"
    not_zero = {"subscription_identifiers", "receive_maximum", "maximum_packet_size", "topic_alias"}
    if known.name in not_zero:
        reason = R.TOPIC_ALIAS_INVALID if known.name == "topic_alias" else R.PROTOCOL_ERROR
        assert refused(kind, start + zero) == reason
    elif zero:
        assert getattr(read(kind, start + zero)[0], known.name) == 0
    if known.type == BYTE:
        assert refused(kind, start + two) == R.PROTOCOL_ERROR


def test_what_is_no_property() -> None:
    for identifier in set(range(128)) - {each.identifier for each in PROPERTIES}:
        assert refused(PacketType.PUBLISH, bytes((identifier,)) + bytes(8)) == R.MALFORMED_PACKET
    assert refused(PacketType.PUBLISH, b"\xff\xff\xff\x7f") == R.MALFORMED_PACKET
    # An identifier is a variable byte integer: with more bytes than need be it is refused as such.
    assert refused(PacketType.PUBLISH, b"\x81\x00\x01") == R.MALFORMED_PACKET


@pytest.mark.parametrize("bad", [b"\0\1\xff", b"\0\1\0", b"\0\3\xed\xa0\x80"])
def test_texts_are_utf_8(bad: bytes) -> None:
    """[MQTT-1.5.4-1, 1.5.4-2, 1.5.7-1]"""
    assert refused(PacketType.PUBLISH, b"\x03" + bad) == R.MALFORMED_PACKET
    assert refused(PacketType.PUBLISH, b"\x26\0\1k" + bad) == R.MALFORMED_PACKET
    assert refused(PacketType.PUBLISH, b"\x26" + bad + b"\0\1v") == R.MALFORMED_PACKET


def test_a_block_that_ends_after_the_packet() -> None:
    body = Body("X", b"\x03\x23\0\1", 0, 3)
    with pytest.raises(PacketError, match="the properties end after the packet"):
        read_properties(body, PacketType.PUBLISH)


def test_no_properties_are_one_object() -> None:
    assert read(PacketType.PUBLISH, b"")[0] is NO_PROPERTIES
    assert Properties() == NO_PROPERTIES
    for empty in (NO_PROPERTIES, Properties()):
        assert write_properties(empty, PacketType.PUBLISH) == b"\0"


def test_those_of_other_packets_are_not_written() -> None:
    both = Properties(content_type="x", session_expiry_interval=1)
    assert write_properties(both, PacketType.CONNECT) == b"\x05\x11\0\0\0\1"


def test_the_order_of_user_properties_is_kept() -> None:
    """[MQTT-3.3.2-18]"""
    pairs = (("b", "1"), ("a", "2"), ("b", "1"))
    raw = write_properties(Properties(user_properties=pairs), PacketType.PUBLISH)
    assert read(PacketType.PUBLISH, raw[1:])[0].user_properties == pairs


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", HAVING, ids=str)
@settings(max_examples=sampled(60))
@given(data=st.data())
def test_they_come_back(kind: int, data: st.DataObject) -> None:
    found = data.draw(properties(kind, "server"))
    raw = write_properties(found, kind)
    body = Body("X", raw, 0, len(raw))
    assert read_properties(body, kind) == found
    assert body.at == len(raw)


def paho_value(known: Property, value: Any) -> Any:
    if known.name == "subscription_identifiers":
        return list(value)
    if known.name == "user_properties":
        return list(value)
    return value


@pytest.mark.parametrize("kind", HAVING, ids=str)
@settings(max_examples=sampled(40))
@given(data=st.data())
def test_paho_reads_what_we_write_and_we_what_paho_writes(kind: int, data: st.DataObject) -> None:
    known = data.draw(st.sampled_from(sorted(ALLOWED[kind].values())))
    value = data.draw(values(known))
    if known.name == "maximum_packet_size":
        value = min(value, 268_435_455)  # paho allows no more
    given: dict[str, Any] = {known.name: (value,) if known.many else value}
    value = given[known.name]
    ours = Properties(**given)
    raw = write_properties(ours, kind)
    paho = PahoProperties(paho_kind(kind))
    name = next(name for name, number in paho.names.items() if number == known.identifier)
    setattr(paho, name.replace(" ", ""), paho_value(known, value))
    assert bytes(paho.pack()) == raw
    theirs = PahoProperties(paho_kind(kind))
    theirs.unpack(raw)
    assert getattr(theirs, name.replace(" ", "")) == paho_value(known, value)
    body = Body("X", bytes(paho.pack()), 0, len(raw))
    assert read_properties(body, kind) == ours


@pytest.mark.parametrize("packet", [WILL, PacketType.CONNECT, PacketType.PUBLISH, PacketType.SUBSCRIBE])
def test_there_is_a_limit_for_properties_of_a_kind(packet: int) -> None:
    """They are refused before all of them are read."""

    def block(count: int) -> Body:
        pairs = bytes.fromhex("26 0001 61 0000") * count
        whole = varint(len(pairs)) + pairs
        return Body("PACKET", whole, 0, len(whole))

    assert len(read_properties(block(MOST_REPEATED), packet).user_properties) == MOST_REPEATED == 1000
    with pytest.raises(PacketError) as refused:
        read_properties(block(100_000), packet)
    assert refused.value.reason == R.QUOTA_EXCEEDED
    assert refused.value.text == "PACKET: more than 1,000 user_properties"
