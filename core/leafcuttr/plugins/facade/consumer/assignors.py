"""The assignors `range` and `roundrobin`: which member of a group reads which partition. Pure.

Members come in Java's order: those with an instance id first, by it, then the others by member id. So a static member
that comes back with another id gets what it had (KIP-345).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from leafcuttr_sdk import TopicPartition


class Wants(NamedTuple):
    """One member's part in an assignment."""

    member_id: str
    instance_id: str | None
    topics: frozenset[str]


Assignor: TypeAlias = Callable[[Mapping[str, int], Sequence[Wants]], dict[str, list[TopicPartition]]]
"""Partition counts of topics and members to the assignment of each member, by member id, empty ones too."""


def assign_range(counts: Mapping[str, int], members: Sequence[Wants]) -> dict[str, list[TopicPartition]]:
    """Topic by topic: a range of consecutive partitions for each member that wants it, the first ones' longer by one
    where they do not divide evenly."""
    assignments: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for topic, wanting in sorted(_by_topic(counts, members).items()):
        size, longer = divmod(counts[topic], len(wanting))
        start = 0
        for number, member in enumerate(wanting):
            end = start + size + (number < longer)
            assignments[member.member_id] += [TopicPartition(topic, each) for each in range(start, end)]
            start = end
    return assignments


def assign_roundrobin(counts: Mapping[str, int], members: Sequence[Wants]) -> dict[str, list[TopicPartition]]:
    """Partition by partition of all topics: each to the next member in the circle that wants its topic."""
    assignments: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    circle = sorted(members, key=_order)
    at = 0
    for topic in sorted(_by_topic(counts, members)):
        for partition in range(counts[topic]):
            while topic not in circle[at % len(circle)].topics:
                at += 1
            assignments[circle[at % len(circle)].member_id].append(TopicPartition(topic, partition))
            at += 1
    return assignments


ASSIGNORS: Final[Mapping[str, Assignor]] = {"range": assign_range, "roundrobin": assign_roundrobin}
"""By the name that members agree on, the one we like best first."""


def _order(member: Wants) -> tuple[bool, str, str]:
    return member.instance_id is None, member.instance_id or "", member.member_id


def _by_topic(counts: Mapping[str, int], members: Sequence[Wants]) -> dict[str, list[Wants]]:
    """The topics that exist, and the members that want each, in order."""
    found: dict[str, list[Wants]] = {}
    for member in sorted(members, key=_order):
        for topic in member.topics:
            if counts.get(topic):
                found.setdefault(topic, []).append(member)
    return found
