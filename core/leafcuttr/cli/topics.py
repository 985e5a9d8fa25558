"""`leafcuttr topics`: list, create, describe, delete. Exit status: 0 done, 1 refused or no broker, 2 wrong usage."""

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
    wait_all,
)


@click.group()
def command() -> None:
    """List, create, describe and delete topics.

    Exit status: 0 done, 1 the broker refused or cannot be reached, 2 wrong usage.
    """


@command.command("list")
@broker_option
@property_option
@json_option
@click.option("--internal", is_flag=True, help="Show the broker's own topics too.")
def list_topics(address: str, properties: tuple[str, ...], as_json: bool, internal: bool) -> None:
    """Print the topics and how many partitions each has.

    \b
    Examples:
      leafcuttr topics list
      leafcuttr topics list --json -b kafka.example.org:9092
    """
    found = admin(address, properties).list_topics(timeout=TIMEOUT_S).topics
    rows = [
        (name, len(found[name].partitions)) for name in sorted(found) if internal or not name.startswith("__")
    ]
    if as_json:
        print_json([{"topic": name, "partitions": count} for name, count in rows])
    else:
        print_table(("TOPIC", "PARTITIONS"), rows)


@command.command()
@broker_option
@property_option
@click.argument("topics", nargs=-1, required=True)
@click.option(
    "--partitions", "-p", default=-1, type=int, help="How many; the broker's num.partitions if left out."
)
@click.option(
    "--config", "-c", "configs", multiple=True, metavar="KEY=VALUE", help="A topic setting; may be repeated."
)
@click.option("--if-not-exists", is_flag=True, help="An existing topic is no error.")
def create(
    address: str,
    properties: tuple[str, ...],
    topics: tuple[str, ...],
    partitions: int,
    configs: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create one or more topics.

    \b
    Examples:
      leafcuttr topics create orders -p 6
      leafcuttr topics create logs -c retention.ms=3600000 -c compression.type=zstd
    """
    from confluent_kafka.admin import NewTopic

    config = {}
    for item in configs:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--config {item}: expected KEY=VALUE")
        config[name] = value
    client = admin(address, properties)
    if if_not_exists:
        existing = client.list_topics(timeout=TIMEOUT_S).topics
        topics = tuple(topic for topic in topics if topic not in existing)
    if topics:
        new = [NewTopic(topic, partitions, -1, config=config) for topic in topics]
        wait_all(
            client.create_topics(new, request_timeout=TIMEOUT_S), address, lambda name: f"created {name}"
        )


@command.command()
@broker_option
@property_option
@json_option
@click.argument("topics", nargs=-1, required=True)
def describe(address: str, properties: tuple[str, ...], as_json: bool, topics: tuple[str, ...]) -> None:
    """Print the partitions of topics, their offsets, and the settings that differ from the broker's.

    \b
    Examples:
      leafcuttr topics describe orders
      leafcuttr topics describe orders logs --json
    """
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import ConfigResource, OffsetSpec, ResourceType

    client = admin(address, properties)
    known = client.list_topics(timeout=TIMEOUT_S).topics
    for topic in topics:
        if topic not in known or known[topic].error is not None:
            fail(f"there is no topic {topic}", address)
    parts = [TopicPartition(topic, number) for topic in topics for number in known[topic].partitions]
    try:
        first = {p: f.result(TIMEOUT_S).offset for p, f in _offsets(client, parts, OffsetSpec.earliest())}
        last = {p: f.result(TIMEOUT_S).offset for p, f in _offsets(client, parts, OffsetSpec.latest())}
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        described = {
            resource.name: {
                name: entry.value for name, entry in future.result(TIMEOUT_S).items() if entry.source == 1
            }
            for resource, future in client.describe_configs(resources).items()
        }
    except (KafkaException, TimeoutError) as error:
        fail(error, address)
    if as_json:
        print_json(
            [
                {
                    "topic": topic,
                    "config": described[topic],
                    "partitions": [
                        {
                            "partition": number,
                            "first_offset": first[topic, number],
                            "next_offset": last[topic, number],
                        }
                        for number in sorted(known[topic].partitions)
                    ],
                }
                for topic in topics
            ]
        )
        return
    for topic in topics:
        settings = ", ".join(f"{name}={value}" for name, value in sorted(described[topic].items()))
        click.echo(
            f"{topic}: {count(len(known[topic].partitions), 'partition')}"
            + (f", {settings}" if settings else "")
        )
        print_table(
            ("PARTITION", "FIRST OFFSET", "NEXT OFFSET"),
            [(n, first[topic, n], last[topic, n]) for n in sorted(known[topic].partitions)],
        )


def _offsets(client: Any, parts: list[Any], spec: Any) -> list[tuple[tuple[str, int], Any]]:
    found = client.list_offsets(dict.fromkeys(parts, spec), request_timeout=TIMEOUT_S)
    return [((part.topic, part.partition), future) for part, future in found.items()]


@command.command()
@broker_option
@property_option
@click.argument("topics", nargs=-1, required=True)
def delete(address: str, properties: tuple[str, ...], topics: tuple[str, ...]) -> None:
    """Delete topics with all their records.

    \b
    Examples:
      leafcuttr topics delete orders logs
    """
    client = admin(address, properties)
    wait_all(
        client.delete_topics(list(topics), request_timeout=TIMEOUT_S), address, lambda name: f"deleted {name}"
    )
