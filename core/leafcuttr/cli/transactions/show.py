"""`transactions list`, `describe` and `describe-producers`: what is printed. The requests are in `queries`."""

import time
from typing import Any

import click

from leafcuttr.cli.common.completion import complete_transactional_ids
from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.options.moments import duration, show_duration, show_moment
from leafcuttr.cli.common.options.partitions import Selection, partitions_argument, select
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option, print_json, print_table, printable
from leafcuttr.cli.common.target import Target


@click.command("list", short_help="Print the transactional ids.")
@target_options
@json_option
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only these states, e.g. Ongoing.")
@click.option(
    "--producer-id",
    "producer_ids",
    multiple=True,
    type=click.IntRange(0, 2**63 - 1),
    help="Only of this producer id.",
)
@click.option(
    "--running-longer-than",
    "longer_than",
    type=duration,
    metavar="DURATION",
    help="Only transactions that have been running so long, e.g. 10m; needs Kafka 3.8.",
)
@click.option("--pattern", metavar="REGEX", help="Only ids that match this expression; needs Kafka 4.1.")
def list_transactions(
    target: Target,
    as_json: bool,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than: int | None,
    pattern: str | None,
) -> None:
    """Print the transactional ids that the coordinators know.

    \b
    Examples:
      leafcuttr transactions list
      leafcuttr transactions list --state Ongoing --running-longer-than 10m
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.cli.transactions import queries
    from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest

    request = ListTransactionsRequest(
        state_filters=states,
        producer_id_filters=producer_ids,
        duration_filter=-1 if longer_than is None else longer_than,
        transactional_id_pattern=pattern,
    )
    with ClusterClient(target) as cluster:
        rows = queries.list_all(
            cluster, request, at_least=2 if pattern is not None else 0 if longer_than is None else 1
        )
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "STATE"), [list(row.values()) for row in rows]
        )


@click.command(short_help="Print the state of transactional ids.")
@target_options
@json_option
@click.argument("ids", nargs=-1, required=True, shell_complete=complete_transactional_ids)
def describe(target: Target, as_json: bool, ids: tuple[str, ...]) -> None:
    """Print the state of transactional ids: producer, since when, how long it may take, partitions.

    \b
    Examples:
      leafcuttr transactions describe payments-1
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.cli.transactions import queries

    with ClusterClient(target) as cluster:
        described = {each: queries.describe(cluster, each) for each in dict.fromkeys(ids)}
    found = [about for about in described.values() if about is not None]
    if as_json:
        print_json(found)
    elif found:
        _print(found)
    missing = [each for each in described if described[each] is None]
    if missing:
        raise Failure(printable(f"there is no transactional id {', '.join(missing)}"))


def _print(found: list[dict[str, Any]]) -> None:
    now = int(time.time() * 1000)
    columns = ("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "EPOCH", "STATE", "TIMEOUT", "RUNNING FOR")
    print_table(
        (*columns, "PARTITIONS"),
        [
            (
                about["transactional_id"],
                about["coordinator"],
                about["producer_id"],
                about["producer_epoch"],
                about["state"],
                show_duration(about["timeout_ms"]),
                None if about["started_ms"] is None else show_duration(now - about["started_ms"]),
                " ".join(f"{topic}:{partition}" for topic, partition in about["partitions"]) or None,
            )
            for about in found
        ],
    )


@click.command("describe-producers", short_help="Print the producers of partitions.")
@target_options
@json_option
@partitions_argument(required=True)
@click.option("--broker", "-B", type=int, help="Send the request to this replica, not to the leader.")
def describe_producers(
    target: Target, as_json: bool, topics: tuple[Selection, ...], broker: int | None
) -> None:
    """Print the producers that partitions keep, and where the transaction of each begins, if one is open.

    \b
    Examples:
      leafcuttr transactions describe-producers orders:0
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.cli.transactions import queries

    with ClusterClient(target) as cluster:
        found = queries.producers(cluster, select(topics, cluster.topics()), broker=broker)
    rows = [row for each in found.values() for row in each]
    if as_json:
        print_json(rows)
        return
    columns = (
        "PRODUCER ID",
        "EPOCH",
        "COORDINATOR EPOCH",
        "LAST SEQUENCE",
        "LAST TIMESTAMP",
        "OPEN SINCE OFFSET",
    )
    print_table(
        ("TOPIC", "PARTITION", *columns),
        [
            [show_moment(value) if name == "last_timestamp" else value for name, value in row.items()]
            for row in rows
        ],
    )
