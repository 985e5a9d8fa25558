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
async def groups(ask, broker: Broker) -> None:
    await broker.topics.create("t", 1, {})
    await stable(ask, "members")
    await ask(commit_request("simple", {0: 3}), 8)


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
async def test_filters(ask, groups: None, filters: dict[str, list[str]], found: list[str]) -> None:
    answer = await ask(ListGroupsRequest(**filters), 5)
    assert [group.group_id for group in answer.groups] == found


async def test_what_is_said_of_each(ask, groups: None) -> None:
    assert (await ask(ListGroupsRequest(), 5)).groups == (
        ListedGroup(group_id="members", protocol_type="consumer", group_state="Stable", group_type="classic"),
        ListedGroup(group_id="simple", protocol_type="", group_state="Empty", group_type="classic"),
    )
    assert (await ask(ListGroupsRequest(), 0)).groups[0] == ListedGroup(
        group_id="members", protocol_type="consumer"
    )


async def test_not_while_groups_are_loaded(ask, groups: None, open_test_broker, ask_of) -> None:
    ask = ask_of(open_test_broker())
    assert (await ask(ListGroupsRequest(), 5)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
