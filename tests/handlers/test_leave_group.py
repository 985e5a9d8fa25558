"""LeaveGroup: one member before version 3, many with an answer each from then on."""

from collections.abc import Callable

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from support.groups import join_alone, stable


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


async def test_one_member(send, broker: Broker) -> None:
    joined = await stable(send, "g")
    assert (await send(LeaveGroupRequest(group_id="g", member_id="who"), 1)).error_code == 25
    assert (await send(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 1)).error_code == 0
    assert broker.groups.find("g").is_empty


async def test_many_members_and_instances(send, broker: Broker) -> None:
    await join_alone(send, "g", group_instance_id="one")
    members = [
        MemberIdentity(member_id="who", reason="tired"),
        MemberIdentity(member_id="", group_instance_id="two"),
        MemberIdentity(member_id="who", group_instance_id="one"),
        MemberIdentity(member_id="", group_instance_id="one"),
    ]
    answer = await send(LeaveGroupRequest(group_id="g", members=members), 5)
    assert answer.error_code == 0
    assert [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members] == [
        ("who", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "two", ErrorCode.UNKNOWN_MEMBER_ID),
        ("who", "one", ErrorCode.FENCED_INSTANCE_ID),
        ("", "one", ErrorCode.NONE),
    ]
    assert broker.groups.find("g").is_empty


async def test_groups_that_are_not_there(send) -> None:
    assert (await send(LeaveGroupRequest(group_id="", member_id="x"), 2)).error_code == 24
    assert (await send(LeaveGroupRequest(group_id="g", member_id="x"), 2)).error_code == 25
    answer = await send(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="x")]), 3)
    assert (answer.error_code, answer.members[0].error_code) == (0, 25)
