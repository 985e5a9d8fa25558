"""`topics list` and `topics describe`. They change nothing."""

import fnmatch
from typing import Any

import click

from leafcuttr.cli.common.completion import complete_topics
from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import count, json_option, print_json, print_table, printable
from leafcuttr.cli.common.target import Target
from leafcuttr_sdk.types import TopicPartition

_NO_ID = "A" * 22  # sixteen zero bytes in base64
_OF_TOPIC = 1  # the source of a setting that the topic itself has


@click.command("list", short_help="Print the topics.")
@target_options
@json_option
@click.argument("patterns", nargs=-1, shell_complete=complete_topics)
@click.option("--internal", is_flag=True, help="Show the broker's own topics too.")
def list_topics(target: Target, as_json: bool, patterns: tuple[str, ...], internal: bool) -> None:
    """Print the topics and how many partitions each has; only those that match, if patterns are given.

    \b
    Examples:
      leafcuttr topics list
      leafcuttr topics list 'orders-*' --json
      leafcuttr topics list -b kafka.example.org:9092
    """
    found = Admin(target).partitions()
    rows = [
        (name, len(found[name]))
        for name in sorted(found)
        if (internal or not name.startswith("__"))
        and (not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
    ]
    if as_json:
        print_json([{"topic": name, "partitions": number} for name, number in rows])
    else:
        print_table(("TOPIC", "PARTITIONS"), rows)


@click.command(short_help="Print partitions, offsets and overridden settings.")
@target_options
@json_option
@click.argument("topics", nargs=-1, shell_complete=complete_topics)
def describe(target: Target, as_json: bool, topics: tuple[str, ...]) -> None:
    """Print leaders and replicas of partitions, their offsets, and the settings that topics override.

    All topics but the broker's own, if none is named.

    \b
    Examples:
      leafcuttr topics describe orders
      leafcuttr topics describe orders logs --json
    """
    admin = Admin(target)
    known = admin.topics()
    topics = topics or tuple(sorted(name for name in known if not name.startswith("__")))
    for topic in topics:
        if topic not in known:
            raise Failure(f"there is no topic {topic}")
    described = [{"topic": topic, "partitions": _partitions(known[topic])} for topic in topics]
    _add_ids(admin, described)
    _add_offsets(admin, described)
    _add_settings(admin, described)
    if as_json:
        print_json(described)
        return
    for at, about in enumerate(described):
        if at:
            click.echo()
        _print(about)


def _partitions(topic: Any) -> list[dict[str, Any]]:
    return [
        {"partition": number, "leader": about.leader, "replicas": about.replicas, "in_sync": about.isrs}
        for number, about in sorted(topic.partitions.items())
    ]


def _add_ids(admin: Admin, described: list[dict[str, Any]]) -> None:
    """The id of each topic, as Kafka's tools write it; None from a broker before Kafka 2.8 (KIP-516)."""
    from confluent_kafka import TopicCollection

    names = TopicCollection([about["topic"] for about in described])
    found = admin.client.describe_topics(names, **admin.wait) if described else {}
    for about in described:
        text = str(admin.answer(found[about["topic"]]).topic_id)
        about["id"] = None if text == _NO_ID else text


def _add_offsets(admin: Admin, described: list[dict[str, Any]]) -> None:
    """First and next offset of each partition; None where the leader does not say."""
    from confluent_kafka.admin import OffsetSpec

    rows = {
        TopicPartition(about["topic"], row["partition"]): row
        for about in described
        for row in about["partitions"]
    }
    for name, spec in (("first_offset", OffsetSpec.earliest()), ("next_offset", OffsetSpec.latest())):
        for tp, found in admin.try_offsets(dict.fromkeys(rows, spec)).items():
            rows[tp][name] = None if isinstance(found, Failure) else found.offset


def _add_settings(admin: Admin, described: list[dict[str, Any]]) -> None:
    from confluent_kafka.admin import ConfigResource, ResourceType

    resources = [ConfigResource(ResourceType.TOPIC, about["topic"]) for about in described]
    found = admin.client.describe_configs(resources, **admin.wait) if resources else {}
    own = {
        resource.name: {
            name: entry.value
            for name, entry in sorted(admin.answer(future).items())
            if entry.source == _OF_TOPIC
        }
        for resource, future in found.items()
    }
    for about in described:
        about["config"] = own[about["topic"]]


def _print(about: dict[str, Any]) -> None:
    # A setting that a broker does not show has no value.
    settings = [f"{name}={'(hidden)' if value is None else value}" for name, value in about["config"].items()]
    parts = about["partitions"]
    click.echo(
        printable(f"{about['topic']}: " + ", ".join([count(len(parts), "partition"), *settings])),
    )
    print_table(
        ("PARTITION", "LEADER", "REPLICAS", "IN SYNC", "FIRST OFFSET", "NEXT OFFSET"),
        [
            (
                row["partition"],
                row["leader"] if row["leader"] >= 0 else None,
                ",".join(map(str, row["replicas"])),
                ",".join(map(str, row["in_sync"])),
                row["first_offset"],
                row["next_offset"],
            )
            for row in parts
        ],
    )
