"""`transactions find-hanging`: transactions that are open in a partition and that no coordinator will ever end."""

import time
from typing import Any

import click

from leafcuttr.cli.common.options.moments import duration, show_duration, show_moment
from leafcuttr.cli.common.options.partitions import Selection, partitions_argument, select
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option, print_json, print_table
from leafcuttr.cli.common.target import Target
from leafcuttr_sdk.types import TopicPartition


@click.command("find-hanging", short_help="Print transactions that hang.")
@target_options
@json_option
@partitions_argument()
@click.option("--broker", "-B", type=int, help="Only partitions that this broker has a copy of.")
@click.option(
    "--max-transaction-timeout",
    type=duration,
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="Leave out younger transactions: the brokers' transaction.max.timeout.ms.",
)
def find_hanging(
    target: Target,
    as_json: bool,
    topics: tuple[Selection, ...],
    broker: int | None,
    max_transaction_timeout: int,
) -> None:
    """Print transactions that hang: open in a partition, but unknown to their coordinator.

    Consumers with read_committed wait at such a transaction for ever. `leafcuttr transactions abort` ends it. All
    partitions are searched, if none is named.

    \b
    Examples:
      leafcuttr transactions find-hanging
      leafcuttr transactions find-hanging orders:0 --max-transaction-timeout 1h
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.cli.transactions import queries

    now = int(time.time() * 1000)
    with ClusterClient(target) as cluster:
        wanted = _partitions(cluster, topics, broker)
        old = [
            row
            for rows in queries.producers(cluster, wanted).values()
            for row in rows
            if row["start_offset"] is not None
            and now - (row["last_timestamp"] or 0) > max_transaction_timeout
        ]
        found = _unknown(cluster, old)
    if as_json:
        print_json(found)
        return
    columns = ("PRODUCER ID", "EPOCH", "COORDINATOR EPOCH", "OPEN SINCE OFFSET", "LAST TIMESTAMP", "AGE")
    names = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset")
    print_table(
        ("TOPIC", "PARTITION", *columns),
        [
            (
                *(row[name] for name in names),
                show_moment(row["last_timestamp"]),
                show_duration(now - (row["last_timestamp"] or 0)),
            )
            for row in found
        ],
    )


def _partitions(cluster: Any, topics: tuple[Selection, ...], broker: int | None) -> list[TopicPartition]:
    if broker is None:
        known = cluster.topics()
        return select(topics or [Selection(topic, None) for topic in sorted(known)], known)
    copies = {
        TopicPartition(topic.name, part.partition_index)
        for topic in cluster.metadata().topics
        for part in topic.partitions
        if broker in part.replica_nodes
    }
    if not topics:
        return sorted(copies)
    return [tp for tp in select(topics, cluster.topics()) if tp in copies]


def _unknown(cluster: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that belong to no transaction that a coordinator knows."""
    from leafcuttr.cli.transactions import queries
    from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest

    if not rows:
        return []
    request = ListTransactionsRequest(producer_id_filters=sorted({row["producer_id"] for row in rows}))
    running = set()
    for each in queries.list_all(cluster, request):
        about = queries.describe(cluster, each["transactional_id"])
        if about is not None:
            running |= {(about["producer_id"], *partition) for partition in about["partitions"]}
    return [row for row in rows if (row["producer_id"], row["topic"], row["partition"]) not in running]
