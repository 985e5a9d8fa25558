"""DeleteGroups: empty ones go, with their offsets, for good."""

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


async def test_each_group_has_its_answer(ask, broker: Broker) -> None:
    await broker.topics.create("t", 1, {})
    await stable(ask, "used")
    await ask(commit_request("simple", {0: 3}), 8)
    answer = await ask(DeleteGroupsRequest(groups_names=["used", "none", "simple", "simple"]), 2)
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        ("used", ErrorCode.NON_EMPTY_GROUP),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("simple", ErrorCode.NONE),
    ]
    with pytest.raises(GroupIdNotFound):
        broker.groups.find("simple")
    assert broker.groups.offsets.fetch("simple") == {}


async def test_deleted_groups_stay_deleted(ask, broker: Broker, open_test_broker) -> None:
    await broker.topics.create("t", 1, {})
    await ask(commit_request("simple", {0: 3}), 8)
    await ask(DeleteGroupsRequest(groups_names=["simple"]), 0)
    again = open_test_broker()
    async with trio.open_nursery() as nursery:
        await nursery.start(again.groups.run)
        while again.groups.loading:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert again.groups.all() == []
