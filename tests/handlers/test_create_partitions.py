"""CreatePartitions: topics grow, each by itself."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


def topic(name: str, count: int, *replicas: list[int], assigned: bool = False) -> CreatePartitionsTopic:
    assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in replicas]
    return CreatePartitionsTopic(
        name=name, count=count, assignments=assignments if replicas or assigned else None
    )


def request(*topics: CreatePartitionsTopic, timeout_ms: int = 1000, **known: bool) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, **known)


@pytest.mark.parametrize("version", range(4))
async def test_every_version_grows_a_topic(broker: Broker, send: Any, version: int) -> None:
    orders = await broker.topics.create("orders", 1, {})
    answer = await send(request(topic("orders", 3), topic("missing", 2)), version)
    assert [(r.name, r.error_code, r.error_message) for r in answer.results] == [
        ("orders", ErrorCode.NONE, None),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ]
    assert len(orders.partitions) == 3


async def test_validation_changes_nothing(broker: Broker, send: Any) -> None:
    orders = await broker.topics.create("orders", 1, {})
    answer = await send(request(topic("orders", 3, [1], [1]), validate_only=True), 3)
    assert [(r.error_code, r.error_message) for r in answer.results] == [(ErrorCode.NONE, None)]
    assert len(orders.partitions) == 1


@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (topic("orders", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            topic("orders", -1),
            ErrorCode.INVALID_PARTITIONS,
            "The topic orders currently has 2 partition(s); -1 would not be an increase.",
        ),
        (
            topic("orders", 4, [1]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            topic("orders", 3, assigned=True),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (
            topic("orders", 3, [7]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes broker 7, but no such broker is registered.",
        ),
        (
            topic("orders", 20_000),
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        ),
    ],
)
async def test_refusals(
    broker: Broker, send: Any, requested: CreatePartitionsTopic, code: ErrorCode, message: str
) -> None:
    orders = await broker.topics.create("orders", 2, {})
    answer = await send(request(requested), 3)
    assert [(r.name, r.error_code, r.error_message) for r in answer.results] == [("orders", code, message)]
    assert len(orders.partitions) == 2


async def test_a_name_twice_fails(broker: Broker, send: Any) -> None:
    orders = await broker.topics.create("orders", 1, {})
    answer = await send(request(topic("orders", 2), topic("orders", 3)), 2)
    assert [(r.name, r.error_code, r.error_message) for r in answer.results] == [
        ("orders", ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    ]
    assert len(orders.partitions) == 1


async def test_no_time_no_partitions(broker: Broker, send: Any) -> None:
    orders = await broker.topics.create("orders", 1, {})
    answer = await send(request(topic("orders", 2), topic("orders", 2), timeout_ms=0), 2)
    assert [r.error_code for r in answer.results] == [ErrorCode.REQUEST_TIMED_OUT] * 2
    assert len(orders.partitions) == 1
