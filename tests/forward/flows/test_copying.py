"""One attempt and the next: records that the target refuses, filters, bounds of memory, the group at the source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_forward.flows.errors import FlowStopped
from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.flows.spec import Guarantee, TopicCreation
from leafcuttr_sdk.filters import DROP, NotReady
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.types import TopicPartition
from support import librdkafka
from support.flows import (
    Ends,
    address_of,
    contents,
    copy_all,
    fill,
    flow_of,
    flowing,
    numbered,
    two_clusters,
    until_position,
)
from support.forwarded_batches import Judging, Seen
from support.waiting import eventually

PARTITION = TopicPartition("orders", 0)
BOTH = pytest.mark.parametrize("guarantee", Guarantee)
NO_SYNC = TopicCreation(sync_settings=False)
LATE = 10_000_000_000_000
"""A time that a target may refuse."""


async def with_bad_records(ends: Ends, bad: Sequence[int], count: int = 60) -> list[Seen]:
    """Records in a source, of which the target refuses some for their times."""
    await ends.source.create_topic(
        "orders", partitions=1, configs={"message.timestamp.after.max.ms": str(1 << 60)}
    )
    await ends.target.create_topic(
        "orders", partitions=1, configs={"message.timestamp.after.max.ms": "3600000"}
    )
    records = numbered(count)
    for at in bad:
        records[at] = records[at]._replace(timestamp=LATE)
    await fill(ends.source, "orders", records, together=20)
    return records


@BOTH
@pytest.mark.parametrize(
    "bad", [[10, 11, 59], *(pytest.param(one, marks=pytest.mark.long) for one in ([0], [33]))], ids=str
)
async def test_records_that_the_target_refuses_become_dead_letters(
    tmp_path: Path, guarantee: Guarantee, bad: list[int]
) -> None:
    spec = flow_of(
        "orders", guarantee=guarantee, stop_at_end=True, dead_letter_topic="dead", creation=NO_SYNC
    )
    async with two_clusters(tmp_path) as ends:
        records = await with_bad_records(ends, bad)
        await ends.target.create_topic(
            "dead", partitions=1, configs={"message.timestamp.after.max.ms": str(1 << 60)}
        )
        report = await copy_all(spec, ends.source, ends.target)
        found = await contents(ends.target, "orders")
        good = [one for at, one in enumerate(records) if at not in bad]
        if guarantee is Guarantee.EXACTLY_ONCE:
            assert found == good
        else:
            assert [*dict.fromkeys(found)] == good
        letters = await contents(ends.target, "dead")
        assert [(one.key, one.value) for one in letters] == [
            (records[at].key, records[at].value) for at in bad
        ]
        headers = dict(letters[0].headers)
        assert headers["lc.dead.letter.offset"] == str(bad[0]).encode()
        assert b"timestamp" in (headers["lc.dead.letter.reason"] or b"").lower()
        assert report.partitions[PARTITION].dead_letters == len(bad)
        assert report.partitions[PARTITION].position == 60


async def test_behind_a_refused_record_it_goes_on_as_usual(tmp_path: Path) -> None:
    """It is searched for by halves, and what was read with it is not copied record by record."""
    spec = flow_of("orders", stop_at_end=True, dead_letter_topic="dead", creation=NO_SYNC)
    async with two_clusters(tmp_path) as ends:
        records = await with_bad_records(ends, [3], count=600)
        await ends.target.create_topic(
            "dead", partitions=1, configs={"message.timestamp.after.max.ms": str(1 << 60)}
        )
        report = await copy_all(spec, ends.source, ends.target)
        assert await contents(ends.target, "orders") == records[:3] + records[4:]
        assert report.transactions < 30


@BOTH
async def test_without_a_dead_letter_topic_such_a_record_stops_the_flow(
    tmp_path: Path, guarantee: Guarantee
) -> None:
    spec = flow_of("orders", guarantee=guarantee, stop_at_end=True, creation=NO_SYNC)
    async with two_clusters(tmp_path) as ends:
        records = await with_bad_records(ends, [33])
        report = FlowReport("f")
        with pytest.raises(FlowStopped, match="orders-0, offset 33: "):
            await copy_all(spec, ends.source, ends.target, report)
        assert report.state is FlowState.STOPPED
        found = await contents(ends.target, "orders")
        assert [*dict.fromkeys(found)] == records[:33]


@BOTH
async def test_batches_that_are_too_large_for_the_target_are_split(
    tmp_path: Path, guarantee: Guarantee
) -> None:
    """The broker's own limit is not told to anyone: it is found out."""
    spec = flow_of("orders", guarantee=guarantee, stop_at_end=True)
    async with two_clusters(tmp_path, target={"message.max.bytes": "4000"}) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(100, size=500)
        await fill(ends.source, "orders", records, together=50)
        await copy_all(spec, ends.source, ends.target)
        found = await contents(ends.target, "orders")
        assert [*dict.fromkeys(found)] == records
        assert len(found) == 100 or guarantee is Guarantee.AT_LEAST_ONCE


