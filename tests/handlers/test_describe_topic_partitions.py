"""DescribeTopicPartitions: pages in order of name, and cursors."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from support.gates_slice import sampled

TOPICS = {"a": 3, "b": 1, "c": 5}


@pytest.fixture
async def topics(broker: Broker) -> None:
    for name, partitions in TOPICS.items():
        await broker.topics.create(name, partitions, {})


def request(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )


def page(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [part.partition_index for part in topic.partitions]) for topic in answer.topics]


def following(answer: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = answer.next_cursor
    return (cursor.topic_name, cursor.partition_index) if cursor else None


async def test_a_topic(broker: Broker, topics: None, send: Any) -> None:
    (topic,) = (await send(request("b"), 0)).topics
    assert (topic.error_code, topic.topic_id) == (ErrorCode.NONE, broker.topics.by_name["b"].id)
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, 3576)
    (part,) = topic.partitions
    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.NONE, 1, 0)
    assert [list(nodes) for nodes in (part.replica_nodes, part.isr_nodes, part.offline_replicas)] == [
        [1],
        [1],
        [],
    ]
    assert [list(nodes) for nodes in (part.eligible_leader_replicas, part.last_known_elr)] == [[], []]
    await broker.topics.create("owned", 1, {}, internal=True, owner="tables")
    (topic,) = (await send(request("owned"), 0)).topics
    assert (topic.is_internal, topic.topic_authorized_operations) == (True, 3576 - (1 << 4))


async def test_unknown_topics_have_their_place_in_the_order(topics: None, send: Any) -> None:
    answer = await send(request("c", "missing", "bad name", "b", "c"), 0)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("b", ErrorCode.NONE),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("c", ErrorCode.NONE),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert following(answer) is None


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("names", "limit", "cursor", "expected", "next_cursor"),
    [
        (["a"], 1, None, [("a", [0])], ("a", 1)),
        (["a"], 0, None, [("a", [0])], ("a", 1)),
        (["a"], -1, None, [("a", [0])], ("a", 1)),
        (["a", "b"], 3, None, [("a", [0, 1, 2])], ("b", 0)),
        (["a", "b"], 9, ("a", 1), [("a", [1, 2]), ("b", [0])], None),
        (["a", "b"], 9, ("b", 0), [("b", [0])], None),
        (["a", "b"], 9, ("a", 50), [("a", []), ("b", [0])], None),
        (["b", "x", "c"], 1, None, [("b", [0])], ("c", 0)),
        (["b", "x"], 1, None, [("b", [0])], ("x", 0)),
        (["x", "b"], 9, ("x", 1), [("x", [])], None),
        ([], 4, None, [("a", [0, 1, 2]), ("b", [0])], ("c", 0)),
        ([], 2, ("c", 1), [("c", [1, 2])], ("c", 3)),
        ([], 2, ("aa", 7), [("b", [0]), ("c", [0])], ("c", 1)),
        ([], 2, ("zz", 0), [], None),
    ],
)
async def test_pages(
    topics: None,
    send: Any,
    names: list[str],
    limit: int,
    cursor: tuple[str, int] | None,
    expected: list[tuple[str, list[int]]],
    next_cursor: tuple[str, int] | None,
) -> None:
    answer = await send(request(*names, limit=limit, cursor=cursor), 0)
    assert page(answer) == expected
    assert following(answer) == next_cursor


@pytest.mark.parametrize("cursor", [("a", -1), ("other", 0), ("zz", 0)])
async def test_a_cursor_that_cannot_be_meant(topics: None, send: Any, cursor: tuple[str, int]) -> None:
    answer = await send(request("a", "b", cursor=cursor), 0)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.INVALID_REQUEST),
    ]
    assert {topic.topic_authorized_operations for topic in answer.topics} == {-(2**31)}


@pytest.mark.setting("max.request.partition.size.limit")
async def test_the_brokers_own_limit(
    open_test_broker: Callable[..., Broker], sender_of: Callable[[Broker], Any]
) -> None:
    broker = open_test_broker({"max.request.partition.size.limit": "2"})
    await broker.topics.create("a", 3, {})
    answer = await sender_of(broker)(request(), 0)
    assert (page(answer), following(answer)) == ([("a", [0, 1])], ("a", 2))


@given(limit=st.integers(-1, 12), names=st.sets(st.sampled_from(["a", "aa", "b", "c", "x"])))
@settings(
    max_examples=sampled(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_the_pages_together_are_everything_once(
    broker: Broker, send: Any, limit: int, names: set[str]
) -> None:
    for name, partitions in TOPICS.items():
        if broker.topics.find(name) is None:
            await broker.topics.create(name, partitions, {})
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(100):
        answer = await send(request(*names, limit=limit, cursor=cursor), 0)
        seen += [(name, index) for name, indexes in page(answer) for index in indexes]
        cursor = following(answer)
        if cursor is None:
            break
    wanted = sorted(name for name in names or TOPICS if name in TOPICS)
    assert seen == [(name, index) for name in wanted for index in range(TOPICS[name])]
