"""Reason codes by packet and sender, beside paho's table of them; the return codes of 3.1.1."""

from __future__ import annotations

import pytest
from paho.mqtt.reasoncodes import ReasonCode as PahoReasonCode

from leafcuttr_mqtt.packets.reasons import OF_CLIENTS, OF_SERVERS, return_code
from leafcuttr_mqtt.packets.types import PacketType, ReasonCode


def paho_codes(kind: PacketType) -> set[int]:
    names = PahoReasonCode(PacketType.CONNACK).names
    return {code for code, by_name in names.items() for packets in by_name.values() if kind in packets}


@pytest.mark.parametrize("kind", sorted({*OF_CLIENTS, *OF_SERVERS}))
def test_paho_knows_the_same_codes(kind: PacketType) -> None:
    ours = set(OF_CLIENTS.get(kind, frozenset())) | set(OF_SERVERS.get(kind, frozenset()))
    if kind == PacketType.CONNACK:
        ours -= {ReasonCode.PAYLOAD_FORMAT_INVALID}  # 3.2.2.2 has it, 2.4 and paho have not.
    assert ours == paho_codes(kind)


def test_who_may_send_what() -> None:
    """The column "sent by" of 3.14.2.1 and 3.15.2.1."""
    disconnect = PacketType.DISCONNECT
    assert OF_CLIENTS[disconnect] - OF_SERVERS[disconnect] == {ReasonCode.DISCONNECT_WITH_WILL}
    assert {hex(code) for code in OF_SERVERS[disconnect] - OF_CLIENTS[disconnect]} == {
        *("0x87", "0x89", "0x8b", "0x8c", "0x8d", "0x8e", "0x8f", "0x9a", "0x9b"),
        *("0x9c", "0x9d", "0x9e", "0x9f", "0xa0", "0xa1", "0xa2"),
    }
    assert OF_CLIENTS[PacketType.AUTH] == {0x18, 0x19}
    assert OF_SERVERS[PacketType.AUTH] == {0x00, 0x18}


def test_return_codes() -> None:
    """3.2.2.3 of 3.1.1"""
    found = {reason: return_code(reason) for reason in ReasonCode}
    assert found[ReasonCode.SUCCESS] == 0
    assert found[ReasonCode.UNSUPPORTED_PROTOCOL_VERSION] == 1
    assert found[ReasonCode.CLIENT_IDENTIFIER_NOT_VALID] == 2
    assert found[ReasonCode.SERVER_UNAVAILABLE] == found[ReasonCode.SERVER_BUSY] == 3
    assert found[ReasonCode.BAD_USER_NAME_OR_PASSWORD] == 4
    assert found[ReasonCode.NOT_AUTHORIZED] == found[ReasonCode.BANNED] == 5
    assert found[ReasonCode.MALFORMED_PACKET] is None
    assert found[ReasonCode.PROTOCOL_ERROR] is None
    assert {code for code in found.values() if code is not None} == set(range(6))
