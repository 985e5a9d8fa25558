"""What is said to the other side before a connection is closed for a `PacketError`."""

from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.reasons import OF_SERVERS, return_code
from leafcuttr_mqtt.packets.types import ConnAck, Disconnect, PacketType, Properties, ReasonCode, Version
from leafcuttr_mqtt.packets.writer import encode


def refusal(
    error: PacketError, version: Version | None, *, connected: bool, largest: int | None = None
) -> bytes:
    """The bytes of CONNACK, or of DISCONNECT once CONNECT was accepted (5.0: 4.13.1); empty where the version has no
    word for it, and before a client has said its version.

    `version` is that of the reader; `largest` the client's maximum packet size: the reason string is left out where it
    would not fit [MQTT-3.2.2-19, 3.14.2-3].
    """
    if version is None:
        return b""
    if version != Version.V5:
        code = None if connected else return_code(error.reason)
        return b"" if code is None else encode(ConnAck(False, code), version)
    for properties in (Properties(reason_string=error.text), Properties()):
        packet: ConnAck | Disconnect
        if connected:
            packet = Disconnect(_known(error.reason, PacketType.DISCONNECT), properties)
        else:
            packet = ConnAck(False, _known(error.reason, PacketType.CONNACK), properties)
        data = encode(packet, version)
        if largest is None or len(data) <= largest:
            return data
    return b""


def _known(reason: ReasonCode, kind: PacketType) -> ReasonCode:
    return reason if reason in OF_SERVERS[kind] else ReasonCode.UNSPECIFIED_ERROR
