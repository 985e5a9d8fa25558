"""Requests to the group coordinator of a broker without sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.coordinator import GroupCoordinator
from leafcuttr.state.groups.events import Join, JoinAnswer, Sync, SyncAnswer


@asynccontextmanager
async def running(groups: GroupCoordinator) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        await nursery.start(groups.run)
        while groups.loading:
            await trio.sleep(0)
        yield
        nursery.cancel_scope.cancel()


def join_event(member_id: str = "", **changes: object) -> Join:
    fields: dict[str, object] = {
        "instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "protocol_type": "consumer",
        "protocols": (("range", b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"),),
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 30_000,
        "two_steps": False,
    }
    return Join(member_id=member_id, **{**fields, **changes})  # type: ignore[arg-type]


async def join(groups: GroupCoordinator, group: str, member_id: str = "", **changes: object) -> JoinAnswer:
    waiter = groups.join(group, join_event(member_id, **changes))
    await waiter.wait()
    assert isinstance(waiter.answer, JoinAnswer)
    return waiter.answer


async def sync(groups: GroupCoordinator, group: str, joined: JoinAnswer) -> SyncAnswer:
    assignments = {member.member_id: b"to " + member.member_id.encode() for member in joined.members}
    event = Sync(
        member_id=joined.member_id,
        instance_id=None,
        generation=joined.generation,
        protocol_type=None,
        protocol_name=None,
        assignments=assignments,
    )
    waiter = groups.sync(group, event)
    await waiter.wait()
    assert isinstance(waiter.answer, SyncAnswer)
    return waiter.answer


async def commit(
    broker: Broker, group: str, who: Committer | None = None, *, partition: int = 0, offset: int = 5
) -> ErrorCode:
    new = NewOffset("t", broker.topics.by_name["t"].id, partition, offset, 3, "said")
    result = broker.groups.offsets.commit(group, who or Committer(), [new])
    return (result if isinstance(result, list) else await result)[0]


async def topics(broker: Broker) -> Broker:
    await broker.topics.create("t", 2, {})
    await broker.groups.ready()
    return broker
