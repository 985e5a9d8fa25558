"""ElectLeaders: the only replica leads, so there is nothing to elect."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


def results(answer: ElectLeadersResponse) -> list[tuple[str, int, int, str | None]]:
    return [
        (topic.topic, part.partition_id, part.error_code, part.error_message)
        for topic in answer.replica_election_results
        for part in topic.partition_result
    ]


@pytest.mark.parametrize(("version", "election"), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)])
async def test_no_election_is_needed(broker: Broker, send: Any, version: int, election: int) -> None:
    await broker.topics.create("orders", 1, {})
    requested = [
        TopicPartitions(topic="orders", partitions=[0, 9]),
        TopicPartitions(topic="missing", partitions=[0]),
    ]
    answer = await send(ElectLeadersRequest(election_type=election, topic_partitions=requested), version)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert results(answer) == [
        ("orders", 0, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."),
        ("orders", 9, unknown, "No such partition as orders-9"),
        ("missing", 0, unknown, "No such topic as missing"),
    ]
    assert answer.error_code == ErrorCode.NONE


async def test_all_partitions(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 1, {})
    answer = await send(ElectLeadersRequest(topic_partitions=None), 2)
    assert [(topic.topic, list(topic.partition_result)) for topic in answer.replica_election_results] == [
        ("orders", [])
    ]


@pytest.mark.parametrize(
    ("election", "timeout", "code", "message"),
    [
        (2, 1000, ErrorCode.INVALID_REQUEST, "Unknown election type 2"),
        (0, 0, ErrorCode.REQUEST_TIMED_OUT, None),
        (0, -1, ErrorCode.REQUEST_TIMED_OUT, None),
    ],
)
async def test_refusals(
    broker: Broker, send: Any, election: int, timeout: int, code: ErrorCode, message: str | None
) -> None:
    await broker.topics.create("orders", 1, {})
    requested = [TopicPartitions(topic="orders", partitions=[0])]
    request = ElectLeadersRequest(election_type=election, topic_partitions=requested, timeout_ms=timeout)
    answer = await send(request, 2)
    assert answer.error_code == code
    assert results(answer) == [("orders", 0, code, message)]


@pytest.mark.parametrize(
    ("election", "code"),
    [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
async def test_an_offline_log_has_no_leader(
    broker: Broker, send: Any, election: int, code: ErrorCode
) -> None:
    topic = await broker.topics.create("orders", 1, {})
    topic.partitions[0].log.offline = "damaged"
    requested = [TopicPartitions(topic="orders", partitions=[0])]
    answer = await send(ElectLeadersRequest(election_type=election, topic_partitions=requested), 2)
    assert [code_ for _, _, code_, _ in results(answer)] == [code]
