"""ListGroups: every group, filtered by state and type."""

from collections.abc import Callable

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from support.groups import commit_request, stable


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


@pytest.fixture
async def groups(send, broker: Broker) -> None:
    await broker.topics.create("t", 1, {})
    await stable(send, "members")
    await send(commit_request("simple", {0: 3}), 8)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["members", "simple"]),
        ({"states_filter": ["STABLE"]}, ["members"]),
        ({"states_filter": ["Empty", "nonsense"]}, ["simple"]),
        ({"states_filter": ["nonsense"]}, []),
        ({"types_filter": ["Classic"]}, ["members", "simple"]),
        ({"types_filter": ["consumer"]}, []),
    ],
)
async def test_filters(send, groups: None, filters: dict[str, list[str]], found: list[str]) -> None:
    answer = await send(ListGroupsRequest(**filters), 5)
    assert [group.group_id for group in answer.groups] == found


async def test_what_is_said_of_each(send, groups: None) -> None:
    assert (await send(ListGroupsRequest(), 5)).groups == (
        ListedGroup(group_id="members", protocol_type="consumer", group_state="Stable", group_type="classic"),
        ListedGroup(group_id="simple", protocol_type="", group_state="Empty", group_type="classic"),
    )
    assert (await send(ListGroupsRequest(), 0)).groups[0] == ListedGroup(
        group_id="members", protocol_type="consumer"
    )


async def test_not_while_groups_are_loaded(send, groups: None, open_test_broker, sender_of) -> None:
    send = sender_of(open_test_broker())
    assert (await send(ListGroupsRequest(), 5)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
