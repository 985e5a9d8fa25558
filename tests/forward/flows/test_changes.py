"""Sources that are not any more what they were, and what is done about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_forward.flows.errors import FlowStopped
from leafcuttr_forward.flows.positions import read_positions
from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.flows.spec import FLOWS_TOPIC, Guarantee, Reaction, SourceChanges, Start
from leafcuttr_sdk.types import TopicPartition
from support.flows import (
    address_of,
    contents,
    copy_all,
    fill,
    flow_of,
    flowing,
    numbered,
    two_clusters,
    until_position,
    until_state,
)
from support.waiting import eventually

PARTITION = TopicPartition("orders", 0)


async def delete(address: str, topic: str) -> None:
    import trio
    from confluent_kafka.admin import AdminClient

    def run() -> None:
        client = AdminClient({"bootstrap.servers": address})
        for done in client.delete_topics([topic]).values():
            done.result()

    await trio.to_thread.run_sync(run)


async def delete_records(address: str, topic: str, before: int) -> None:
    import trio
    from confluent_kafka import TopicPartition as Place
    from confluent_kafka.admin import AdminClient

    def run() -> None:
        client = AdminClient({"bootstrap.servers": address})
        for done in client.delete_records([Place(topic, 0, before)]).values():
            done.result()

    await trio.to_thread.run_sync(run)


@pytest.mark.long
async def test_a_flow_begins_at_the_latest_where_it_is_told_to(tmp_path: Path) -> None:
    spec = flow_of("orders", start=Start.LATEST, refresh_s=0.05)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(20))
        async with flowing(spec, ends.source, ends.target) as report:
            await until_state(report, FlowState.RUNNING)
        records = numbered(10, first=20)
        await fill(ends.source, "orders", records)  # while it does not run
        async with flowing(spec, ends.source, ends.target) as report:
            await until_position(report, PARTITION, 30)
            await ends.source.add_partitions("orders", 2)  # this one is read from its beginning
            await fill(ends.source, "orders", numbered(5, first=100), 1)
            await until_position(report, TopicPartition("orders", 1), 5)
        assert await contents(ends.target, "orders") == records


@pytest.mark.long
async def test_another_program_says_where_to_begin(tmp_path: Path) -> None:
    class Positions:
        async def positions(
            self, source: object, target: object, partitions: object
        ) -> dict[TopicPartition, int]:
            assert partitions == {PARTITION: PARTITION}
            return {PARTITION: 15}

    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(20)
        await fill(ends.source, "orders", records)
        await copy_all(flow_of("orders", positions=Positions(), stop_at_end=True), ends.source, ends.target)
        assert await contents(ends.target, "orders") == records[15:]


@pytest.mark.long
async def test_a_source_whose_records_have_expired_is_followed(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(40)
        await fill(ends.source, "orders", records[:10])
        spec = flow_of("orders", stop_at_end=True)
        await copy_all(spec, ends.source, ends.target)
        await fill(ends.source, "orders", records[10:])
        await delete_records(address_of(ends.source_broker), "orders", 25)
        report = await copy_all(spec, ends.source, ends.target)
        assert await contents(ends.target, "orders") == records[:10] + records[25:]
        assert report.events == {"expired": 1}
        assert report.partitions[PARTITION].lost_records == 15


@pytest.mark.long
async def test_expired_records_stop_a_flow_that_is_told_to(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(10))
        await copy_all(flow_of("orders", stop_at_end=True), ends.source, ends.target)
        await fill(ends.source, "orders", numbered(20))
        await delete_records(address_of(ends.source_broker), "orders", 25)
        report = FlowReport("f")
        spec = flow_of("orders", changes=SourceChanges(expired=Reaction.STOP))
        with pytest.raises(FlowStopped, match="begins at 25, behind the position 10: 15 offsets are lost"):
            await copy_all(spec, ends.source, ends.target, report)
        assert report.state is FlowState.STOPPED
        assert "15 offsets are lost" in str(report.trouble)


@pytest.mark.long
async def test_a_topic_that_was_created_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        first, second = numbered(10), numbered(20, first=100)
        await fill(ends.source, "orders", first)
        await copy_all(flow_of("orders", stop_at_end=True), ends.source, ends.target)
        await delete(address_of(ends.source_broker), "orders")
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", second)
        report = await copy_all(flow_of("orders", stop_at_end=True), ends.source, ends.target)
        assert report.events == {"recreated": 1}
        assert await contents(ends.target, "orders") == first + second


@pytest.mark.long
async def test_a_topic_is_deleted_and_created_anew_while_it_is_read(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await ends.source.create_topic("others", partitions=1)
        first, second = numbered(10), numbered(20, first=100)
        await fill(ends.source, "orders", first)
        spec = flow_of("orders", "others", refresh_s=0.05)
        async with flowing(spec, ends.source, ends.target) as report:
            await until_position(report, PARTITION, 10)
            await delete(address_of(ends.source_broker), "orders")
            await eventually(lambda: report.events.get("deleted"), "the deletion is noticed")
            await eventually(lambda: bool(report.troubles), "a line")
            assert "it was deleted" in report.troubles[0]
            await fill(ends.source, "others", numbered(5))  # goes on meanwhile
            await until_position(report, TopicPartition("others", 0), 5)
            await ends.source.create_topic("orders", partitions=1)
            await fill(ends.source, "orders", second)
            await eventually(lambda: not report.troubles, "it goes on")
            await until_position(report, PARTITION, 20)
            assert report.events["recreated"] == 1
        assert await contents(ends.target, "orders") == first + second


@pytest.mark.one_in(2)
@pytest.mark.parametrize("reaction", [Reaction.STOP, Reaction.CONTINUE])
async def test_a_deleted_topic_stops_the_flow_or_is_forgotten(tmp_path: Path, reaction: Reaction) -> None:
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        await fill(ends.source, "orders", numbered(10))
        await copy_all(flow_of("orders", stop_at_end=True), ends.source, ends.target)
        await delete(address_of(ends.source_broker), "orders")
        spec = flow_of("orders", changes=SourceChanges(deleted=reaction), stop_at_end=True)
        if reaction is Reaction.STOP:
            with pytest.raises(FlowStopped, match=r"orders-0 of .*: the source does not have it any more"):
                await copy_all(spec, ends.source, ends.target)
        else:
            report = await copy_all(spec, ends.source, ends.target)
            assert report.partitions == {}
            report = await copy_all(spec, ends.source, ends.target)
            assert report.events == {}


@pytest.mark.long
async def test_a_source_that_ends_before_the_position_is_gone_on_with_or_waited_for(tmp_path: Path) -> None:
    """As after an unclean election, or a restored backup; the topic has its id still."""
    from leafcuttr_forward.flows import positions

    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(30)
        await fill(ends.source, "orders", records[:10])
        spec = flow_of("orders", stop_at_end=True)
        await copy_all(spec, ends.source, ends.target)
        cluster = await ends.source.cluster_id()
        (position,) = (await positions.read_positions(ends.target, "f", cluster)).values()
        assert (position.offset, position.last, position.target_offset) == (10, 9, 10)
        moved = positions.value_of(position._replace(offset=20))
        async with ends.target.appender() as appender:
            from leafcuttr_sdk.records import NewBatch

            batch = positions.batch_of({positions.key_of("f", cluster, PARTITION): moved}, 1)
            await appender.append([NewBatch(positions.POSITIONS, batch)])
        waits = flow_of("orders", changes=SourceChanges(truncated=Reaction.WAIT), refresh_s=0.05)
        async with flowing(waits, ends.source, ends.target) as report:
            await eventually(lambda: bool(report.troubles), "it waits")
            assert report.troubles == ["orders-0: it ends at 10, before the position 20"] or (
                "its log was truncated to 10" in report.troubles[0]
            )
            assert report.events == {"truncated": 1}
        report = await copy_all(spec, ends.source, ends.target)
        assert report.events == {"truncated": 1}
        await fill(ends.source, "orders", records[10:])
        await copy_all(spec, ends.source, ends.target)
        assert await contents(ends.target, "orders") == records


@pytest.mark.parametrize(
    "guarantee", [Guarantee.EXACTLY_ONCE, pytest.param(Guarantee.AT_LEAST_ONCE, marks=pytest.mark.long)]
)
async def test_a_target_that_has_lost_the_positions_gets_them_again(
    tmp_path: Path, guarantee: Guarantee
) -> None:
    """Somebody deletes the topic of the flows while one runs: nothing is copied a second time."""
    spec = flow_of("orders", guarantee=guarantee)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=1)
        records = numbered(30)
        async with flowing(spec, ends.source, ends.target) as report:
            await fill(ends.source, "orders", records[:10])
            await until_position(report, PARTITION, 10)
            await delete(address_of(ends.target_broker), FLOWS_TOPIC)
            await fill(ends.source, "orders", records[10:20])
            await until_position(report, PARTITION, 20)

            async def stored() -> bool:
                found = await read_positions(ends.target, "f", await ends.source.cluster_id())
                return PARTITION in found and found[PARTITION].offset == 20

            await eventually(stored, "the position is stored again")
        async with flowing(spec, ends.source, ends.target) as report:
            await fill(ends.source, "orders", records[20:])
            await until_position(report, PARTITION, 30)
        assert await contents(ends.target, "orders") == records
