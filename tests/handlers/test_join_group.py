"""JoinGroup: the answers of each version, the wait for the others, the end of it when the broker stops."""

import uuid
from collections.abc import Callable

import pytest
import trio
import trio.testing

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from support.groups import join_alone, join_request, stable


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """With few partitions for groups, which are quicker made than 50."""
    return open_test_broker({"offsets.topic.num.partitions": "3"})


async def test_two_steps_from_version_4_on(send) -> None:
    first = await send(join_request("g"), 4, client_id="app")
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    name, _, unique = first.member_id.partition("-")
    assert name == "app" and uuid.UUID(unique).version == 4
    second = await send(join_request("g", first.member_id), 4)
    assert (second.error_code, second.generation_id, second.leader) == (0, 1, first.member_id)
    assert [member.member_id for member in second.members] == [first.member_id]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_one_step_before(send, version: int) -> None:
    answer = await send(join_request("g"), version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")


async def test_static_members_need_no_second_step(send) -> None:
    answer = await send(join_request("g", group_instance_id="one"), 5)
    assert answer.error_code == 0 and answer.member_id.startswith("one-")
    assert answer.members[0].group_instance_id == "one"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("request_", "error", "member_id"),
    [
        (join_request(""), ErrorCode.INVALID_GROUP_ID, ""),
        (join_request("g", session_timeout_ms=5_999), ErrorCode.INVALID_SESSION_TIMEOUT, ""),
        (join_request("g", session_timeout_ms=1_800_001), ErrorCode.INVALID_SESSION_TIMEOUT, ""),
        (join_request("g", "who"), ErrorCode.UNKNOWN_MEMBER_ID, "who"),
        (join_request("g", protocols=[]), ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        (join_request("g", protocol_type=""), ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
    ],
)
@pytest.mark.parametrize("version", [3, 6, 7, 9])
async def test_refusals(send, request_, error: ErrorCode, member_id: str, version: int) -> None:
    answer = await send(request_, version)
    assert answer == JoinGroupResponse(
        error_code=error, member_id=member_id, protocol_name=None if version >= 7 else ""
    )


async def test_a_waiting_member_is_answered_when_the_other_rejoins(send) -> None:
    first = await stable(send, "g")
    answers: list[JoinGroupResponse] = []

    async def second() -> None:
        answers.append(await send(join_request("g"), 3))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(second)
        await trio.testing.wait_all_tasks_blocked()
        assert not answers
        again = await send(join_request("g", first.member_id), 9)
    assert again.generation_id == answers[0].generation_id == 2
    assert len(again.members) == 2 and not answers[0].members
    assert answers[0].leader == again.leader == first.member_id


async def test_a_cancelled_wait_leaves_the_member_in_the_group(send, broker: Broker) -> None:
    first = await stable(send, "g")
    with trio.move_on_after(0):
        await send(join_request("g"), 3)
    group = broker.groups.find("g")
    assert len(group.members) == 2
    again = await send(join_request("g", first.member_id), 9)
    assert again.generation_id == 2 and len(again.members) == 2
    assert not broker.delayed_requests


async def test_members_that_wait_are_answered_when_the_broker_stops(send, broker: Broker) -> None:
    await stable(send, "g")
    answers: list[JoinGroupResponse] = []

    async def second() -> None:
        answers.append(await send(join_request("g"), 3))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(second)
        await trio.testing.wait_all_tasks_blocked()
        for poll in list(broker.delayed_requests):
            poll.give_up()
    assert answers[0].error_code == ErrorCode.NOT_COORDINATOR


async def test_maximum_size(open_test_broker: Callable[..., Broker], sender_of) -> None:
    send = sender_of(open_test_broker({"group.max.size": "1"}))
    await stable(send, "g")
    answer = await send(join_request("g"), 9)
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


async def test_client_host_and_id_are_kept(send, broker: Broker) -> None:
    await join_alone(send, "g")
    (member,) = broker.groups.find("g").members
    assert (member.client_id, member.client_host) == ("test", "/127.0.0.1")


async def test_metadata_that_no_record_could_hold_is_not_taken_in(
    open_test_broker: Callable[..., Broker], sender_of
) -> None:
    broker = open_test_broker({"message.max.bytes": "20000", "offsets.topic.num.partitions": "3"})
    send = sender_of(broker)

    def offering(size: int) -> list[JoinGroupRequestProtocol]:
        return [JoinGroupRequestProtocol(name="range", metadata=bytes(size))]

    large = await send(join_request("g", protocols=offering(90_000)), 3)
    assert (large.error_code, large.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert (await send(join_request("g", protocols=offering(50_000)), 3)).error_code == 0
    group = broker.groups.find("g")
    (member,) = group.members
    again = await send(join_request("g", member.member_id, protocols=offering(60_000)), 3)
    assert again.error_code == 0, "its former metadata does not count"
    second = await send(join_request("g", protocols=offering(30_000)), 3)
    assert second.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert group.members.size == 60_000 + len("range")
