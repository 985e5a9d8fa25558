"""AlterPartitionReassignments: there is nowhere to move a replica to."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

NOT_REGISTERED = "The manual partition assignment includes broker 2, but no such broker is registered."


def request(
    name: str, index: int, replicas: list[int] | None, **known: Any
) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[partition])], **known
    )


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("name", "index", "replicas", "code", "message"),
    [
        ("orders", 0, [1], ErrorCode.NONE, None),
        ("orders", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
        ("orders", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT, NOT_REGISTERED),
        ("orders", 0, [1, 2], ErrorCode.INVALID_REPLICA_ASSIGNMENT, NOT_REGISTERED),
        (
            "orders",
            0,
            [1, 1],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes the broker 1 more than once.",
        ),
        (
            "orders",
            0,
            [],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        ),
        ("orders", 9, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find partition orders:9."),
        ("missing", 0, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Unable to find a topic named missing."),
    ],
)
async def test_answers(
    broker: Broker,
    send: Any,
    version: int,
    name: str,
    index: int,
    replicas: list[int] | None,
    code: ErrorCode,
    message: str | None,
) -> None:
    await broker.topics.create("orders", 1, {})
    answer = await send(request(name, index, replicas), version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert answer.allow_replication_factor_change
    (part,) = answer.responses[0].partitions
    assert (part.partition_index, part.error_code, part.error_message) == (index, code, message)


async def test_the_choice_of_version_1_is_repeated(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    answer = await send(request("orders", 0, [1], allow_replication_factor_change=False), 1)
    assert not answer.allow_replication_factor_change


async def test_no_time(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    answer = await send(request("orders", 0, None, timeout_ms=0), 1)
    assert answer.error_code == answer.responses[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT


async def test_no_topics(send: Any) -> None:
    answer = await send(AlterPartitionReassignmentsRequest(), 1)
    assert (answer.error_code, answer.error_message, list(answer.responses)) == (ErrorCode.NONE, "", [])
