"""A name that one of many has: on the coordinator in process, beside members that are clients."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.client.claim_outage import LASTS_S
from leafcuttr.state.groups.events import Leaver
from leafcuttr.wire.claim_protocol import HOLDS, PROTOCOL_NAME, PROTOCOL_TYPE, WAITS, assignments
from leafcuttr_sdk.errors import (
    CoordinatorNotAvailable,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
)
from leafcuttr_sdk.peers import PeerClaim
from plugins.facade.peer.conftest import Live
from support.coordinator import join, sync

Run = Callable[..., AbstractAsyncContextManager[Live]]


class Waiting:
    """A claim in a task of its own, from when it is wanted until `over` is set."""

    def __init__(self) -> None:
        self.claim: PeerClaim | None = None
        self.over = trio.Event()

    @property
    def has_it(self) -> bool:
        return self.claim is not None and self.claim.is_held


@asynccontextmanager
async def wanting(live: Live, count: int) -> AsyncIterator[list[Waiting]]:
    """So many at once."""
    some = [Waiting() for _ in range(count)]

    async def want(one: Waiting) -> None:
        async with live.peer.claim("owner") as one.claim:
            await one.over.wait()
        one.claim = None

    async with trio.open_nursery() as nursery:
        for one in some:
            nursery.start_soon(want, one)
        await trio.sleep(1)
        yield some
        nursery.cancel_scope.cancel()


async def test_one_has_it_and_hands_it_on(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, wanting(live, 3) as some:
        while not any(one.has_it for one in some):
            await trio.sleep(0.01)
        for _ in range(3):
            (holder,) = [one for one in some if one.has_it]
            before = trio.current_time()
            holder.over.set()
            some.remove(holder)
            while some and not any(one.has_it for one in some):
                await trio.sleep(0.01)
            assert trio.current_time() - before < 1, "the next one is told at once"
        await wait_all_tasks_blocked()
        assert live.core.groups.find("owner").is_empty


async def test_a_newcomer_takes_it_from_nobody(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.claim("owner") as claim:
        for _ in range(4):
            async with wanting(live, 2) as others:
                assert claim.is_held
                assert not any(one.has_it for one in others)
        assert claim.is_held


async def test_it_is_held_beyond_many_sessions(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.claim("owner", session_timeout_ms=6000) as claim:
        await trio.sleep(100)
        assert claim.is_held
        with trio.move_on_after(1) as limit:
            await claim.lost()
        assert limit.cancelled_caught


async def test_a_member_that_is_removed_has_lost_it(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.claim("owner") as claim:
        (member,) = live.core.groups.find("owner").members
        live.core.groups.leave("owner", [Leaver(member.member_id)])
        assert not claim.is_held, "at once"
        await claim.lost()
        assert not claim.is_held


async def test_a_client_that_waits_gets_it_when_it_is_over(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        groups = live.core.groups
        ours = {"protocol_type": PROTOCOL_TYPE, "protocols": ((PROTOCOL_NAME, WAITS),)}
        async with trio.open_nursery() as nursery:
            async with live.peer.claim("owner") as claim:
                answered: list[object] = []

                async def come() -> None:
                    answered.append(await join(groups, "owner", **ours))

                nursery.start_soon(come)
                while not answered:
                    await trio.sleep(0.01)
                assert claim.is_held
                (joined,) = answered
                client = await sync(groups, "owner", joined)  # type: ignore[arg-type]
                assert client.assignment == WAITS
                assert claim.is_held
            again = await join(groups, "owner", joined.member_id, **ours)  # type: ignore[attr-defined]
            roster = [(each.member_id, each.metadata) for each in again.members]
            assert assignments(roster) == {again.member_id: HOLDS}


async def test_one_that_a_client_holds_is_waited_for(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, trio.open_nursery() as nursery:
        groups = live.core.groups
        ours = {"protocol_type": PROTOCOL_TYPE, "protocols": ((PROTOCOL_NAME, WAITS),)}
        joined = await join(groups, "owner", **ours)
        await sync(groups, "owner", joined)
        entered = trio.Event()

        async def want() -> None:
            async with live.peer.claim("owner"):
                entered.set()
                await trio.sleep_forever()

        nursery.start_soon(want)
        await trio.sleep(1)
        holding = {**ours, "protocols": ((PROTOCOL_NAME, HOLDS),)}
        joined = await join(groups, "owner", joined.member_id, **holding)
        await wait_all_tasks_blocked()
        assert not entered.is_set()
        groups.leave("owner", [Leaver(joined.member_id)])
        with trio.fail_after(1):
            await entered.wait()
        nursery.cancel_scope.cancel()


async def test_one_that_waits_is_told_who_has_it(run: Run, autojump_clock: MockClock) -> None:
    told: list[str | None] = []
    async with run() as live, live.peer.claim("owner", on_wait=told.append):
        assert not told, "nobody else has it"
        with trio.move_on_after(1):
            async with live.peer.claim("owner", on_wait=told.append):
                pytest.fail("two have it")
        assert told == [None]


async def test_a_coordinator_that_stays_away_is_what_is_told(
    run: Run, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[float, str | None]] = []
    is_there = trio.Event()

    async with run() as live, trio.open_nursery() as nursery:
        really_ready = live.core.groups.ready

        async def ready() -> None:
            if not is_there.is_set():
                raise CoordinatorNotAvailable
            await really_ready()

        monkeypatch.setattr(live.core.groups, "ready", ready)
        began = trio.current_time()

        async def want() -> None:
            waits = live.peer.claim("owner", on_wait=lambda one: told.append((trio.current_time(), one)))
            async with waits as claim:
                assert claim.is_held
                nursery.cancel_scope.cancel()

        nursery.start_soon(want)
        await trio.sleep(8)
        assert told, "it has lasted"
        assert all(at - began >= LASTS_S for at, _ in told)
        line = "the coordinator of the group owner: coordinator not available (COORDINATOR_NOT_AVAILABLE)"
        assert {one for _, one in told} == {line}
        is_there.set()
        await trio.sleep(8)
        pytest.fail("it was not claimed")


async def test_one_that_waits_leaves_when_it_is_cancelled(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.peer.claim("owner"):
        with trio.move_on_after(1) as limit:
            async with live.peer.claim("owner"):
                pytest.fail("two have it")
        assert limit.cancelled_caught
        assert len(live.core.groups.find("owner").members) == 1


async def test_what_cannot_be_claimed(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live, live.view.consumer("consumers", ["t"]) as consumer:
        await consumer.poll(wait_s=1)
        with pytest.raises(InvalidGroupId):
            await entered(live.peer.claim(""))
        with pytest.raises(InvalidSessionTimeout, match="6000 to"):
            await entered(live.peer.claim("owner", session_timeout_ms=1))
        with pytest.raises(InconsistentGroupProtocol):
            await entered(live.peer.claim("consumers"))


async def entered(claim: AbstractAsyncContextManager[PeerClaim]) -> None:
    async with claim:
        pytest.fail("it was entered")


async def test_what_the_block_raises_is_raised_as_it_is(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        with pytest.raises(ZeroDivisionError):
            async with live.peer.claim("owner"):
                1 / 0  # noqa: B018
