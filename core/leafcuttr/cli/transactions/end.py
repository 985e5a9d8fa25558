"""`transactions abort` and `transactions force-terminate`: the two of these commands that change something."""

from typing import Any, NamedTuple

import click

from leafcuttr.cli.common.completion import complete_topics, complete_transactional_ids
from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.options.partitions import Selection, select, selection
from leafcuttr.cli.common.options.target import target_options
from leafcuttr.cli.common.output import json_option, print_json, printable
from leafcuttr.cli.common.target import Target
from leafcuttr.client.coordinators import COORDINATOR_NOT_YET, CoordinatorKind
from leafcuttr.errors import ErrorCode
from leafcuttr_sdk.types import TopicPartition


@click.command(short_help="Abort a transaction that hangs.")
@target_options
@json_option
@click.argument("partition", type=selection, metavar="TOPIC:PARTITION", shell_complete=complete_topics)
@click.option(
    "--start-offset",
    type=click.IntRange(0, 2**63 - 1),
    help="Where the transaction begins, as find-hanging prints it.",
)
@click.option(
    "--producer-id",
    type=click.IntRange(0, 2**63 - 1),
    help="Of the transaction, in place of its first offset.",
)
@click.option("--producer-epoch", type=click.IntRange(0, 32767), help="With --producer-id.")
@click.option("--coordinator-epoch", type=click.IntRange(-1, 2**31 - 1), help="With --producer-id.")
def abort(
    target: Target,
    as_json: bool,
    partition: Selection,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> None:
    """Abort a transaction that hangs in a partition, by a marker that is written into that partition alone.

    The coordinator of the transaction does not take part: use it for what find-hanging prints, and for nothing else. A
    transaction that its coordinator knows is ended with force-terminate.

    \b
    Examples:
      leafcuttr transactions abort orders:0 --start-offset 1234
      leafcuttr transactions abort orders:0 --producer-id 7 --producer-epoch 3 --coordinator-epoch 12
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient

    if partition.partitions is None or len(partition.partitions) != 1:
        raise click.UsageError("expected one partition, as TOPIC:PARTITION")
    exact = (producer_id, producer_epoch, coordinator_epoch)
    if (start_offset is None) == all(part is None for part in exact) or (
        start_offset is None and None in exact
    ):
        raise click.UsageError(
            "expected --start-offset, or --producer-id with --producer-epoch and --coordinator-epoch"
        )
    with ClusterClient(target) as cluster:
        (tp,) = select([partition], cluster.topics())
        if producer_id is not None and producer_epoch is not None:
            producer = _Producer(producer_id, producer_epoch, coordinator_epoch)
        else:
            producer = _at(cluster, tp, start_offset)
        _write_marker(cluster, tp, producer)
    if as_json:
        print_json({"topic": tp.topic, "partition": tp.partition, **producer._asdict(), "aborted": True})
    else:
        click.echo(printable(f"aborted the transaction of producer {producer.producer_id} in {tp}"))


class _Producer(NamedTuple):
    """The producer of the transaction, as the partition knows it; the coordinator epoch is None before any marker."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None


def _at(cluster: Any, tp: TopicPartition, start_offset: int | None) -> _Producer:
    from leafcuttr.cli.transactions import queries

    for row in queries.producers(cluster, [tp])[tp]:
        if row["start_offset"] == start_offset:
            return _Producer(row["producer_id"], row["producer_epoch"], row["coordinator_epoch"])
    raise Failure(f"{tp}: no open transaction begins at offset {start_offset}")


def _write_marker(cluster: Any, tp: TopicPartition, producer: _Producer) -> None:
    from leafcuttr.wire.messages.write_txn_markers import (
        WritableTxnMarker,
        WritableTxnMarkerTopic,
        WriteTxnMarkersRequest,
    )

    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        # Where no coordinator has written yet, any epoch of one is new.
        coordinator_epoch=max(producer.coordinator_epoch or 0, 0),
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
    )
    (leader,) = cluster.leaders([tp])
    answer = cluster.send(leader, WriteTxnMarkersRequest(markers=[marker]))
    code = answer.markers[0].topics[0].partitions[0].error_code
    if code:
        raise Failure(f"{tp}: {reason(code)}")


@click.command("force-terminate", short_help="End the transaction of an id.")
@target_options
@json_option
@click.argument("transactional_id", metavar="ID", shell_complete=complete_transactional_ids)
def force_terminate(target: Target, as_json: bool, transactional_id: str) -> None:
    """End the open transaction of a transactional id, and fence its producer.

    The producer that uses the id is refused from then on; a new one may use it.

    \b
    Examples:
      leafcuttr transactions force-terminate payments-1
    """
    from leafcuttr.cli.common.wire_client.cluster import ClusterClient
    from leafcuttr.cli.transactions import queries
    from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest

    with ClusterClient(target) as cluster:
        # InitProducerId would make an id that does not exist.
        if queries.describe(cluster, transactional_id) is None:
            raise Failure(printable(f"there is no transactional id {transactional_id}"))
        answer = cluster.send_to_coordinator(
            CoordinatorKind.TRANSACTION,
            transactional_id,
            # No client uses the new producer, so its timeout does not matter.
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1),
            lambda answer: int(answer.error_code),
            # What is open is being aborted.
            again=COORDINATOR_NOT_YET | {ErrorCode.CONCURRENT_TRANSACTIONS},
        )
    if answer.error_code:
        raise Failure(printable(f"{transactional_id}: {reason(answer.error_code)}"))
    if as_json:
        about = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
        print_json({"transactional_id": transactional_id, **about, "terminated": True})
    else:
        click.echo(printable(f"{transactional_id} has no open transaction now"))
