"""Sources that are copies of each other, exchanged while the flow runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from leafcuttr_forward.flows import copying
from leafcuttr_forward.flows.report import FlowState
from leafcuttr_forward.flows.switching import SourceSwitch
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.flows import (
    Ends,
    address_of,
    contents,
    fill,
    flow_of,
    flowing,
    numbered,
    peer_of,
    two_clusters,
    until_position,
)
from support.forwarded_batches import stored
from support.live_broker import serve_here
from support.waiting import eventually

PARTITION = TopicPartition("orders", 0)
SPEC = flow_of("orders", source_id="copies", refresh_s=0.05)


@asynccontextmanager
async def copies(folder: Path) -> AsyncIterator[tuple[Ends, Peer]]:
    """Source, target, and a second source."""
    async with two_clusters(folder) as ends, trio.open_nursery() as nursery:
        other = await serve_here(nursery, folder / "other")
        async with peer_of(address_of(other)) as peer:
            for one in (ends.source, peer):
                await one.create_topic("orders", partitions=1)
            yield ends, peer
        nursery.cancel_scope.cancel()


async def test_a_switch_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async with copies(tmp_path) as (ends, other):
        records = numbered(60)
        await fill(ends.source, "orders", records[:20])
        await fill(other, "orders", records, together=7)  # the same records, in other batches
        switch = SourceSwitch(ends.source)
        async with flowing(SPEC, switch, ends.target) as report:
            await until_position(report, PARTITION, 20)
            switch.switch(other)
            await until_position(report, PARTITION, 60)
            assert (report.switches, report.source) == (1, other.name)
        assert await contents(ends.target, "orders") == records
        assert switch.refused == {}


async def test_a_source_that_is_no_copy_is_refused(tmp_path: Path) -> None:
    async with copies(tmp_path) as (ends, other):
        records = numbered(60)
        await fill(ends.source, "orders", records[:20])
        await fill(other, "orders", numbered(30, first=500))
        switch = SourceSwitch(ends.source)
        told: list[str] = []
        switch.on_refused.append(lambda peer, why: told.append(peer.name))
        async with flowing(SPEC, switch, ends.target) as report:
            await until_position(report, PARTITION, 20)
            switch.switch(other)
            await eventually(lambda: bool(switch.refused), "it is refused")
            line = "orders-0: the record at offset 19 is another one than was copied"
            assert switch.refused == {other.name: line}
            assert report.trouble == line
            switch.switch(ends.source)
            await fill(ends.source, "orders", records[20:])
            await until_position(report, PARTITION, 60)
            assert report.trouble is None
        assert await contents(ends.target, "orders") == records
        assert other.name in told


async def test_a_source_without_the_last_record_is_refused(tmp_path: Path) -> None:
    """It has as many offsets, and a marker of a transaction in the place of that record."""
    async with copies(tmp_path) as (ends, other):
        records = numbered(30)
        await fill(ends.source, "orders", records[:20])
        await fill(other, "orders", records[:18])
        async with other.transaction("marks") as producer, producer.begin() as transaction:
            batch = stored([(0, records[18])], epoch=-1)
            await transaction.append([NewBatch(PARTITION, bytearray(batch.data))])
        await fill(other, "orders", records[20:])
        switch = SourceSwitch(ends.source)
        async with flowing(SPEC, switch, ends.target) as report:
            await until_position(report, PARTITION, 20)
            switch.switch(other)
            await eventually(lambda: bool(switch.refused), "it is refused")
        line = "orders-0: there is no record at offset 19, which was copied"
        assert switch.refused == {other.name: line}
        assert await contents(ends.target, "orders") == records[:20]


class Away:
    """A peer that can be away: it notes whether a commit was sent to it then, which would wait."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.trouble: str | None = None
        self.committed = list[bool]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    async def commit(self, *arguments: Any) -> None:
        self.committed.append(self.trouble is None)
        if self.trouble is not None:
            await trio.sleep_forever()
        await self._peer.commit(*arguments)


@pytest.mark.parametrize("trouble", [None, "connection refused"])
async def test_only_to_a_source_that_answers_the_position_is_committed_before_a_switch(
    trouble: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "COMMIT_S", 3600.0)
    async with copies(tmp_path) as (ends, other):
        records = numbered(60)
        await fill(ends.source, "orders", records[:10])
        await fill(other, "orders", records)
        source = Away(ends.source)
        switch = SourceSwitch(cast("Peer", source))
        async with flowing(SPEC, switch, ends.target) as report:
            await until_position(report, PARTITION, 10)
            await eventually(lambda: source.committed == [True], "the first commit")
            await fill(ends.source, "orders", records[10:20])
            await until_position(report, PARTITION, 20)
            source.trouble = trouble
            switch.switch(other)
            await until_position(report, PARTITION, 60)
        assert source.committed == ([True, True] if trouble is None else [True])


async def test_a_source_that_ends_before_the_position_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with copies(tmp_path) as (ends, other):
        records = numbered(60)
        await fill(ends.source, "orders", records[:20])
        await fill(other, "orders", records[:15])
        switch = SourceSwitch(ends.source)
        async with flowing(SPEC, switch, ends.target) as report:
            await until_position(report, PARTITION, 20)
            switch.switch(other)
            await eventually(lambda: bool(report.troubles), "it is waited for")
            assert report.troubles == ["orders-0: it ends at 15, before the position 20"]
            assert caplog.text.count("it ends at 15, before the position 20; it is waited for") == 1
            await fill(other, "orders", records[15:])
            await until_position(report, PARTITION, 60)
        assert await contents(ends.target, "orders") == records


async def test_a_restart_with_another_copy_goes_on(tmp_path: Path) -> None:
    async with copies(tmp_path) as (ends, other):
        records = numbered(60)
        await fill(ends.source, "orders", records[:20])
        await fill(other, "orders", records)
        async with flowing(SPEC, ends.source, ends.target) as report:
            await until_position(report, PARTITION, 20)
        async with flowing(SPEC, other, ends.target) as report:
            await until_position(report, PARTITION, 60)
        assert await contents(ends.target, "orders") == records


async def test_a_source_that_does_not_answer_is_left_at_once(tmp_path: Path) -> None:
    async with copies(tmp_path) as (ends, other):
        records = numbered(20)
        await fill(other, "orders", records)
        listener = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener[0].socket.getsockname()[1]
        async with peer_of(f"127.0.0.1:{port}", **{"request.timeout.ms": "60000"}) as silent:
            switch = SourceSwitch(silent)
            async with flowing(SPEC, switch, ends.target) as report:
                await eventually(lambda: report.state is FlowState.STARTING, "it begins")
                switch.switch(other)
                with trio.fail_after(20):
                    await until_position(report, PARTITION, 20)
        for one in listener:
            await one.aclose()
