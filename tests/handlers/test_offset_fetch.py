"""OffsetFetch: what was committed, in the form of each version; nothing committed is no error."""

from collections.abc import Callable

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from support.groups import commit_request


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


@pytest.fixture
async def send(send, broker: Broker):
    await broker.topics.create("t", 2, {})
    await send(commit_request("g", {0: 7}), 8)
    return send


@pytest.mark.parametrize("version", range(1, 8))
async def test_one_group(send, version: int) -> None:
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1, 9])]
    answer = await send(OffsetFetchRequest(group_id="g", topics=topics), version)
    first, *others = answer.topics[0].partitions
    epoch = 2 if version >= 5 else -1
    assert (first.committed_offset, first.committed_leader_epoch, first.metadata) == (7, epoch, "m")
    assert [(each.committed_offset, each.metadata, each.error_code) for each in others] == [(-1, "", 0)] * 2


@pytest.mark.parametrize("version", range(2, 8))
async def test_all_of_a_group(send, version: int) -> None:
    answer = await send(OffsetFetchRequest(group_id="g", topics=None), version)
    assert [(each.name, len(each.partitions)) for each in answer.topics] == [("t", 1)]
    assert (await send(OffsetFetchRequest(group_id="none", topics=None), version)).topics == ()


@pytest.mark.parametrize("version", [8, 9])
async def test_many_groups(send, version: int) -> None:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    groups = [
        OffsetFetchRequestGroup(group_id="g", topics=topics),
        OffsetFetchRequestGroup(group_id="none", topics=topics),
        OffsetFetchRequestGroup(group_id="g", topics=None),
    ]
    answer = await send(OffsetFetchRequest(groups=groups, require_stable=True), version)
    found = [
        (group.group_id, [each.committed_offset for each in group.topics[0].partitions])
        for group in answer.groups
    ]
    assert found == [("g", [7]), ("none", [-1]), ("g", [7])]


async def test_version_10_knows_topics_by_id(send, broker: Broker) -> None:
    topic_id = broker.topics.by_name["t"].id
    groups = [
        OffsetFetchRequestGroup(
            group_id="g",
            topics=[
                OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]),
                OffsetFetchRequestTopics(topic_id=b"1" * 16, partition_indexes=[0]),
            ],
        ),
        OffsetFetchRequestGroup(group_id="g", topics=None),
    ]
    some, everything = (await send(OffsetFetchRequest(groups=groups), 10)).groups
    assert [topic.partitions[0].error_code for topic in some.topics] == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert [topic.partitions[0].committed_offset for topic in some.topics] == [7, -1]
    assert [topic.topic_id for topic in everything.topics] == [topic_id]


async def test_while_groups_are_loaded(send, open_test_broker, sender_of) -> None:
    send = sender_of(open_test_broker())
    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    old = await send(OffsetFetchRequest(group_id="g", topics=topics), 1)
    assert old.topics[0].partitions[0].error_code == loading
    assert (await send(OffsetFetchRequest(group_id="g", topics=topics), 7)).error_code == loading
    new = await send(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g")]), 8)
    assert new.groups[0].error_code == loading


async def test_offsets_go_with_their_topic(send, broker: Broker) -> None:
    await broker.topics.delete("t")
    assert (await send(OffsetFetchRequest(group_id="g", topics=None), 7)).topics == ()
