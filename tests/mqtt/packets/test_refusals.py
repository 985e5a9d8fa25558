"""The bytes that a connection is closed with."""

from __future__ import annotations

import pytest

from leafcuttr_mqtt.packets.errors import PacketError, malformed, protocol_error
from leafcuttr_mqtt.packets.reader import PacketReader
from leafcuttr_mqtt.packets.refusals import refusal
from leafcuttr_mqtt.packets.types import ReasonCode, Version

R = ReasonCode
V31, V311, V5 = Version


def answer(data: bytes) -> bytes:
    reader = PacketReader(1000)
    reader.feed(data)
    assert reader.error is not None
    return refusal(reader.error, reader.version, connected=False)


@pytest.mark.parametrize(
    ("level", "expected"),
    [(3, "20 02 00 01"), (0, "20 02 00 01"), (0x85, "20 02 00 01"), (6, None), (7, None)],
)
def test_a_version_that_is_not_supported(level: int, expected: str | None) -> None:
    """[MQTT-3.1.2-2] of both: return code 1, or reason code 0x84 where the client knows properties."""
    got = answer(b"\x10\x0c\0\4MQTT" + bytes((level,)) + b"\2\0\0\0\0")
    if expected is not None:
        assert got == bytes.fromhex(expected)
    else:
        assert got[:1] + got[2:4] == b"\x20\x00\x84"
        (packet,) = PacketReader.of_server(1000, V5).feed(got)
        assert "level" in str(packet)


def test_before_a_version_is_known_nothing_is_said() -> None:
    assert answer(b"\x30\x03\0\1t") == b""
    assert answer(b"\x10\x02\0\4") == b""


@pytest.mark.parametrize("version", [V31, V311])
def test_3_1_1_has_return_codes_and_no_disconnect(version: Version) -> None:
    """[MQTT-3.1.4-1] of 3.1.1: one that does not conform is closed without a CONNACK."""
    rejected = PacketError(R.CLIENT_IDENTIFIER_NOT_VALID, "x")
    assert refusal(rejected, version, connected=False) == bytes.fromhex("20 02 00 02")
    assert refusal(malformed("x"), version, connected=False) == b""
    assert refusal(protocol_error("x"), version, connected=True) == b""
    assert refusal(rejected, version, connected=True) == b""


def test_5_has_both_with_the_reason() -> None:
    assert refusal(malformed("no"), V5, connected=False) == bytes.fromhex("20 08 00 81 05 1f 0002 6e6f")
    assert refusal(protocol_error("no"), V5, connected=True) == bytes.fromhex("e0 07 82 05 1f 0002 6e6f")


def test_the_reason_is_left_out_where_it_would_not_fit() -> None:
    """[MQTT-3.2.2-19, 3.14.2-3]"""
    error = malformed("no")
    assert len(refusal(error, V5, connected=True, largest=9)) == 9
    assert refusal(error, V5, connected=True, largest=8) == bytes.fromhex("e0 01 81")
    assert refusal(error, V5, connected=False, largest=9) == bytes.fromhex("20 03 00 81 00")
    assert refusal(error, V5, connected=False, largest=4) == b""
    assert refusal(error, V5, connected=True, largest=2) == b""


def test_a_reason_that_the_packet_does_not_have() -> None:
    """[MQTT-3.2.2-8, 3.14.2-1]"""
    alias = PacketError(R.TOPIC_ALIAS_INVALID, "")
    assert refusal(alias, V5, connected=True, largest=3) == bytes.fromhex("e0 01 94")
    assert refusal(alias, V5, connected=False, largest=5) == bytes.fromhex("20 03 00 80 00")
    client = PacketError(R.CLIENT_IDENTIFIER_NOT_VALID, "")
    assert refusal(client, V5, connected=True, largest=3) == bytes.fromhex("e0 01 80")
