"""`leafcuttr groups`: list and describe consumer groups."""

from typing import Any

import click

from leafcuttr.cli.client import (
    TIMEOUT_S,
    admin,
    broker_option,
    fail,
    json_option,
    print_json,
    print_table,
    property_option,
)


@click.group()
def command() -> None:
    """List and describe consumer groups."""


@command.command("list")
@broker_option
@property_option
@json_option
def list_groups(address: str, properties: tuple[str, ...], as_json: bool) -> None:
    """Print every group and its state."""
    from confluent_kafka import KafkaException

    try:
        found = admin(address, properties).list_consumer_groups(request_timeout=TIMEOUT_S).result(TIMEOUT_S)
    except KafkaException as error:
        fail(error, address)
    rows = sorted((group.group_id, group.state.name.lower()) for group in found.valid)
    if as_json:
        print_json([{"group": name, "state": state} for name, state in rows])
    else:
        print_table(("GROUP", "STATE"), rows)


@command.command()
@broker_option
@property_option
@json_option
@click.argument("group")
def describe(address: str, properties: tuple[str, ...], as_json: bool, group: str) -> None:
    """Print a group's members, committed offsets and lag."""
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

    client = admin(address, properties)
    try:
        about = client.describe_consumer_groups([group], request_timeout=TIMEOUT_S)[group].result(TIMEOUT_S)
        asked = [ConsumerGroupTopicPartitions(group)]
        offsets = client.list_consumer_group_offsets(asked)[group].result(TIMEOUT_S).topic_partitions
        ends = _ends(client, offsets)
    except KafkaException as error:
        fail(error, address)
    owners = {
        (part.topic, part.partition): member
        for member in about.members
        for part in (member.assignment.topic_partitions if member.assignment else ())
    }
    rows = [
        {
            "topic": part.topic,
            "partition": part.partition,
            "committed": part.offset,
            "end": ends[part.topic, part.partition],
            "lag": max(ends[part.topic, part.partition] - part.offset, 0),
            "member": owners[part.topic, part.partition].client_id
            if (part.topic, part.partition) in owners
            else None,
        }
        for part in sorted(offsets, key=lambda part: (part.topic, part.partition))
    ]
    if as_json:
        members = [{"member": member.member_id, "client": member.client_id} for member in about.members]
        print_json({"group": group, "state": about.state.name.lower(), "members": members, "offsets": rows})
        return
    click.echo(f"{group}: {about.state.name.lower()}, {len(about.members)} members")
    print_table(
        ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"),
        [["-" if cell is None else cell for cell in row.values()] for row in rows],
    )


def _ends(client: Any, parts: list[Any]) -> dict[tuple[str, int], int]:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    if not parts:
        return {}
    wanted = {TopicPartition(part.topic, part.partition): OffsetSpec.latest() for part in parts}
    found = client.list_offsets(wanted, request_timeout=TIMEOUT_S)
    return {(part.topic, part.partition): future.result(TIMEOUT_S).offset for part, future in found.items()}
