"""Whole flows between two brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_forward.flows.report import FlowState
from leafcuttr_forward.flows.spec import Guarantee
from leafcuttr_sdk.types import TopicPartition
from support.flows import (
    contents,
    copy_all,
    fill,
    flow_of,
    flowing,
    numbered,
    two_clusters,
    until_position,
)

BOTH = pytest.mark.parametrize("guarantee", Guarantee)


@BOTH
async def test_everything_is_copied_in_its_order(tmp_path: Path, guarantee: Guarantee) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=3)
        records = [numbered(200, first=1000 * number) for number in range(3)]
        for number, some in enumerate(records):
            await fill(ends.source, "orders", some, number)
        spec = flow_of("orders", guarantee=guarantee, stop_at_end=True)
        report = await copy_all(spec, ends.source, ends.target)
        assert report.state is FlowState.ENDED
        assert report.exactly_once is (guarantee is Guarantee.EXACTLY_ONCE)
        for number, some in enumerate(records):
            assert await contents(ends.target, "orders", number) == some
            copied = report.partitions[TopicPartition("orders", number)]
            assert (copied.position, copied.written_records, copied.lag) == (200, 200, 0)
            assert (copied.target_topic, copied.target_partition) == ("orders", number)


@BOTH
async def test_it_goes_on_where_it_was(tmp_path: Path, guarantee: Guarantee) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        spec = flow_of("orders", guarantee=guarantee, stop_at_end=True)
        records = numbered(100)
        for at in range(0, 100, 25):
            await fill(ends.source, "orders", records[at : at + 25])
            await copy_all(spec, ends.source, ends.target)
        assert await contents(ends.target, "orders") == records
        committed = await ends.source.committed("leafcuttr-f")
        assert committed[TopicPartition("orders", 0)].offset == 100


@BOTH
async def test_what_comes_later_is_copied_while_it_runs(tmp_path: Path, guarantee: Guarantee) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        partition = TopicPartition("orders", 0)
        records = numbered(30)
        async with flowing(flow_of("orders", guarantee=guarantee), ends.source, ends.target) as report:
            for at in range(0, 30, 10):
                await fill(ends.source, "orders", records[at : at + 10])
                await until_position(report, partition, at + 10)
            assert (report.state, report.trouble) == (FlowState.RUNNING, None)
        assert await contents(ends.target, "orders") == records