async def test_a_record_that_is_too_large_becomes_a_dead_letter_without_its_value(tmp_path: Path) -> None:
    spec = flow_of("orders", stop_at_end=True, dead_letter_topic="dead", creation=NO_SYNC)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await ends.target.create_topic("orders", partitions=1, configs={"max.message.bytes": "2000"})
        records = numbered(20)
        records[7] = records[7]._replace(value=bytes(1_048_000))
        await fill(ends.source, "orders", records)
        await copy_all(spec, ends.source, ends.target)
        assert await contents(ends.target, "orders") == records[:7] + records[8:]
        (letter,) = await contents(ends.target, "dead")
        assert letter.value is None
        assert dict(letter.headers)["lc.dead.letter.value.bytes"] == b"1048000"


async def test_a_filter_decides(tmp_path: Path) -> None:
    async def make(names: Sequence[str], topic: str) -> Judging:
        assert (names, topic) == (["even"], "orders")
        return Judging(lambda records: [one if int(one.value or b"") % 2 == 0 else DROP for one in records])

    spec = flow_of("orders", filters=["even"], stop_at_end=True)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(50)
        await fill(ends.source, "orders", records)
        report = await copy_all(spec, ends.source, ends.target, make_chain=make)
        assert await contents(ends.target, "orders") == records[::2]
        copied = report.partitions[PARTITION]
        assert (copied.read_records, copied.written_records, copied.dropped_records) == (50, 25, 25)


async def test_a_filter_that_is_not_ready_is_waited_for(tmp_path: Path) -> None:
    ready = False
    chains: list[Judging] = []

    async def make(names: Sequence[str], topic: str) -> Judging:
        def judge(records: Sequence[Record]) -> list[Any]:
            return list(records) if ready else [NotReady("its schemas")]

        chains.append(Judging(judge))
        return chains[-1]

    spec = flow_of("orders", filters=["f"])
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(50)
        await fill(ends.source, "orders", records)
        async with flowing(spec, ends.source, ends.target, make_chain=make) as report:
            await eventually(lambda: report.trouble is not None, "a line")
            assert report.trouble == "a filter waits for its schemas"
            ready = True
            await until_position(report, PARTITION, 50)
            assert report.trouble is None
        assert await contents(ends.target, "orders") == records
    assert chains[0].forgotten > 0
    assert chains[-1].closed


async def test_a_topic_that_is_deleted_while_a_filter_is_waited_for(tmp_path: Path) -> None:
    """What was read of it is not made any more, and the other topic goes on."""
    ready = False

    async def make(names: Sequence[str], topic: str) -> Judging:
        def judge(records: Sequence[Record]) -> list[Any]:
            return list(records) if ready or topic == "others" else [NotReady("its schemas")]

        return Judging(judge)

    spec = flow_of("orders", "others", filters=["f"], refresh_s=0.05)
    async with two_clusters(tmp_path) as ends:
        for topic in ("orders", "others"):
            await ends.source.create_topic(topic, partitions=1)
        await fill(ends.source, "orders", numbered(10))
        async with flowing(spec, ends.source, ends.target, make_chain=make) as report:
            await eventually(lambda: report.trouble is not None, "a line")
            await trio.to_thread.run_sync(librdkafka.delete, address_of(ends.source_broker), "orders")
            await eventually(lambda: report.events.get("deleted"), "the deletion is noticed")
            records = numbered(10)
            await fill(ends.source, "others", records)
            await until_position(report, TopicPartition("others", 0), 10)
        assert await contents(ends.target, "others") == records


