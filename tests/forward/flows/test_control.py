"""Pause, resume and reset, as records at the target; and who has the flow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.client import claim_outage
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.messages.join_group import JoinGroupResponse
from leafcuttr_forward.flows import control, flow
from leafcuttr_forward.flows.positions import batch_of, read_entries
from leafcuttr_forward.flows.report import FlowState
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.types import TopicPartition
from support.flows import (
    contents,
    fill,
    flow_of,
    flowing,
    numbered,
    peer_of,
    two_clusters,
    until_position,
    until_state,
)
from support.scripted_broker import ScriptedBroker, coordinator, metadata
from support.waiting import eventually

PARTITION = TopicPartition("orders", 0)


@pytest.mark.long
async def test_a_flow_is_paused_and_goes_on(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(30)
        await fill(ends.source, "orders", records[:10])
        async with flowing(flow_of("orders"), ends.source, ends.target) as report:
            await until_position(report, PARTITION, 10)
            await control.pause(ends.target, "f", 1)
            await control.pause(ends.target, "another", 1)
            await until_state(report, FlowState.PAUSED)
            await fill(ends.source, "orders", records[10:20])
        assert await control.is_paused(ends.target, "f")
        async with flowing(flow_of("orders"), ends.source, ends.target) as report:
            await until_state(report, FlowState.PAUSED)  # it outlasts the process
            await fill(ends.source, "orders", records[20:])
            assert report.partitions == {}
            await control.resume(ends.target, "f", 2)
            await until_position(report, PARTITION, 30)
        assert not await control.is_paused(ends.target, "f")
        assert await contents(ends.target, "orders") == records


async def is_reset(target: Peer) -> bool:
    """Whether no reset of the flow is requested any more."""
    entries = await read_entries(target, await control.requests_partition(target))
    return control.Requests("f").reset_key not in entries


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("to", "first"),
    [("earliest", 0), ("latest", 20), (1, 0), (1 << 60, 20), ({PARTITION: 15}, 15)],
    ids=str,
)
async def test_a_paused_flow_is_reset(tmp_path: Path, to: control.ResetTo, first: int) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(25)
        await fill(ends.source, "orders", records[:20])
        async with flowing(flow_of("orders"), ends.source, ends.target) as report:
            await until_position(report, PARTITION, 20)
            await control.pause(ends.target, "f", 1)
            await until_state(report, FlowState.PAUSED)
            await control.reset(ends.target, "f", to, 2)
            await eventually(lambda: is_reset(ends.target), "the request is taken back")
            assert report.partitions[PARTITION].position == first
            await control.resume(ends.target, "f", 3)
            await fill(ends.source, "orders", records[20:])
            await until_position(report, PARTITION, 25)
        assert await contents(ends.target, "orders") == records[:20] + records[first:]


@pytest.mark.long
async def test_a_flow_that_runs_is_not_reset_until_it_is_paused(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(20))
        async with flowing(flow_of("orders"), ends.source, ends.target) as report:
            await until_position(report, PARTITION, 20)
            await control.reset(ends.target, "f", "earliest", 1)
            await fill(ends.source, "orders", numbered(5))
            await until_position(report, PARTITION, 25)
            assert len(await contents(ends.target, "orders")) == 25
            await control.pause(ends.target, "f", 2)
            await eventually(lambda: report.partitions[PARTITION].position == 0, "it is reset")


@pytest.mark.long
async def test_a_flow_that_did_not_run_when_it_was_reset_and_resumed_goes_on_from_there(
    tmp_path: Path,
) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(10)
        await fill(ends.source, "orders", records)
        async with flowing(flow_of("orders"), ends.source, ends.target) as report:
            await until_position(report, PARTITION, 10)
        await control.pause(ends.target, "f", 1)
        await control.reset(ends.target, "f", {PARTITION: 6}, 2)
        await control.resume(ends.target, "f", 3)
        async with flowing(flow_of("orders"), ends.source, ends.target) as report:
            await until_state(report, FlowState.RUNNING)
            assert await is_reset(ends.target)
            await until_position(report, PARTITION, 10)
        assert await contents(ends.target, "orders") == [*records, *records[6:]]


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (["paused"], True),
        (["running"], False),
        (["reset"], False),
        (["paused", "reset"], True),
        (["paused", "reset", "running"], True),
        (["paused", "reset", "running", "done"], False),
        (["paused", "reset", "reset", "running"], True),
        (["reset", "paused", "running"], True),
        (["paused", "running", "reset"], False),
        (["paused", "reset", "running", "reset"], False),
    ],
    ids=str,
)
def test_when_a_flow_copies_nothing(said: list[str], holds: bool) -> None:
    """In whichever pieces the records come, and whatever compaction has left of them."""
    requests = control.Requests("f")
    keys = {"reset": requests.reset_key, "done": requests.reset_key}
    state = b'{"flow":"f","request":"state"}'
    values = {"reset": b'{"to":"earliest"}', "done": None}
    written = [(keys.get(one, state), values.get(one, b'{"state":"%s"}' % one.encode())) for one in said]
    data = b"".join(bytes(batch_of({key: value}, 1)) for key, value in written)
    requests.take(data, 0)
    assert requests.holds is holds
    pieces = control.Requests("f")
    for key, value in written:
        pieces.take(bytes(batch_of({key: value}, 1)), 0)
    assert pieces.holds is holds


@pytest.mark.long
async def test_a_second_process_stands_by(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(20)
        spec = flow_of("orders")
        async with flowing(spec, ends.source, ends.target) as first:
            await until_state(first, FlowState.RUNNING)
            await fill(ends.source, "orders", records[:10])
            async with flowing(spec, ends.source, ends.target) as second:
                await until_position(first, PARTITION, 10)
                await until_state(second, FlowState.STANDING_BY)
        async with flowing(spec, ends.source, ends.target) as second:
            await fill(ends.source, "orders", records[10:])
            await until_position(second, PARTITION, 20)
        assert await contents(ends.target, "orders") == records


async def test_one_that_stands_by_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two relays of one name by mistake: the second would wait without a word."""
    monkeypatch.setattr(flow, "STANDING_S", 0.01)
    line = "another process with a flow of this name has it; this one stands by"
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        async with flowing(flow_of("orders"), ends.source, ends.target) as first:
            await until_state(first, FlowState.RUNNING)
            caplog.clear()
            async with flowing(flow_of("orders"), ends.source, ends.target):
                await eventually(lambda: line in caplog.text, "the line")


