"""What the wire package raises.

A peer's bytes are at fault for `MalformedMessage` and `UnsupportedVersion`; our own code is for
`EncodeError`. Errors that are sent to the peer as Kafka error codes are in `leafcuttr.errors`.
"""


class WireError(ValueError):
    """Bytes and declaration do not agree. The text names the class, the field and the position."""


class MalformedMessage(WireError):
    """The bytes are not what the declaration says: too short, too long, a null where none may be, bad
    UTF-8."""


class MalformedRecord(MalformedMessage):
    """A record, or the sequence of records of a batch, that does not follow the format."""


class EndlessNumber(MalformedRecord):
    """The length of a record goes on for more than five bytes. Kafka has another error code for it."""


class ManyElements(WireError):
    """The message has more array elements than the caller wanted to go through at once; nothing is wrong with it."""


class UnsupportedVersion(WireError):
    """The message has no such version."""


class EncodeError(WireError):
    """A message that we built cannot be written: a value out of range, or null where the version has no
    null."""
