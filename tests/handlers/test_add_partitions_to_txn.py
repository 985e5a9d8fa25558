"""AddPartitionsToTxn: all partitions of a transaction, or none; and queries whether they are in it."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from leafcuttr_sdk import TopicPartition
from support.transactional import add_request, begin, init

VERSIONS = range(6)
NONE, MISSING = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def codes(answer: AddPartitionsToTxnResponse, version: int) -> dict[tuple[str, int], int]:
    topics = (
        answer.results_by_transaction[0].topic_results
        if version >= 4
        else answer.results_by_topic_v3_and_below
    )
    return {
        (topic.name, part.partition_index): part.partition_error_code
        for topic in topics
        for part in topic.results_by_partition
    }


def added(broker: Broker) -> set[TopicPartition]:
    found = broker.transactions.find("id")
    assert found is not None
    return set(found.now.partitions)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_version_adds_partitions(broker: Broker, send: Any, version: int) -> None:
    await broker.topics.create("orders", 2, {})
    await broker.topics.create("events", 1, {})
    answer = await send(add_request(await init(send), {"orders": [1], "events": [0]}), version)
    assert codes(answer, version) == {("orders", 1): NONE, ("events", 0): NONE}
    assert added(broker) == {TopicPartition("orders", 1), TopicPartition("events", 0)}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_partition_that_does_not_exist_prevents_all(broker: Broker, send: Any, version: int) -> None:
    await broker.topics.create("orders", 1, {})
    answer = await send(add_request(await init(send), {"orders": [0, 1, -1], "missing": [0]}), version)
    assert codes(answer, version) == {
        ("orders", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("orders", 1): MISSING,
        ("orders", -1): MISSING,
        ("missing", 0): MISSING,
    }
    assert not added(broker)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_topic_that_belongs_to_a_plugin_prevents_all(broker: Broker, send: Any, version: int) -> None:
    await broker.topics.create("orders", 1, {})
    await broker.topics.create("table", 1, {}, internal=True, owner="tables")
    partitions = {"orders": [0], "table": [0, 1], "missing": [0]}
    answer = await send(add_request(await init(send), partitions), version)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert codes(answer, version) == {
        ("orders", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("table", 0): refused,
        ("table", 1): refused,
        ("missing", 0): MISSING,
    }
    assert not added(broker)


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_older_producer_is_fenced(broker: Broker, send: Any, version: int) -> None:
    """Versions 0 and 1 do not know PRODUCER_FENCED (KIP-588)."""
    await broker.topics.create("t", 1, {})
    await init(send)
    answer = await send(add_request((await init(send)).fenced, {"t": [0]}), version)
    fenced = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert codes(answer, version) == {("t", 0): fenced}
    assert not added(broker)


async def test_an_unknown_transactional_id(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 1, {})
    producer = (await init(send))._replace(transactional_id="other")
    answer = await send(add_request(producer, {"t": [0]}), 5)
    assert codes(answer, 5) == {("t", 0): ErrorCode.INVALID_PRODUCER_ID_MAPPING}


async def test_a_query_adds_nothing(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 2, {})
    producer = await begin(send)
    answer = await send(add_request(producer, {"t": [0, 1]}, verify_only=True), 5)
    assert codes(answer, 5) == {("t", 0): NONE, ("t", 1): ErrorCode.TRANSACTION_ABORTABLE}
    assert added(broker) == {TopicPartition("t", 0)}
