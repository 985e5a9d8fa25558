"""Payloads that say what format they have, and what a will has to be that depends on the server. What can be seen by a
packet alone has been checked by the reader."""

from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.types import Connect, ReasonCode, Version
from leafcuttr_mqtt.session.limits import Limits


def check_will(connect: Connect, limits: Limits) -> None:
    """Raises PacketError, with the reason for CONNACK. A will with RETAIN loses the flag in 3.1.1 where there are no
    retained messages: the client cannot be told."""
    will = connect.will
    if will is None:
        return
    if will.retain and not limits.retain_available:
        if connect.version >= Version.V5:  # [MQTT-3.2.2-13]
            raise PacketError(
                ReasonCode.RETAIN_NOT_SUPPORTED, "a will with RETAIN, and there are no retained messages"
            )
        will.retain = False
    if will.properties.payload_format_indicator == 1 and not is_utf8(will.payload):  # 3.1.3.2.3
        raise PacketError(
            ReasonCode.PAYLOAD_FORMAT_INVALID, "the payload of the will is said to be UTF-8 and is not"
        )


def is_utf8(payload: bytes) -> bool:
    try:
        str(payload, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
