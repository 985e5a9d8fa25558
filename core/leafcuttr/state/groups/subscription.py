"""The topics that the members of a consumer group subscribe to: the one thing the broker reads in their
metadata.

It needs them to tell whose offsets are in use (OffsetDelete, expiry). A group that is no consumer group, or
whose metadata is not Kafka's ConsumerProtocolSubscription, has no known topics.
"""

import struct
from typing import Final

from leafcuttr.state.groups.machine import Group

CONSUMER: Final = "consumer"
_HEAD: Final = struct.Struct(">hi")  # version, number of topics; the same in all versions
_LENGTH: Final = struct.Struct(">h")


def topics_of(metadata: bytes) -> frozenset[str] | None:
    """The topics of one member's subscription, or None if the bytes are something else."""
    try:
        version, count = _HEAD.unpack_from(metadata)
        at = _HEAD.size
        if version < 0 or not 0 <= count <= (len(metadata) - at) // _LENGTH.size:
            return None
        topics = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, at)
            at += _LENGTH.size + length
            if length < 0 or at > len(metadata):
                return None
            topics.append(metadata[at - length : at].decode())
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(topics)


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """What the whole group subscribes to; None if that cannot be known."""
    if group.protocol_type != CONSUMER or (group.members and group.protocol_name is None):
        return None
    found: set[str] = set()
    for member in group.members:
        topics = topics_of(member.metadata(group.protocol_name))
        if topics is None:
            return None
        found |= topics
    return frozenset(found)
