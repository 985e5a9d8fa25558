"""Heartbeat: one error code for each state a member can find itself in."""

from collections.abc import Callable

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.heartbeat import HeartbeatRequest
from support.groups import join_alone, stable


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


@pytest.mark.parametrize("version", range(5))
async def test_member_of_a_stable_group(send, version: int) -> None:
    joined = await stable(send, "g")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert (await send(request, version)).error_code == 0


async def test_fine_while_the_assignment_is_awaited(send) -> None:
    joined = await join_alone(send, "g")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert (await send(request, 4)).error_code == 0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
async def test_refusals(send, changes: dict[str, object], error: ErrorCode) -> None:
    joined = await stable(send, "g")
    fields: dict[str, object] = {"group_id": "g", "generation_id": 1, "member_id": joined.member_id}
    assert (await send(HeartbeatRequest(**{**fields, **changes}), 4)).error_code == error
