"""What is wrong with bytes that are no packet, or with a packet that may not come now."""

from leafcuttr_mqtt.packets.types import ReasonCode


class PacketError(Exception):
    """The other side is at fault, and the connection ends. `reason` is for its DISCONNECT or CONNACK; the text is one
    clause for the log and the reason string."""

    def __init__(self, reason: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


def malformed(text: str) -> PacketError:
    """Bytes that cannot be parsed as the specification has them (5.0, 1.2: Malformed Packet)."""
    return PacketError(ReasonCode.MALFORMED_PACKET, text)


def protocol_error(text: str) -> PacketError:
    """What can be parsed and is not allowed (5.0, 1.2: Protocol Error)."""
    return PacketError(ReasonCode.PROTOCOL_ERROR, text)
