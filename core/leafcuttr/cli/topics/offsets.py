"""`topics offsets`: what kafka-get-offsets does."""

from typing import Any, Final

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.options.moments import parse_moment, show_moment
from leafcuttr.cli.common.options.partitions import Selection, partitions_argument, select
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option, print_json, print_table
from leafcuttr.cli.common.target import Target

_SPECIAL: Final = {
    "earliest": "earliest",
    "latest": "latest",
    "max-timestamp": "max_timestamp",
    # The numbers that Kafka's own tool takes.
    "-1": "latest",
    "-2": "earliest",
    "-3": "max_timestamp",
}


def _time(text: str) -> str | int:
    """The name of a special time of OffsetSpec, or ms since the epoch. Raises BadParameter."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    moment = parse_moment(text)
    if moment is None:
        raise click.BadParameter(
            f"{text!r}: expected earliest, latest, max-timestamp, a moment like 2026-11-20T10:00:00, "
            "or milliseconds since 1970"
        )
    return moment


@click.command(short_help="Print offsets by time.")
@target_options
@json_option
@partitions_argument()
@click.option(
    "--time",
    "-t",
    "when",
    type=_time,
    default="latest",
    show_default=True,
    metavar="earliest|latest|max-timestamp|MOMENT",
    help="The first offset, the next one, that of the newest timestamp, or the first that is not older.",
)
@click.option("--internal", is_flag=True, help="Show the broker's own topics too, if none is named.")
def offsets(
    target: Target, as_json: bool, topics: tuple[Selection, ...], when: str | int, internal: bool
) -> None:
    """Print the offset of each partition for a time; all partitions of all topics, if none is named.

    A partition without such a record has no offset: `-`, in JSON null.

    \b
    Examples:
      leafcuttr topics offsets orders
      leafcuttr topics offsets orders:0,1 logs --time earliest
      leafcuttr topics offsets orders --time 2026-11-20T10:00:00+01:00 --json
    """
    from confluent_kafka.admin import OffsetSpec

    admin = Admin(target)
    known = admin.partitions()
    chosen = topics or [
        Selection(name, None) for name in sorted(known) if internal or not name.startswith("__")
    ]
    wanted = select(chosen, known)
    spec = getattr(OffsetSpec, when)() if isinstance(when, str) else OffsetSpec.for_timestamp(when)
    found = admin.try_offsets(dict.fromkeys(wanted, spec))
    rows = [_row(tp.topic, tp.partition, found[tp]) for tp in wanted]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("TOPIC", "PARTITION", "OFFSET", "TIMESTAMP"),
            [(row["topic"], row["partition"], row["offset"], show_moment(row["timestamp"])) for row in rows],
        )
    failed = [f"{tp}: {result.message}" for tp, result in found.items() if isinstance(result, Failure)]
    if failed:
        raise Failure("; ".join(failed[:5]))


def _row(topic: str, partition: int, found: Any) -> dict[str, Any]:
    known = not isinstance(found, Failure)
    return {
        "topic": topic,
        "partition": partition,
        "offset": found.offset if known and found.offset >= 0 else None,
        "timestamp": found.timestamp if known and found.timestamp >= 0 else None,
    }
