"""`leafcuttr groups`: list and describe consumer groups. Exit status: 0 done, 1 refused or no broker, 2 wrong usage."""

import contextlib
from typing import Any

import click

from leafcuttr.cli.client import (
    TIMEOUT_S,
    admin,
    broker_option,
    count,
    fail,
    json_option,
    print_json,
    print_table,
    property_option,
)


@click.group()
def command() -> None:
    """List and describe consumer groups.

    Exit status: 0 done, 1 no such group, refused, or no broker answers, 2 wrong usage.
    """


@command.command("list")
@broker_option
@property_option
@json_option
def list_groups(address: str, properties: tuple[str, ...], as_json: bool) -> None:
    """Print every group and its state.

    \b
    Examples:
      leafcuttr groups list --json
    """
    from confluent_kafka import KafkaException

    # Held by a name: a client that is collected takes its unanswered requests with it.
    client = admin(address, properties)
    try:
        found = client.list_consumer_groups(request_timeout=TIMEOUT_S).result(TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
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
    """Print a group's members, committed offsets and lag.

    \b
    Examples:
      leafcuttr groups describe billing
    """
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

    client = admin(address, properties)
    try:
        about = client.describe_consumer_groups([group], request_timeout=TIMEOUT_S)[group].result(TIMEOUT_S)
        asked = [ConsumerGroupTopicPartitions(group)]
        offsets = client.list_consumer_group_offsets(asked)[group].result(TIMEOUT_S).topic_partitions
    except (KafkaException, TimeoutError) as error:
        fail(error, address)
    state = about.state.name.lower()
    if state == "dead":
        fail(f"there is no group {group}", address)
    committed = {(part.topic, part.partition): part.offset for part in offsets}
    owners = {
        (part.topic, part.partition): member.client_id
        for member in about.members
        for part in (member.assignment.topic_partitions if member.assignment else ())
    }
    places = sorted({*committed, *owners})
    ends = _ends(client, places)
    rows = [_row(place, committed.get(place), ends.get(place), owners.get(place)) for place in places]
    if as_json:
        members = [
            {"member": member.member_id, "client": member.client_id, "host": member.host}
            for member in about.members
        ]
        print_json({"group": group, "state": state, "members": members, "offsets": rows})
        return
    click.echo(f"{group}: {state}, {count(len(about.members), 'member')}")
    print_table(
        ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER"),
        [["-" if cell is None else cell for cell in row.values()] for row in rows],
    )


def _row(
    place: tuple[str, int], committed: int | None, end: int | None, member: str | None
) -> dict[str, Any]:
    topic, partition = place
    lag = None if committed is None or end is None else max(end - committed, 0)
    return {
        "topic": topic,
        "partition": partition,
        "committed": committed,
        "end": end,
        "lag": lag,
        "member": member,
    }


def _ends(client: Any, places: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """The end of each partition that still exists."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    if not places:
        return {}
    wanted = {TopicPartition(topic, partition): OffsetSpec.latest() for topic, partition in places}
    ends = {}
    for part, future in client.list_offsets(wanted, request_timeout=TIMEOUT_S).items():
        with contextlib.suppress(KafkaException, TimeoutError):
            ends[part.topic, part.partition] = future.result(TIMEOUT_S).offset
    return ends
