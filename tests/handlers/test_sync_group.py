"""SyncGroup: what it must name, and the wait for the leader."""

from collections.abc import Callable

import pytest
import trio
import trio.testing

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from support.groups import join_alone, join_request, stable, sync


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


async def test_assignment_comes_back_with_protocol_type_and_name(send) -> None:
    joined = await join_alone(send, "g")
    assert await sync(send, "g", joined, {joined.member_id: b"a"}) == SyncGroupResponse(
        protocol_type="consumer", protocol_name="range", assignment=b"a"
    )


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"generation_id": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
async def test_refusals(send, changes: dict[str, object], error: ErrorCode) -> None:
    joined = await join_alone(send, "g")
    assert (await sync(send, "g", joined, **changes)).error_code == error


async def test_versions_before_5_need_not_name_the_protocol(send) -> None:
    joined = await join_alone(send, "g")
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert (await send(request, 4)).error_code == 0


async def test_empty_and_missing_groups(send) -> None:
    names = {"protocol_type": "consumer", "protocol_name": "range"}
    empty = await send(SyncGroupRequest(group_id="", **names), 5)
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
    missing = await send(SyncGroupRequest(group_id="g", member_id="x", generation_id=1, **names), 5)
    assert missing.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_follower_waits_for_the_leader(send) -> None:
    first = await stable(send, "g")
    followers = []
    shares = []

    async def second() -> None:
        followers.append(await send(join_request("g"), 3))
        shares.append(await sync(send, "g", followers[0], protocol_type="consumer"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(second)
        await trio.testing.wait_all_tasks_blocked()
        lead = await send(join_request("g", first.member_id), 9)
        await trio.testing.wait_all_tasks_blocked()
        assert not shares
        await sync(send, "g", lead, {first.member_id: b"1", followers[0].member_id: b"2"})
    assert shares[0].assignment == b"2"


async def test_assignments_that_no_record_can_hold_are_refused_before_one_is_made(
    open_test_broker: Callable[..., Broker], sender_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = open_test_broker({"message.max.bytes": "20000", "offsets.topic.num.partitions": "3"})
    send = sender_of(broker)
    joined = await join_alone(send, "g")

    def made(*_: object) -> None:
        raise AssertionError("a record was made")

    with monkeypatch.context() as patched:
        patched.setattr("leafcuttr.state.groups.coordinator.group_record", made)
        refused = await sync(send, "g", joined, {joined.member_id: bytes(30_000)})
    assert refused.error_code == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    again = await send(join_request("g", joined.member_id), 9)
    assert (await sync(send, "g", again, {again.member_id: b"a"})).assignment == b"a"
