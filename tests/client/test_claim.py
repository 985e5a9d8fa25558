"""A name that one process of many has."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr.client import claim_outage
from leafcuttr.client.claim import ClaimState
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.claim_protocol import HOLDS, PROTOCOL_NAME, PROTOCOL_TYPE, WAITS
from leafcuttr.wire.messages.heartbeat import HeartbeatResponse
from leafcuttr.wire.messages.join_group import JoinGroupResponse
from leafcuttr.wire.messages.leave_group import LeaveGroupResponse
from leafcuttr.wire.messages.sync_group import SyncGroupResponse
from leafcuttr_sdk.errors import BrokerError, InvalidSessionTimeout
from leafcuttr_sdk.peers import Peer, PeerClaim
from support.broker_process import running_broker
from support.cutting_proxy import CuttingProxy
from support.remote_peers import peer_at
from support.scripted_broker import ScriptedBroker, coordinator, metadata
from support.waiting import eventually, within

CANNOT = "cannot be confirmed"
OpenPeer = Callable[..., AbstractAsyncContextManager[Peer]]


def test_it_is_held_for_a_session_from_the_last_request_that_was_answered() -> None:
    state = ClaimState(10)
    assert not state.is_held(0)
    assert state.metadata(0) == WAITS
    state.assigned(HOLDS, sent_at=5)
    assert state.is_held(14.9)
    assert state.metadata(14.9) == HOLDS
    assert not state.is_held(15)
    state.heard(sent_at=8, now=9)
    assert state.is_held(17.9)
    assert state.seconds_left(17) == 1
    state.heard(sent_at=6, now=10)  # answers may overtake each other
    assert state.is_held(17.9)


def test_what_has_lapsed_comes_back_by_an_assignment_only() -> None:
    state = ClaimState(10)
    state.assigned(HOLDS, sent_at=0)
    assert not state.has_lapsed(9)
    state.heard(sent_at=9, now=11)
    assert not state.is_held(11)
    assert state.has_lapsed(11)
    state.assigned(HOLDS, sent_at=12)
    assert state.is_held(13)
    assert not state.has_lapsed(13)


def test_another_member_or_none_at_all() -> None:
    state = ClaimState(10)
    state.assigned(HOLDS, sent_at=0)
    state.assigned(WAITS, sent_at=1)
    assert not state.is_held(1)
    assert not state.has_lapsed(1)
    state.heard(sent_at=2, now=2)
    assert not state.is_held(2)
    state.assigned(HOLDS, sent_at=3)
    state.dropped()
    assert not state.is_held(3)
    assert state.seconds_left(3) == 0
    assert state.metadata(3) == WAITS


async def test_the_second_waits_until_the_first_has_given_it_back(
    peer: Peer, topic: str, open_peer: OpenPeer
) -> None:
    second_has_it = trio.Event()
    async with open_peer() as other, trio.open_nursery() as nursery:

        async def wait_for_it() -> None:
            async with other.claim(f"c-{topic}", session_timeout_ms=6000) as claim:
                assert claim.is_held
                second_has_it.set()

        async with peer.claim(f"c-{topic}", session_timeout_ms=6000) as claim:
            assert claim.is_held
            nursery.start_soon(wait_for_it)
            # The second one has joined once the first had to join again, and keeps what it has.
            with trio.move_on_after(1.5):
                await claim.lost()
            assert claim.is_held
            assert not second_has_it.is_set()
        with within(5, "the second one to have it"):  # less than a session
            await second_has_it.wait()
    assert f"c-{topic}" not in await peer.groups()


async def test_one_that_waits_is_told_who_has_it(peer: Peer, topic: str, open_peer: OpenPeer) -> None:
    told: list[str | None] = []
    name = f"w-{topic}"
    async with open_peer() as other, peer.claim(name, session_timeout_ms=6000, on_wait=told.append):
        assert not told, "nobody else has it"
        async with trio.open_nursery() as nursery:

            async def wait_for_it() -> None:
                async with other.claim(name, session_timeout_ms=6000, on_wait=told.append):
                    pytest.fail("two have it")

            nursery.start_soon(wait_for_it)
            await eventually(lambda: bool(told), "the second one to be told")
            nursery.cancel_scope.cancel()
    assert set(told) == {None}


class Coordinator:
    """What a broker answers that knows of no coordinator, or is none."""

    def __init__(self) -> None:
        self.find = self.join = self.sync = self.beat = ErrorCode.NONE
        self.assignment = WAITS

    async def start(self, nursery: trio.Nursery) -> ScriptedBroker:
        broker = ScriptedBroker(
            {
                ApiKey.METADATA: lambda call: metadata(call.broker),
                ApiKey.FIND_COORDINATOR: lambda call: coordinator(call, self.find),
                ApiKey.JOIN_GROUP: lambda _: JoinGroupResponse(
                    error_code=self.join,
                    generation_id=1,
                    protocol_type=PROTOCOL_TYPE,
                    protocol_name=PROTOCOL_NAME,
                    leader="other",
                    member_id="this",
                    members=[],
                ),
                ApiKey.SYNC_GROUP: lambda _: SyncGroupResponse(
                    error_code=self.sync, assignment=self.assignment
                ),
                ApiKey.HEARTBEAT: lambda _: HeartbeatResponse(error_code=self.beat),
                ApiKey.LEAVE_GROUP: lambda _: LeaveGroupResponse(error_code=0, members=[]),
            }
        )
        await broker.start(nursery)
        return broker


@pytest.mark.one_in(3)
@pytest.mark.parametrize("where", ["find", "join", "sync"])
@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
async def test_a_coordinator_that_stays_away_is_what_is_told(
    nursery: trio.Nursery,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    where: str,
    code: ErrorCode,
) -> None:
    monkeypatch.setattr(claim_outage, "LASTS_S", 0.2)
    coordinator, told = Coordinator(), list[str | None]()
    setattr(coordinator, where, code)
    broker = await coordinator.start(nursery)
    has_it = trio.Event()

    async def want() -> None:
        async with peer.claim("owner", session_timeout_ms=3000, on_wait=told.append):
            has_it.set()

    async with peer_at(broker.address) as peer, trio.open_nursery() as wanting:
        wanting.start_soon(want)
        await eventually(lambda: len(told) > 1, "what the coordinator says")
        assert all(line is not None and code.name in line for line in told)
        assert f"claim 'owner' {CANNOT}" not in caplog.text, "the caller has it"
        setattr(coordinator, where, ErrorCode.NONE)
        await eventually(lambda: None in told, "another one has it")
        coordinator.assignment, coordinator.beat = HOLDS, ErrorCode.REBALANCE_IN_PROGRESS
        with within(30, "the claim"):
            await has_it.wait()


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
async def test_a_coordinator_that_goes_away_is_one_line(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: ErrorCode
) -> None:
    monkeypatch.setattr(claim_outage, "LASTS_S", 0.0)
    coordinator, told = Coordinator(), list[str | None]()
    coordinator.assignment = HOLDS
    broker = await coordinator.start(nursery)
    async with (
        peer_at(broker.address) as peer,
        peer.claim("owner", session_timeout_ms=600, on_wait=told.append) as claim,
    ):
        coordinator.join = coordinator.beat = code
        with within(30, "the loss"):
            await claim.lost()
        asked = broker.asked("JoinGroupRequest")
        await eventually(lambda: broker.asked("JoinGroupRequest") > asked + 3, "more attempts")
    lines = [each.getMessage() for each in caplog.records if CANNOT in each.getMessage()]
    assert len(lines) == 1
    assert code.name in lines[0]
    assert not told, "it is waited for no more"


async def test_one_of_many_has_it_at_any_time(topic: str, open_peer: OpenPeer) -> None:
    held: list[PeerClaim] = []
    had: set[int] = set()

    async def member(number: int) -> None:
        async with open_peer() as peer, peer.claim(f"m-{topic}", session_timeout_ms=6000) as claim:
            assert not any(other.is_held for other in held)
            held.append(claim)
            had.add(number)
            await trio.sleep(0.05)
            assert claim.is_held
            held.remove(claim)

    with within(60, "all members"):
        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(member, number)
    assert had == set(range(4))


async def test_its_connection_is_closed_with_it(peer: Peer, topic: str) -> None:
    """The one for requests that the coordinator holds back."""
    links: dict[Any, Any] = peer._cluster._links._links  # type: ignore[attr-defined]
    async with peer.claim(f"l-{topic}", session_timeout_ms=6000):
        assert [lane for _, lane in links if topic in lane]
    assert not [lane for _, lane in links if topic in lane]


async def test_a_session_that_the_cluster_does_not_allow(peer: Peer, topic: str) -> None:
    with pytest.raises(InvalidSessionTimeout):
        async with peer.claim(f"s-{topic}", session_timeout_ms=1):
            pass


async def test_a_group_of_consumers_is_no_claim(peer: Peer, topic: str, address: str) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": address, "group.id": f"g-{topic}"})
    consumer.subscribe([topic])
    try:

        async def assigned() -> bool:
            await trio.to_thread.run_sync(consumer.poll, 0.1)
            return bool(consumer.assignment())

        await eventually(assigned, "an assignment")
        with pytest.raises(BrokerError) as raised:
            async with peer.claim(f"g-{topic}", session_timeout_ms=6000):
                pass
        assert raised.value.code.name == "INCONSISTENT_GROUP_PROTOCOL"
    finally:
        await trio.to_thread.run_sync(consumer.close)


async def test_what_the_block_raises_comes_out_as_it_is(peer: Peer, topic: str) -> None:
    with pytest.raises(KeyError):
        async with peer.claim(f"r-{topic}"):
            raise KeyError
    with trio.CancelScope() as scope:
        async with peer.claim(f"r-{topic}"):
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught


@pytest.mark.long
async def test_one_that_is_cut_off_loses_it_in_time_and_another_gets_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = CuttingProxy()
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,PROXIED://127.0.0.1:0",
        "advertised.listeners": f"PROXIED://{proxy.address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT",
        "group.min.session.timeout.ms": "100",
    }
    with running_broker(tmp_path, settings) as broker, caplog.at_level(logging.WARNING):
        proxied = int(broker.listeners["PROXIED"].rpartition(":")[2])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(proxy.serve, proxied)
            direct = broker.listeners["PLAINTEXT"]
            async with (
                peer_at(proxy.address) as first,
                peer_at(direct) as second,
                first.claim("c", session_timeout_ms=1000) as claim,
            ):
                proxy.is_open = False
                proxy.cut_all()
                with within(30, "the loss"):
                    await claim.lost()
                assert not claim.is_held
                async with second.claim("c", session_timeout_ms=1000) as other:
                    assert other.is_held
                    assert not claim.is_held

                    def warned() -> bool:
                        return any(f"claim 'c' {CANNOT}" in each.getMessage() for each in caplog.records)

                    await eventually(warned, "one line in the log")
            nursery.cancel_scope.cancel()
