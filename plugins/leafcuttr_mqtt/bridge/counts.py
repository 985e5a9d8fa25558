"""What is counted of a bridge: messages that went over it, and those that could not, by reason."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class NotOver(Enum):
    """Why a message does not go over a bridge. The values are for metrics; what its session at this broker gives up has
    those of `session.types.DropReason`."""

    NO_RULE = "no-rule"
    """No rule has a name for its topic on the other side."""
    TOO_LARGE = "too-large"
    """Its packet is larger than the receiver accepts."""
    REFUSED = "refused"
    """The receiver has said so."""


class Counts(NamedTuple):
    """Since the service started."""

    sent: int
    received: int
    drops: Mapping[str, int]
    """By reason, in either direction."""
