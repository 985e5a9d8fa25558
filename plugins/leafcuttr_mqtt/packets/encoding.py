"""The data types of 1.5 as bytes: what the writers of packets and properties share."""

from typing import Final

from leafcuttr_mqtt.packets.fields import MAX_TEXT, MAX_VARINT

ONE_BYTE: Final = tuple(number.to_bytes(1, "big") for number in range(128))
"""Variable byte integers up to 127."""


def varint(value: int) -> bytes:
    """1.5.5, in as few bytes as it takes [MQTT-1.5.5-1]."""
    if value < 128:
        return ONE_BYTE[value]
    if value > MAX_VARINT:
        raise ValueError(f"{value} is more than {MAX_VARINT}")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def binary(value: bytes) -> bytes:
    """1.5.6."""
    if len(value) > MAX_TEXT:
        raise ValueError(f"{len(value)} bytes are more than {MAX_TEXT}")
    return len(value).to_bytes(2, "big") + value


def text(value: str) -> bytes:
    """1.5.4."""
    return binary(value.encode())
