"""The data types of 1.5, read from the body of one packet. No packets, and no properties."""

from typing import Final

from leafcuttr_mqtt.packets.errors import malformed, protocol_error

MAX_VARINT: Final = 268_435_455
MAX_TEXT: Final = 65_535
MOST_REPEATED: Final = 1000
"""How many user properties a packet of a client may have: all of them are taken in one step, by all that has to do with
the packet. They take five bytes each, so a packet that is not too large might have two hundred thousand, which hold the
loop for half a second."""


class Body:
    """What follows the fixed header of one packet: its fields are taken one after the other. All methods raise
    `PacketError` where the packet ends too early, and nothing is allocated for what is not there."""

    __slots__ = ("at", "data", "end", "most_repeated", "name")

    def __init__(self, name: str, data: bytes, at: int, end: int, most_repeated: int = MOST_REPEATED) -> None:
        self.name = name
        """Of the packet, for errors."""
        self.data = data
        self.at = at
        self.end = end
        self.most_repeated = most_repeated
        """How often a property may be there, of those that may be there several times."""

    def left(self) -> int:
        return self.end - self.at

    def byte(self, what: str) -> int:
        at = self.at
        if at >= self.end:
            raise self.short(what)
        self.at = at + 1
        return self.data[at]

    def two(self, what: str) -> int:
        at = self.at
        if at + 2 > self.end:
            raise self.short(what)
        self.at = at + 2
        return self.data[at] << 8 | self.data[at + 1]

    def four(self, what: str) -> int:
        at = self.at
        if at + 4 > self.end:
            raise self.short(what)
        self.at = at + 4
        return int.from_bytes(self.data[at : at + 4], "big")

    def varint(self, what: str) -> int:
        """1.5.5, in as few bytes as it takes [MQTT-1.5.5-1]."""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte(what)
            value |= (byte & 127) << shift
            if byte < 128:
                if shift and not byte:
                    raise malformed(f"{self.name}: {what} has more bytes than need be")
                return value
        raise malformed(f"{self.name}: {what} has more than four bytes")

    def binary(self, what: str) -> bytes:
        """1.5.6."""
        size = self.two(what)
        at = self.at
        if at + size > self.end:
            raise self.short(what)
        self.at = at + size
        return self.data[at : at + size]

    def text(self, what: str) -> str:
        """1.5.4."""
        return decoded(self.binary(what), f"{self.name}: {what}")

    def rest(self) -> bytes:
        at, self.at = self.at, self.end
        return self.data[at : self.end]

    def packet_id(self) -> int:
        """[MQTT-2.2.1-3, 2.2.1-4]: never 0."""
        packet_id = self.two("packet identifier")
        if not packet_id:
            raise protocol_error(f"{self.name}: packet identifier 0")
        return packet_id

    def done(self) -> None:
        """Every byte of a packet has a meaning."""
        if self.at != self.end:
            raise malformed(f"{self.name}: {self.end - self.at} bytes too many")

    def short(self, what: str) -> Exception:
        return malformed(f"{self.name}: ends in {what}")


def decoded(raw: bytes, what: str) -> str:
    """The text of well-formed UTF-8 without U+0000 [MQTT-1.5.4-1, 1.5.4-2]. Python's codec refuses surrogates, and
    keeps U+FEFF [MQTT-1.5.4-3]."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise malformed(f"{what} is no UTF-8") from None
    if "\0" in text:
        raise malformed(f"{what} contains U+0000")
    return text
