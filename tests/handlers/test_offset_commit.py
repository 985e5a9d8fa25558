"""OffsetCommit: which clients may commit, for which partitions, and what is kept."""

from collections.abc import Callable

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from support.groups import codes, commit_request, join_alone, stable


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


@pytest.fixture
async def send(send, broker: Broker):
    await broker.topics.create("t", 2, {})
    return send


@pytest.mark.parametrize("version", range(2, 10))
async def test_a_member_commits(send, broker: Broker, version: int) -> None:
    joined = await stable(send, "g")
    answer = await send(commit_request("g", {0: 7, 1: 8}, joined), version)
    assert codes(answer.topics) == {("t", 0): 0, ("t", 1): 0}
    kept = broker.groups.offsets.fetch("g")["t"]
    assert (kept[0].offset, kept[1].offset, kept[0].metadata) == (7, 8, "m")
    assert kept[0].leader_epoch == (2 if version >= 6 else -1)


async def test_version_10_knows_topics_by_id(send, broker: Broker) -> None:
    topic = broker.topics.by_name["t"]
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topics = [
        OffsetCommitRequestTopic(topic_id=topic.id, partitions=[partition]),
        OffsetCommitRequestTopic(topic_id=b"1" * 16, partitions=[partition]),
    ]
    answer = await send(commit_request("g", {}, topics=topics), 10)
    assert [each.partitions[0].error_code for each in answer.topics] == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert answer.topics[0].topic_id == topic.id
    assert broker.groups.offsets.fetch("g")["t"][0].topic_id == topic.id


async def test_what_is_wrong_with_one_partition_is_said_of_it_alone(send, broker: Broker) -> None:
    joined = await stable(send, "g")
    answer = await send(commit_request("g", {0: 1, 9: 1}, joined), 9)
    assert [(each.partition_index, each.error_code) for each in answer.topics[0].partitions] == [
        (9, 3),
        (0, 0),
    ]
    answer = await send(commit_request("g", {1: 1}, joined, metadata="x" * 4097), 9)
    assert codes(answer.topics) == {("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE}
    answer = await send(commit_request("g", {1: 1}, joined, metadata="x" * 4096), 9)
    assert codes(answer.topics) == {("t", 1): 0}
    answer = await send(commit_request("nobody", {0: 1}, joined, topic="none"), 9)
    assert codes(answer.topics) == {("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize(
    ("group", "changes", "error"),
    [
        ("g", {"generation_id_or_member_epoch": 5}, ErrorCode.ILLEGAL_GENERATION),
        ("g", {"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION),
        ("g", {"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("g", {"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("g", {"generation_id_or_member_epoch": -1, "member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("none", {}, ErrorCode.GROUP_ID_NOT_FOUND),
    ],
)
async def test_refusals(send, group: str, changes: dict[str, object], error: ErrorCode) -> None:
    joined = await stable(send, "g")
    answer = await send(commit_request(group, {0: 1}, joined, **changes), 9)
    assert codes(answer.topics) == {("t", 0): error}


async def test_older_clients_hear_of_an_illegal_generation_instead(send) -> None:
    joined = await stable(send, "g")
    answer = await send(commit_request("none", {0: 1}, joined), 8)
    assert codes(answer.topics) == {("t", 0): ErrorCode.ILLEGAL_GENERATION}


async def test_not_between_join_and_sync(send) -> None:
    joined = await join_alone(send, "g")
    answer = await send(commit_request("g", {0: 1}, joined), 9)
    assert codes(answer.topics) == {("t", 0): ErrorCode.REBALANCE_IN_PROGRESS}


@pytest.mark.parametrize("group", ["simple", ""])
async def test_simple_consumer(send, broker: Broker, group: str) -> None:
    assert codes((await send(commit_request(group, {0: 4}, metadata=None), 9)).topics) == {("t", 0): 0}
    kept = broker.groups.offsets.fetch(group)["t"][0]
    assert (kept.offset, kept.metadata) == (4, "")


async def test_retention_of_its_own_before_version_5(send, broker: Broker) -> None:
    await send(commit_request("g", {0: 4}, retention_time_ms=1000), 4)
    kept = broker.groups.offsets.fetch("g")["t"][0]
    assert kept.expire_timestamp == kept.commit_timestamp + 1000