async def test_filters_need_what_makes_them(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        with pytest.raises(ValueError, match="needs what makes them"):
            await copy_all(flow_of("orders", filters=["f"]), ends.source, ends.target)


async def test_fewer_partitions_get_records_by_their_keys(tmp_path: Path) -> None:
    from leafcuttr_sdk.batches import partition_of

    spec = flow_of("orders", creation=TopicCreation(create=False), stop_at_end=True)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=5)
        await ends.target.create_topic("orders", partitions=2)
        records = [numbered(40, first=100 * number) for number in range(5)]
        for number, some in enumerate(records):
            await fill(ends.source, "orders", some, number)
        report = await copy_all(spec, ends.source, ends.target)
        assert {each.target_partition for each in report.partitions.values()} == {None}
        for number in range(2):
            found = await contents(ends.target, "orders", number)
            wanted = [[one for one in some if partition_of(one.key or b"", 2) == number] for some in records]
            assert sorted(found) == sorted(one for some in wanted for one in some)
            for some in wanted:
                assert [one for one in found if one in some] == some


class NoTransactions:
    """A cluster without transactions; all else is the other one's."""

    def __init__(self, peer: Any) -> None:
        self._peer = peer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._peer, name)

    async def has_transactions(self) -> bool:
        return False


async def test_a_target_without_transactions_gets_everything_at_least_once(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(50)
        await fill(ends.source, "orders", records)
        spec = flow_of("orders", stop_at_end=True)
        report = await copy_all(spec, ends.source, NoTransactions(ends.target))  # type: ignore[arg-type]
        assert await contents(ends.target, "orders") == records
        assert not report.exactly_once
        assert report.notes["guarantee"] == "the target has no transactions: at least once"


class SlowTarget(NoTransactions):
    """Acknowledges nothing until it is told to; counts what is on its way."""

    def __init__(self, peer: Any) -> None:
        super().__init__(peer)
        self.open = trio.Event()
        self.bytes = 0

    def appender(self) -> Any:
        from contextlib import asynccontextmanager

        @asynccontextmanager
        async def opened() -> Any:
            async with self._peer.appender() as appender:
                yield SlowAppender(self, appender)

        return opened()


class SlowAppender:
    def __init__(self, target: SlowTarget, appender: Any) -> None:
        self._target = target
        self._appender = appender

    async def append(self, batches: Any) -> Any:
        self._target.bytes += sum(len(one.batch) for one in batches)
        done = await self._appender.append(batches)
        await self._target.open.wait()
        return done


async def test_a_slow_target_costs_no_more_memory_than_the_buffer(tmp_path: Path) -> None:
    buffer = 400_000
    spec = flow_of("orders", buffer_bytes=buffer, request_bytes=20_000)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(2000, size=1000)
        await fill(ends.source, "orders", records, together=20)
        target = SlowTarget(ends.target)
        async with flowing(spec, ends.source, target) as report:  # type: ignore[arg-type]
            await eventually(lambda: report.buffered_bytes > 100_000, "the buffer is filled")
            for _ in range(50):
                await trio.sleep(0.01)  # what would be read beyond it comes in this time
                assert report.buffered_bytes <= buffer
            assert 0 < target.bytes <= buffer
            target.open.set()
            await until_position(report, PARTITION, 2000)
            await eventually(lambda: report.buffered_bytes == 0, "nothing is held")
        assert await contents(ends.target, "orders") == records


async def test_a_group_that_others_have_is_a_note_and_stops_nothing(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(5))
        async with ends.source.claim("leafcuttr-f"):
            report = await copy_all(flow_of("orders", stop_at_end=True), ends.source, ends.target)
        assert report.state is FlowState.ENDED
        assert "the group leafcuttr-f is not committed" in report.notes["group"]


async def test_no_group_is_committed_where_none_is_wanted(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(5))
        spec = flow_of("orders", stop_at_end=True, commits_to_group=False)
        await copy_all(spec, ends.source, ends.target)
        assert await ends.source.committed("leafcuttr-f") == {}


async def test_what_was_written_is_told(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await ends.target.create_topic("orders", partitions=1)
        await fill(ends.target, "orders", numbered(7))
        await fill(ends.source, "orders", numbered(30))
        report, told = FlowReport("f"), list[Any]()
        report.on_written.append(told.extend)
        await copy_all(flow_of("orders", stop_at_end=True), ends.source, ends.target, report)
        assert sum(one.records for one in told) == 30
        assert (told[0].first_offset, told[0].target_offset, told[-1].next_offset) == (0, 7, 30)
        assert report.partitions[PARTITION].target_offset == 37
        assert report.partitions[PARTITION].written_to == {PARTITION: 30}
