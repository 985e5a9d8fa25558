"""`leafcuttr consume`: print the records of a topic.

Exit status: 0 at the end of the topic, after `--max` or Ctrl-C, 1 no such topic or no broker, 2 wrong usage.
"""

import base64
import sys
from typing import Any, Final

import click

from leafcuttr.cli.client import (
    broker_option,
    client,
    client_settings,
    fail,
    print_json,
    property_option,
    topics,
)

_BATCH: Final = 500


@click.command()
@broker_option
@property_option
@click.argument("topic")
@click.option("--from", "start", default="earliest", show_default=True, metavar="earliest|latest|OFFSET")
@click.option("--group", "-g", help="Read as a member of this group and commit; goes on where the group is.")
@click.option("--partition", "-p", type=click.IntRange(0), help="Read only this partition.")
@click.option("--max", "-n", "most", type=click.IntRange(1), help="Stop after this many records.")
@click.option("--follow", "-f", is_flag=True, help="Wait for more at the end; Ctrl-C ends it.")
@click.option("--keys", "-k", is_flag=True, help="Print the key before the value, with a tab between.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a record; bytes that are no text in base64."
)
def command(
    address: str,
    properties: tuple[str, ...],
    topic: str,
    start: str,
    group: str | None,
    partition: int | None,
    most: int | None,
    follow: bool,
    keys: bool,
    as_json: bool,
) -> None:
    """Print records, one a line, to the end of the topic.

    \b
    Examples:
      leafcuttr consume greetings
      leafcuttr consume events --follow --json
      leafcuttr consume events -g billing -n 100

    Exit status: 0 at the end, after --max or Ctrl-C, 1 no such topic or no broker answers, 2 wrong usage.
    """
    from confluent_kafka import Consumer, KafkaError, KafkaException

    if start not in ("earliest", "latest") and not start.isdigit():
        raise click.UsageError("--from: expected earliest, latest or an offset")
    settings = client_settings(
        address,
        properties,
        **{
            "group.id": group or "leafcuttr-consume",
            "enable.auto.commit": bool(group),
            "auto.offset.reset": start if start == "latest" else "earliest",
            "enable.partition.eof": True,
        },
    )
    if group and (partition is not None or start.isdigit()):
        raise click.UsageError("--group reads where the group is: not with --partition or an offset")
    consumer = client(Consumer, settings)
    try:
        parts = _partitions(consumer, topic, partition, address)
        if group:
            consumer.subscribe([topic])
        else:
            consumer.assign([_at(topic, number, start) for number in parts])
        _print(consumer, most, follow, keys, as_json)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._DESTROY:
            fail(error, address)
    except KeyboardInterrupt:
        pass
    finally:
        consumer.close()


def _partitions(consumer: Any, topic: str, partition: int | None, address: str) -> list[int]:
    # Asking for all topics does not create the one that is missing.
    found = topics(consumer, address).get(topic)
    if found is None:
        fail(f"there is no topic {topic}", address)
    if partition is not None and partition not in found.partitions:
        fail(f"{topic} has no partition {partition}", address)
    return sorted(found.partitions) if partition is None else [partition]


def _at(topic: str, number: int, start: str) -> Any:
    from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    return TopicPartition(
        topic, number, {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}.get(start) or int(start)
    )


def _print(consumer: Any, most: int | None, follow: bool, keys: bool, as_json: bool) -> None:
    from confluent_kafka import KafkaError, KafkaException

    ended: set[int] = set()
    printed = 0
    while most is None or printed < most:
        for message in consumer.consume(_BATCH if most is None else min(most - printed, _BATCH), 0.2):
            if message.error():
                if message.error().code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(message.error())
                ended.add(message.partition())
                continue
            ended.discard(message.partition())
            _print_one(message, keys, as_json)
            printed += 1
        sys.stdout.flush()
        # In a group others may have some of the partitions, and before the first assignment nobody has any.
        assigned = {part.partition for part in consumer.assignment()}
        if assigned and assigned <= ended and not follow:
            return


def _print_one(message: Any, keys: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "topic": message.topic(),
                "partition": message.partition(),
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                **_field("key", message.key()),
                **_field("value", message.value()),
                "headers": {
                    name: (value or b"").decode(errors="replace") for name, value in message.headers() or []
                },
            }
        )
        return
    out = sys.stdout.buffer
    if keys:
        out.write((message.key() or b"") + b"\t")
    out.write((message.value() or b"") + b"\n")


def _field(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}
