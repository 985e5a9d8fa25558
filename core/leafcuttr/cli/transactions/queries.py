"""What coordinators know of transactions and leaders of producers, as plain values."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from leafcuttr.cli.common.failures import AGAIN_S, Failure, reason
from leafcuttr.cli.common.options.partitions import by_topic
from leafcuttr.cli.common.output import progress
from leafcuttr.cli.common.wire_client.cluster import ClusterClient
from leafcuttr.client.coordinators import COORDINATOR_NOT_YET, CoordinatorKind
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from leafcuttr.wire.messages.describe_transactions import DescribeTransactionsRequest
from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest
from leafcuttr_sdk.types import TopicPartition

_SLICE: Final = 500
"""How many partitions one request names."""
_MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE})


def list_all(
    cluster: ClusterClient, request: ListTransactionsRequest, *, at_least: int = 0
) -> list[dict[str, Any]]:
    """The transactional ids of every coordinator. Raises Failure."""
    found = []
    brokers = list(cluster.brokers())
    with progress("coordinators", len(brokers)) as advance:
        for broker in brokers:
            answer = _loaded(cluster, broker, request, at_least)
            if answer.unknown_state_filters:
                raise Failure(f"unknown state: {', '.join(answer.unknown_state_filters)}")
            found += [
                {
                    "transactional_id": state.transactional_id,
                    "coordinator": broker,
                    "producer_id": state.producer_id,
                    "state": state.transaction_state,
                }
                for state in answer.transaction_states
            ]
            advance(1)
    return sorted(found, key=lambda row: str(row["transactional_id"]))


def _loaded(cluster: ClusterClient, broker: int, request: ListTransactionsRequest, at_least: int) -> Any:
    """The answer of a broker, once it has read the part of the internal topic that it coordinates."""
    deadline = time.monotonic() + cluster.timeout
    while True:
        answer = cluster.send(broker, request, at_least=at_least)
        if not answer.error_code:
            return answer
        if answer.error_code not in COORDINATOR_NOT_YET or time.monotonic() > deadline:
            raise Failure(f"broker {broker}: {reason(answer.error_code)}")
        time.sleep(AGAIN_S)


def describe(cluster: ClusterClient, transactional_id: str) -> dict[str, Any] | None:
    """What the coordinator knows of one id; None if it knows none. Raises Failure."""
    answer = cluster.send_to_coordinator(
        CoordinatorKind.TRANSACTION,
        transactional_id,
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        lambda answer: int(answer.transaction_states[0].error_code),
    )
    (state,) = answer.transaction_states
    if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if state.error_code:
        raise Failure(f"{transactional_id}: {reason(state.error_code)}")
    started = state.transaction_start_time_ms
    return {
        "transactional_id": transactional_id,
        "coordinator": cluster.coordinator(CoordinatorKind.TRANSACTION, transactional_id),
        "producer_id": state.producer_id,
        "producer_epoch": state.producer_epoch,
        "state": state.transaction_state,
        "timeout_ms": state.transaction_timeout_ms,
        "started_ms": started if started > 0 else None,
        "partitions": sorted(
            [topic.topic, partition] for topic in state.topics for partition in topic.partitions
        ),
    }


def producers(
    cluster: ClusterClient, wanted: Iterable[TopicPartition], *, broker: int | None = None
) -> dict[TopicPartition, list[dict[str, Any]]]:
    """The producers that the leader of each partition keeps, or that `broker` does. Raises Failure.

    The request is repeated while a partition has just been created or has just got another leader, until the time of
    the target is over.
    """
    wanted = list(wanted)
    deadline = time.monotonic() + cluster.timeout
    found: dict[TopicPartition, list[dict[str, Any]]] = {}
    left = wanted
    with progress("partitions", len(wanted)) as advance:
        while left:
            failed: dict[TopicPartition, Failure] = {}
            leaders = cluster.leaders(left) if broker is None else {broker: left}
            for leader, led in leaders.items():
                for at in range(0, len(led), _SLICE):
                    known = _producers(cluster, leader, led[at : at + _SLICE], failed)
                    found.update(known)
                    advance(len(known))
            left = list(failed)
            if left:
                _wait(failed, deadline, moved=broker is None)
    return {tp: found[tp] for tp in wanted}


def _wait(failed: dict[TopicPartition, Failure], deadline: float, *, moved: bool) -> None:
    """Wait a moment if another leader may answer for all of these; else raise the first Failure."""
    for failure in failed.values():
        if not moved or failure.code not in _MOVED or time.monotonic() > deadline:
            raise failure
    time.sleep(AGAIN_S)


def _producers(
    cluster: ClusterClient,
    broker: int,
    partitions: Sequence[TopicPartition],
    failed: dict[TopicPartition, Failure],
) -> dict[TopicPartition, list[dict[str, Any]]]:
    topics = [
        TopicRequest(name=topic, partition_indexes=numbers) for topic, numbers in by_topic(partitions).items()
    ]
    found = {}
    for topic in cluster.send(broker, DescribeProducersRequest(topics=topics)).topics:
        for part in topic.partitions:
            tp = TopicPartition(topic.name, part.partition_index)
            if part.error_code:
                text = f"{tp}: {reason(part.error_code, part.error_message)}"
                failed[tp] = Failure(text, part.error_code)
            else:
                found[tp] = [_producer(tp, each) for each in part.active_producers]
    return found


def _known(number: int) -> int | None:
    """Kafka says -1 for none."""
    return number if number >= 0 else None


def _producer(tp: TopicPartition, each: Any) -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "coordinator_epoch": _known(each.coordinator_epoch),
        "last_sequence": _known(each.last_sequence),
        "last_timestamp": _known(each.last_timestamp),
        "start_offset": _known(each.current_txn_start_offset),
    }
