"""OffsetDelete: what no member subscribes to can be forgotten."""

from collections.abc import Callable

import pytest
import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from support.groups import codes, commit_request, stable


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


@pytest.fixture
async def send(send, broker: Broker):
    await broker.topics.create("t", 2, {})
    await broker.topics.create("u", 2, {})
    return send


def request_for(group: str, **topics: list[int]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in indexes]
            )
            for name, indexes in topics.items()
        ],
    )


async def test_topics_in_use_are_kept(send, broker: Broker) -> None:
    joined = await stable(send, "g", "t")
    await send(commit_request("g", {0: 1}, joined, topic="t"), 9)
    await send(commit_request("g", {0: 1, 1: 1}, joined, topic="u"), 9)
    answer = await send(request_for("g", t=[0, 9], u=[1], none=[0]), 0)
    assert answer.error_code == 0
    assert codes(answer.topics) == {
        ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("u", 1): ErrorCode.NONE,
        ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    kept = broker.groups.offsets.fetch("g")
    assert {topic: sorted(partitions) for topic, partitions in kept.items()} == {"t": [0], "u": [0]}


async def test_empty_groups_use_nothing(send, broker: Broker) -> None:
    await send(commit_request("g", {0: 1}), 8)
    assert codes((await send(request_for("g", t=[0, 1]), 0)).topics) == {("t", 0): 0, ("t", 1): 0}
    assert broker.groups.offsets.fetch("g") == {}


async def test_groups_that_cannot_be_read(send) -> None:
    assert (await send(request_for("", t=[0]), 0)).error_code == ErrorCode.INVALID_GROUP_ID
    assert (await send(request_for("none", t=[0]), 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


async def test_no_answer_leaves_before_the_tombstones_are_written(send, broker: Broker) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.groups.run)
        await send(commit_request("g", {0: 1, 1: 1}), 8)
        await broker.topics.edit_config(
            "__consumer_offsets", lambda overrides: {**overrides, "lc.log.sync.always": "true"}
        )
        logs = [partition.log for partition in broker.topics.by_name["__consumer_offsets"].partitions]
        before = sum(log.log_end_offset for log in logs)
        answer = await send(request_for("g", t=[0, 1]), 0)
        assert sum(log.log_end_offset for log in logs) == before + 2
        assert codes(answer.topics) == {("t", 0): 0, ("t", 1): 0}
        nursery.cancel_scope.cancel()
