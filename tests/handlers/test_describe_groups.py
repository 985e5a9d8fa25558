"""DescribeGroups and ListGroups, which show the same groups."""

from collections.abc import Callable

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from support.groups import commit_request, join_alone, stable, subscription


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


async def test_a_stable_group_with_everything(send) -> None:
    joined = await stable(send, "g", "t")
    request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    (group,) = (await send(request, 6)).groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    assert group.authorized_operations == 3400
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (
        joined.member_id,
        "test",
        "/127.0.0.1",
    )
    assert (member.member_metadata, member.member_assignment) == (subscription("t"), b"mine")


async def test_metadata_is_not_shown_before_the_group_is_stable(send) -> None:
    await join_alone(send, "g", "t")
    (group,) = (await send(DescribeGroupsRequest(groups=["g"]), 5)).groups
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert group.members[0].member_metadata == b""


async def test_missing_groups_are_dead_or_an_error(send) -> None:
    before = await send(DescribeGroupsRequest(groups=["g"]), 5)
    assert before.groups[0] == DescribedGroup(group_id="g", group_state="Dead")
    now = await send(DescribeGroupsRequest(groups=["g"]), 6)
    assert now.groups[0] == DescribedGroup(
        group_id="g",
        group_state="Dead",
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message="Group g not found.",
    )


async def test_simple_group(send, broker: Broker) -> None:
    await broker.topics.create("t", 1, {})
    await send(commit_request("", {0: 3}), 8)
    (group,) = (await send(DescribeGroupsRequest(groups=[""]), 6)).groups
    assert (group.error_code, group.group_state, group.protocol_type) == (0, "Empty", "")
