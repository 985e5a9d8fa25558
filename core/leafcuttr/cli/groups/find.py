"""The groups, their states and how far they have read, as plain values."""

from collections.abc import Iterable, Sequence
from typing import Any

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.output import progress
from leafcuttr_sdk.types import TopicPartition

DEAD = "dead"
INACTIVE = ("empty", DEAD)
"""States in which no member commits: offsets may be changed."""


def word(member: Any) -> str:
    """A member of an enumeration of librdkafka as text: `preparing rebalancing`."""
    return str(member.name).lower().replace("_", " ")


def all_groups(admin: Admin) -> dict[str, Any]:
    """Every group by name with `state` and `type`. Raises Failure if a broker does not say."""
    answer = admin.answer(admin.client.list_consumer_groups(**admin.wait))
    if answer.errors:
        raise Failure(f"a broker does not list its groups: {answer.errors[0].args[0].str()}")
    return {group.group_id: group for group in sorted(answer.valid, key=lambda group: str(group.group_id))}


def committed(admin: Admin, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """The committed offsets of each group. Raises Failure."""
    found = {}
    with progress("offsets of groups", len(groups)) as advance:
        for group in groups:
            found[group] = admin.committed(group)
            advance(1)
    return found


def ends(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of each partition that still exists and whose leader answers."""
    from confluent_kafka.admin import OffsetSpec

    found = admin.try_offsets(dict.fromkeys(partitions, OffsetSpec.latest()))
    return {tp: result.offset for tp, result in found.items() if not isinstance(result, Failure)}


def describe(admin: Admin, names: Sequence[str]) -> list[dict[str, Any]]:
    """Each group with its members and offsets; one that does not exist has the state `dead`. Raises Failure."""
    about = admin.groups(names)
    offsets = committed(admin, [name for name in names if word(about[name].state) != DEAD])
    members = {name: _members(about[name]) for name in names}
    partitions = {tp for of in offsets.values() for tp in of}
    partitions.update(
        TopicPartition(*part) for of in members.values() for each in of for part in each["partitions"]
    )
    end = ends(admin, sorted(partitions))
    return [_group(name, about[name], members[name], offsets.get(name, {}), end) for name in names]


def _members(about: Any) -> list[dict[str, Any]]:
    return [
        {
            "member": member.member_id,
            "client": member.client_id,
            "host": member.host.removeprefix("/"),
            "instance": member.group_instance_id,
            "partitions": sorted(
                [part.topic, part.partition]
                for part in (member.assignment.topic_partitions if member.assignment else ())
            ),
        }
        for member in about.members
    ]


def _group(
    name: str,
    about: Any,
    members: list[dict[str, Any]],
    offsets: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
) -> dict[str, Any]:
    owners = {TopicPartition(*part): member for member in members for part in member["partitions"]}
    rows = [_row(tp, offsets.get(tp), ends.get(tp), owners.get(tp)) for tp in sorted({*offsets, *owners})]
    node = about.coordinator
    return {
        "group": name,
        "state": word(about.state),
        "type": word(about.type),
        "assignor": about.partition_assignor or None,
        "coordinator": {"id": node.id, "host": node.host, "port": node.port} if node else None,
        "lag": sum(row["lag"] or 0 for row in rows),
        "members": members,
        "offsets": rows,
    }


def _row(
    tp: TopicPartition, offset: int | None, end: int | None, member: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "committed": offset,
        "end": end,
        "lag": None if offset is None or end is None else max(end - offset, 0),
        "member": member and member["member"],
        "client": member and member["client"],
        "host": member and member["host"],
    }
