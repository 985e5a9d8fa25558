"""Offsets of a group at the source as offsets at the target: which record is the same, and where there is none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from leafcuttr_forward.flows.report import PartitionReport
from leafcuttr_forward.people.rows import partition_row
from leafcuttr_forward.people.translation import translate_group
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.flows import Ends, address_of, fill, numbered, two_clusters
from support.forwarded_batches import Seen, stored

ORDERS, COPY, OTHER = (TopicPartition(topic, 0) for topic in ("orders", "copy", "other"))


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[tuple[Ends, list[Seen]]]:
    """Ten records at the source, none at the target."""
    async with two_clusters(folder) as ends:
        for topic in ("orders", "other"):
            await ends.source.create_topic(topic, partitions=1)
        await ends.target.create_topic("copy", partitions=1)
        records = numbered(10)
        await fill(ends.source, "orders", records)
        yield ends, records


async def translated(ends: Ends, committed: int, **report: Any) -> tuple[int | None, str]:
    """Where the group goes on that has committed this, and how that was found."""
    await ends.source.commit("readers", {ORDERS: CommittedOffset(committed), OTHER: CommittedOffset(0)})
    given = PartitionReport("copy", **{"target_partition": 0, "position": 10, **report})
    flow = {"topics": [partition_row(ORDERS, given, 0)]}
    (row,) = await translate_group(ends.source, ends.target, "readers", flow)
    assert (row.source, row.offset, row.target.topic) == (ORDERS, committed, "copy")
    return row.target_offset, row.how


async def test_the_record_is_looked_for_by_key_value_and_timestamp(tmp_path: Path) -> None:
    async with both(tmp_path) as (ends, records):
        others = [
            records[4]._replace(timestamp=records[4].timestamp + 1),
            records[4]._replace(key=b"another"),
            records[4]._replace(value=b"another"),
        ]
        await fill(ends.target, "copy", [*records[:4], *others, *records[4:]])
        assert await translated(ends, 4) == (7, "the same record")
        assert await translated(ends, 0) == (0, "the same record")


async def test_of_two_copies_the_first_is_meant_and_none_that_was_aborted(tmp_path: Path) -> None:
    async with both(tmp_path) as (ends, records):
        async with ends.target.transaction("copies") as producer, producer.begin() as transaction:
            batch = stored([*enumerate(records)], epoch=-1)
            await transaction.append([NewBatch(COPY, bytearray(batch.data))])
            await transaction.abort()
        await fill(ends.target, "copy", records)
        await fill(ends.target, "copy", records)
        assert await translated(ends, 4) == (15, "the same record"), "behind ten and their marker"


async def test_what_a_filter_left_out_is_not_found(tmp_path: Path) -> None:
    async with both(tmp_path) as (ends, records):
        await fill(ends.target, "copy", [*records[:4], *records[5:]])
        assert await translated(ends, 4) == (None, "the record is not at the target")


async def test_behind_the_position_of_the_flow(tmp_path: Path) -> None:
    async with both(tmp_path) as (ends, records):
        await fill(ends.target, "copy", records[:6])
        known = {"position": 6, "target_offset": 6}
        assert await translated(ends, 6, **known) == (6, "behind the last copied record")
        offset, how = await translated(ends, 8, **known)
        assert (offset, how) == (
            6,
            "behind the last copied record: the flow is at 6, and the group ahead of it",
        )
        # The flow does not know where its last record is, and the source has no next one.
        end = "the source has no record there: the end of the target"
        assert await translated(ends, 10) == (6, end)


async def test_records_that_the_source_has_no_longer_are_passed_over(tmp_path: Path) -> None:
    from forward.flows.test_changes import delete_records

    async with both(tmp_path) as (ends, records):
        await fill(ends.target, "copy", records)
        await delete_records(address_of(ends.source_broker), "orders", 5)
        assert await translated(ends, 2) == (5, "the same record")


async def test_where_keys_decide_there_is_no_one_offset(tmp_path: Path) -> None:
    async with both(tmp_path) as (ends, records):
        await fill(ends.target, "copy", records)
        assert await translated(ends, 4, target_partition=None) == (
            None,
            "its records go to several partitions, by their keys",
        )
