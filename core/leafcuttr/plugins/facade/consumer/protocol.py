"""The consumer protocol: subscriptions and assignments as the bytes that Kafka's clients exchange. No group here.

What is written is version 0, which every client reads: an eager member has nothing to say in the later ones. What is
read comes from other clients and is believed as far as it makes sense.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, TypeVar

from leafcuttr.wire.codec import encode, reader
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.messages.internal.consumer_protocol import (
    AssignedPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from leafcuttr_sdk import TopicPartition

PROTOCOL_TYPE: Final = "consumer"

_VERSION: Final = Struct(">h")
_NEWEST: Final = 3

_T = TypeVar("_T")


def subscription(topics: Iterable[str]) -> bytes:
    """The metadata of a member that wants these topics."""
    message = ConsumerProtocolSubscription(topics=sorted(topics), owned_partitions=())
    return _VERSION.pack(0) + encode(message, 0)


def assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """The assignment of one member."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedPartitions(topic=topic, partitions=sorted(numbers))
            for topic, numbers in sorted(by_topic.items())
        ]
    )
    return _VERSION.pack(0) + encode(message, 0)


def read_subscription(data: bytes) -> frozenset[str]:
    """The topics that a member wants. Raises MalformedMessage."""
    return frozenset(_read(ConsumerProtocolSubscription, data).topics)


def read_assignment(data: bytes) -> Sequence[TopicPartition]:
    """The partitions of a member's assignment, each once. No bytes are an empty assignment: that of a member which the
    leader left out. Raises MalformedMessage."""
    if not data:
        return ()
    return list(
        dict.fromkeys(
            TopicPartition(each.topic, partition)
            for each in _read(ConsumerProtocolAssignment, data).assigned_partitions
            for partition in each.partitions
        )
    )


def _read(cls: type[_T], data: bytes) -> _T:
    if len(data) < _VERSION.size:
        raise MalformedMessage("There is no version.")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise MalformedMessage(f"There is no version {version}.")
    return reader(cls, min(version, _NEWEST))(data, _VERSION.size, len(data))[0]