class Contended:
    """A target that first cannot say who has the flow, and then that another process has it."""

    name, trouble = "target", None

    @asynccontextmanager
    async def claim(self, name: str, *, on_wait: Callable[[str | None], None]) -> AsyncIterator[None]:
        await trio.testing.wait_all_tasks_blocked()
        on_wait("its coordinator is away")
        await trio.sleep(60)
        on_wait(None)
        await trio.sleep_forever()
        yield


async def test_one_that_stands_by_says_so_after_the_coordinator_was_away(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    target: Any = Contended()
    async with flowing(flow_of("orders"), target, target) as report:
        await trio.sleep(60 + flow.STANDING_S / 2)
        assert report.state is FlowState.STANDING_BY
        assert "stands by" not in caplog.text
        await trio.sleep(flow.STANDING_S)
        assert "this one stands by" in caplog.text


async def test_a_coordinator_that_is_away_is_no_other_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(flow, "STANDING_S", 0.0)
    monkeypatch.setattr(claim_outage, "LASTS_S", 0.2)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    refusing = JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id="", members=[])
    target = ScriptedBroker(
        {
            ApiKey.METADATA: lambda call: metadata(call.broker),
            ApiKey.FIND_COORDINATOR: coordinator,
            ApiKey.JOIN_GROUP: lambda _: refusing,
        }
    )
    line = "the coordinator of the group leafcuttr-f-owner: coordinator not available (COORDINATOR_NOT_AVAILABLE)"
    quickly = {"retry.backoff.ms": "5", "retry.backoff.max.ms": "50"}
    async with trio.open_nursery() as nursery, two_clusters(tmp_path) as ends:
        await target.start(nursery)
        async with (
            peer_of(target.address, **quickly) as peer,
            flowing(flow_of("orders"), ends.source, peer) as report,
        ):
            assert report.state is FlowState.STARTING
            await until_state(report, FlowState.WAITING)
            assert report.trouble == line
            assert not report.is_well
            said = target.asked("JoinGroupRequest")
            await eventually(lambda: target.asked("JoinGroupRequest") > said + 5, "more attempts")
            assert report.trouble == line
        lines = [each.getMessage() for each in caplog.records if "flow f" in each.getMessage()]
        assert lines == [f"flow f: {line}; it is tried again"]
        monkeypatch.setattr(flow, "REPEAT_S", 0.0)
        async with peer_of(target.address, **quickly) as peer, flowing(flow_of("orders"), ends.source, peer):
            await eventually(lambda: caplog.text.count(f"{line}; it is") > 2, "the line again, in its time")
        nursery.cancel_scope.cancel()


async def test_the_second_takes_over(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(20)
        spec = flow_of("orders")
        async with trio.open_nursery() as nursery:
            first = await nursery.start(_held, spec, ends)
            await until_state(first[0], FlowState.RUNNING)
            async with flowing(spec, ends.source, ends.target) as second:
                await fill(ends.source, "orders", records[:10])
                await until_position(first[0], PARTITION, 10)
                first[1].cancel()
                await fill(ends.source, "orders", records[10:])
                await until_position(second, PARTITION, 20)
        assert await contents(ends.target, "orders") == records


async def _held(spec: object, ends: object, *, task_status: object) -> None:
    import trio

    with trio.CancelScope() as scope:
        async with flowing(spec, ends.source, ends.target) as report:  # type: ignore[arg-type, attr-defined]
            task_status.started((report, scope))  # type: ignore[attr-defined]
            await trio.sleep_forever()


@pytest.mark.parametrize(
    "to",
    [None, "now", -1, True, 1.5, [1], [{"topic": "a"}], [{"topic": "a", "partition": 0, "offset": -1}], {}],
    ids=str,
)
def test_requests_that_mean_nothing_are_none(to: object) -> None:
    import json

    requests = control.Requests("f")
    requests.take_all({requests.reset_key: json.dumps({"to": to}).encode()})
    assert requests.reset is None


def test_requests_of_broken_records() -> None:
    requests = control.Requests("f")
    assert not requests.take_all({requests.reset_key: b"{", b"x": b"y"})
    assert requests.take_all({b'{"flow":"f","request":"state"}': b'{"state":"paused"}'})
    assert requests.paused
