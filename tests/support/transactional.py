"""Requests of a transactional producer in their usual form, sent by a fixture like `send` of tests/handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from leafcuttr.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from leafcuttr.wire.messages.end_txn import EndTxnRequest
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest

Send = Callable[..., Awaitable[Any]]


class Producer(NamedTuple):
    """What InitProducerId has answered."""

    transactional_id: str
    producer_id: int
    producer_epoch: int

    @property
    def fenced(self) -> Producer:
        """The one that had the id before."""
        return self._replace(producer_epoch=self.producer_epoch - 1)


async def init(send: Send, transactional_id: str = "id") -> Producer:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    answer = await send(request, 5)
    assert not answer.error_code
    return Producer(transactional_id, answer.producer_id, answer.producer_epoch)


def add_request(
    producer: Producer, topics: dict[str, list[int]], *, verify_only: bool = False
) -> AddPartitionsToTxnRequest:
    """In the form of every version."""
    named = [AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()]
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=named,
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                verify_only=verify_only,
                topics=named,
            )
        ],
    )


async def begin(send: Send, transactional_id: str = "id", topic: str = "t") -> Producer:
    """A transaction that has partition 0 of the topic."""
    producer = await init(send, transactional_id)
    answer = await send(add_request(producer, {topic: [0]}), 5)
    (result,) = answer.results_by_transaction[0].topic_results
    assert [part.partition_error_code for part in result.results_by_partition] == [0]
    return producer


def end_request(producer: Producer, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(**producer._asdict(), committed=commit)


def lower_transaction_version(address: str) -> None:
    """A broker's `transaction.version` becomes 1: partitions and groups are added before the first write."""
    from leafcuttr.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
    from support.wire_client import WireClient

    update = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    with WireClient(address) as client:
        answer = client.ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]), 1)
    assert not answer.error_code, answer
