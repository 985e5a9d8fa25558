"""DeleteGroups: empty ones go, with their offsets, for good."""

import errno
from collections.abc import Callable

import pytest
import trio

from leafcuttr.errors import ErrorCode, GroupIdNotFound
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.delete_groups import DeleteGroupsRequest
from support.groups import commit_request, stable


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


async def test_each_group_has_its_answer(send, broker: Broker) -> None:
    await broker.topics.create("t", 1, {})
    await stable(send, "used")
    await send(commit_request("simple", {0: 3}), 8)
    answer = await send(DeleteGroupsRequest(groups_names=["used", "none", "simple", "simple"]), 2)
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        ("used", ErrorCode.NON_EMPTY_GROUP),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("simple", ErrorCode.NONE),
    ]
    with pytest.raises(GroupIdNotFound):
        broker.groups.find("simple")
    assert broker.groups.offsets.fetch("simple") == {}


async def test_deleted_groups_stay_deleted(send, broker: Broker, open_test_broker) -> None:
    await broker.topics.create("t", 1, {})
    await send(commit_request("simple", {0: 3}), 8)
    await send(DeleteGroupsRequest(groups_names=["simple"]), 0)
    again = open_test_broker()
    async with trio.open_nursery() as nursery:
        await nursery.start(again.groups.run)
        while again.groups.loading:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert again.groups.all() == []


async def test_no_answer_leaves_before_the_tombstones_are_written(send, broker: Broker) -> None:
    """Where a write may wait for the disk a worker does it; what is answered before would be back after a kill."""
    await broker.topics.create("t", 1, {})
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.groups.run)
        await send(commit_request("one", {0: 3}), 8)
        await send(commit_request("two", {0: 3}), 8)
        await broker.topics.edit_config(
            "__consumer_offsets", lambda overrides: {**overrides, "lc.log.sync.always": "true"}
        )
        logs = [partition.log for partition in broker.topics.by_name["__consumer_offsets"].partitions]
        before = sum(log.log_end_offset for log in logs)
        answer = await send(DeleteGroupsRequest(groups_names=["one", "two"]), 2)
        assert sum(log.log_end_offset for log in logs) == before + 4  # of an offset and of a group, twice
        assert [each.error_code for each in answer.results] == [ErrorCode.NONE, ErrorCode.NONE]
        nursery.cancel_scope.cancel()


async def test_a_write_that_fails_is_answered_so(
    send, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    await broker.topics.create("t", 1, {})
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.groups.run)
        await send(commit_request("one", {0: 3}), 8)
        await broker.topics.edit_config(
            "__consumer_offsets", lambda overrides: {**overrides, "lc.log.sync.always": "true"}
        )
        monkeypatch.setattr("leafcuttr.log.append.commit.write_all", no_room)
        answer = await send(DeleteGroupsRequest(groups_names=["one"]), 2)
        assert answer.results[0].error_code == ErrorCode.NOT_COORDINATOR
        nursery.cancel_scope.cancel()
