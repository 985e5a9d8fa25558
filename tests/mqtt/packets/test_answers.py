"""What only servers send, by bytes written out by hand."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.types import (
    Auth,
    ConnAck,
    Disconnect,
    Packet,
    PingResp,
    Properties,
    ReasonCode,
    SubAck,
    UnsubAck,
    Version,
)

R = ReasonCode
V31, V311, V5 = Version


def framed(first: int, body: str) -> bytes:
    raw = bytes.fromhex(body)
    return bytes((first, len(raw))) + raw


def read(version: Version, first: int, body: str) -> Packet:
    reader = PacketReader.of_server(1000, version)
    (packet,) = reader.feed(framed(first, body))
    return packet


def refused(version: Version, first: int, body: str) -> ReasonCode:
    reader = PacketReader.of_server(1000, version)
    assert reader.feed(framed(first, body)) == []
    assert reader.error is not None
    return reader.error.reason


def test_connack() -> None:
    assert read(V311, 0x20, "00 00") == ConnAck(False, 0)
    assert read(V311, 0x20, "01 00") == ConnAck(True, 0)
    assert read(V311, 0x20, "00 05") == ConnAck(False, 5)
    assert read(V31, 0x20, "ff 00") == ConnAck(False, 0)
    assert read(V5, 0x20, "01 00 00") == ConnAck(True, 0)
    assert read(V5, 0x20, "00 87 04 1f 0001 78") == ConnAck(False, 0x87, Properties(reason_string="x"))


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [
        (V311, "00", R.MALFORMED_PACKET),
        (V311, "00 00 00", R.MALFORMED_PACKET),
        (V311, "02 00", R.MALFORMED_PACKET),  # [MQTT-3.2.2-1]
        (V311, "00 06", R.MALFORMED_PACKET),
        (V311, "01 05", R.PROTOCOL_ERROR),
        (V5, "80 00 00", R.MALFORMED_PACKET),
        (V5, "01 87 00", R.PROTOCOL_ERROR),  # [MQTT-3.2.2-6]
        (V5, "00 00", R.MALFORMED_PACKET),
        (V5, "00 01 00", R.PROTOCOL_ERROR),
        (V5, "00 00 00 00", R.MALFORMED_PACKET),
        (V5, "00 00 02 24 02", R.PROTOCOL_ERROR),  # maximum QoS 2
        (V5, "00 00 03 21 0000", R.PROTOCOL_ERROR),
        (V5, "00 00 05 27 00000000", R.PROTOCOL_ERROR),
    ],
)
def test_connacks_that_are_refused(version: Version, body: str, reason: ReasonCode) -> None:
    assert refused(version, 0x20, body) == reason


def test_suback() -> None:
    assert read(V311, 0x90, "0007 00 01 02 80") == SubAck(7, (0, 1, 2, 0x80))
    assert read(V5, 0x90, "0007 00 02 8f") == SubAck(7, (2, 0x8F))
    assert refused(V311, 0x90, "0007 03") == R.MALFORMED_PACKET
    assert refused(V5, 0x90, "0007 00 03") == R.PROTOCOL_ERROR
    assert refused(V311, 0x90, "0007") == R.PROTOCOL_ERROR
    assert refused(V5, 0x90, "0007 00") == R.PROTOCOL_ERROR
    assert refused(V5, 0x90, "0000 00 00") == R.PROTOCOL_ERROR


def test_unsuback() -> None:
    assert read(V311, 0xB0, "0007") == UnsubAck(7)
    assert read(V5, 0xB0, "0007 00 00 11") == UnsubAck(7, (0, 0x11))
    assert refused(V311, 0xB0, "0007 00") == R.MALFORMED_PACKET
    assert refused(V5, 0xB0, "0007 00") == R.PROTOCOL_ERROR
    assert refused(V5, 0xB0, "0007 00 02") == R.PROTOCOL_ERROR


def test_pingresp() -> None:
    assert read(V311, 0xD0, "") == PingResp()
    assert refused(V5, 0xD0, "00") == R.MALFORMED_PACKET


def test_disconnect_of_a_server() -> None:
    assert read(V5, 0xE0, "8e") == Disconnect(0x8E)
    assert read(V5, 0xE0, "9c 04 1c 0001 68") == Disconnect(0x9C, Properties(server_reference="h"))
    assert refused(V5, 0xE0, "04") == R.PROTOCOL_ERROR  # a client's reason
    assert refused(V5, 0xE0, "00 05 11 00000001") == R.PROTOCOL_ERROR  # [MQTT-3.14.2-2]


def test_auth_of_a_server() -> None:
    assert read(V5, 0xF0, "") == Auth()
    assert read(V5, 0xF0, "00 04 15 0001 6d") == Auth(0, Properties(authentication_method="m"))
    assert read(V5, 0xF0, "18 04 15 0001 6d") == Auth(0x18, Properties(authentication_method="m"))
    assert refused(V5, 0xF0, "19 04 15 0001 6d") == R.PROTOCOL_ERROR
