"""A consumer in process against the real coordinator, in the time of a clock that jumps when everybody sleeps."""

import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import fields
from inspect import signature
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.plugins.facade.consumer.options import ConsumerOptions
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr.wire.records import Record as WireRecord
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import (
    Broker,
    CommittedOffset,
    Consumer,
    ConsumerGroupMetadata,
    Plugin,
    Record,
    StoredRecord,
    TopicPartition,
)
from leafcuttr_sdk.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    GroupMaxSizeReached,
    IllegalGeneration,
    InvalidGroupId,
    InvalidSessionTimeout,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    OffsetOutOfRange,
    RebalanceInProgress,
    StorageError,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from support.logs import append, stage_marker
from support.trio_time import TrioTime

Open = Callable[..., Core]
Live = Callable[..., AbstractAsyncContextManager[Broker]]
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def clock() -> TrioTime:
    return TrioTime()


@pytest.fixture
def live(open_core: Open, autojump_clock: MockClock) -> Live:
    """A broker whose coordinator runs, and a topic `t` of two partitions."""

    @asynccontextmanager
    async def run(**settings: str) -> AsyncIterator[Broker]:
        core = open_core(
            **{"group_initial_rebalance_delay_ms": "0", "offsets_topic_num_partitions": "3", **settings}
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(core.groups.run)
            await core.groups.ready()
            view = make_broker_view(core, Plugin("sample", 1, ""))
            if "t" not in view.topics.names():
                await view.topics.create("t", partitions=2)
            yield view
            nursery.cancel_scope.cancel()

    return run


def core_of(view: Broker) -> Core:
    return view._core  # type: ignore[attr-defined,no-any-return]


async def produce(view: Broker, values: Iterable[int], partition: int = 0, topic: str = "t") -> None:
    records = [Record(b"%d" % value) for value in values]
    await view.produce_batch(topic, records, partitions=[partition] * len(records))


async def settled(*consumers: Consumer) -> list[StoredRecord]:
    """Let each take its part in rounds until all have something assigned and none moves any more."""
    records: list[StoredRecord] = []
    before: list[frozenset[TopicPartition]] = []
    with trio.fail_after(600):
        while True:
            for consumer in consumers:
                records += await consumer.poll(wait_s=0)
                await wait_all_tasks_blocked()
            now = [consumer.assignment for consumer in consumers]
            if now == before and all(now):
                return records
            before = now


def values(records: Iterable[StoredRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


async def drain(consumer: Consumer, count: int) -> list[int]:
    found: list[StoredRecord] = []
    with trio.fail_after(600):
        while len(found) < count:
            found += await consumer.poll(wait_s=5)
    return values(found)


async def test_a_member_reads_commits_leaves_and_goes_on(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view:
        await produce(view, range(5))
        async with view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
            assert await drain(consumer, 5) == [0, 1, 2, 3, 4]
            assert consumer.assignment == {T0, T1}
            assert consumer.subscription == {"t"}
            assert (consumer.position(T0), consumer.position(T1)) == (5, 0)
            await consumer.commit()
            found = view.groups.get("g")
            assert found is not None and (found.state, found.protocol) == ("Stable", "range")
            assert [set(member.partitions) for member in found.members] == [{T0, T1}]
            assert found.members[0].client_id == "leafcuttr-plugin-sample"
            assert found.members[0].host == "/127.0.0.1"
        left = view.groups.get("g")
        assert left is not None and (left.state, left.members) == ("Empty", [])
        await produce(view, [5])
        assert view.groups.lag("g") == {T0: 1, T1: 0}
        async with view.consumer("g", ["t"]) as consumer:
            assert await drain(consumer, 1) == [5]


@pytest.mark.parametrize(("reset", "expected"), [("earliest", [0, 1]), ("latest", [1])])
async def test_where_a_group_without_offsets_begins(
    live: Live, autojump_clock: MockClock, reset: str, expected: list[int]
) -> None:
    async with live() as view:
        await produce(view, [0])
        async with view.consumer("g", ["t"], auto_offset_reset=reset) as consumer:
            await settled(consumer) if reset == "latest" else None
            await produce(view, [1])
            assert await drain(consumer, len(expected)) == expected


async def test_without_a_policy_an_unknown_place_is_an_error_until_it_is_sought(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g", auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange, match="auto_offset_reset is none"):
                await consumer.poll(wait_s=0)
        await produce(view, [1])
        await consumer.seek_to_beginning()
        assert values(await consumer.poll(wait_s=0)) == [1]
        consumer.seek(T0, 99)
        with pytest.raises(OffsetOutOfRange, match="Offset 99 of t-0"):
            await consumer.poll(wait_s=0)


async def test_two_members_share_and_the_one_that_stays_takes_all(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g", ["t"], auto_offset_reset="earliest") as first:
        assert await settled(first) == []
        assert first.assignment == {T0, T1}
        async with view.consumer("g", ["t"], auto_offset_reset="earliest") as second:
            await settled(first, second)
            assert {*first.assignment, *second.assignment} == {T0, T1}
            assert len(first.assignment) == len(second.assignment) == 1
            await produce(view, range(10), 0)
            await produce(view, range(10, 20), 1)
            assert sorted(await drain(first, 10) + await drain(second, 10)) == list(range(20))
            await first.commit()
            await second.commit()
        await settled(first)
        assert first.assignment == {T0, T1}
        await produce(view, [20], 0)
        await produce(view, [21], 1)
        assert sorted(await drain(first, 2)) == [20, 21]


async def test_a_rebalance_reaches_a_poll_that_waits_at_once(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("g", ["t"]) as first, trio.open_nursery() as nursery:
        await settled(first)

        async def poll_on() -> None:
            while True:
                await first.poll(wait_s=float("inf"))

        nursery.start_soon(poll_on)
        began = trio.current_time()
        async with view.consumer("g", ["t"]) as second:
            await settled(second)
            assert trio.current_time() - began < 0.1
        nursery.cancel_scope.cancel()


async def test_records_of_a_share_that_is_given_up_are_not_handed_out(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g", ["t"], auto_offset_reset="earliest") as first:
        await produce(view, range(10))
        assert await drain_some(first, 3) == [0, 1, 2]
        await first.commit()
        async with view.consumer("g", ["t"], auto_offset_reset="earliest") as second:
            rest = values(await settled(second, first))
            mine = first if T0 in first.assignment else second
            rest += await drain(mine, 7 - len(rest)) if len(rest) < 7 else []
            assert rest == list(range(3, 10))


async def drain_some(consumer: Consumer, count: int) -> list[int]:
    found: list[StoredRecord] = []
    while len(found) < count:
        found += await consumer.poll(wait_s=5, max_records=1)
    return values(found)


async def test_limits_of_a_poll(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("g") as consumer:
        await view.produce_batch("t", [Record(b"x" * 100) for _ in range(10)], partitions=[0] * 10)
        consumer.assign([T0])
        await consumer.seek_to_beginning()
        assert len(await consumer.poll(wait_s=0, max_records=3)) == 3
        assert consumer.position(T0) == 3
        assert len(await consumer.poll(wait_s=0, max_bytes=250)) == 2
        assert len(await consumer.poll(wait_s=0, max_bytes=1)) == 1
        assert len(await consumer.poll(wait_s=0)) == 4
        assert await consumer.poll(wait_s=0) == []
        for limits in ({"max_records": 0}, {"max_bytes": 0}):
            with pytest.raises(ValueError, match="at least 1"):
                await consumer.poll(**limits)  # type: ignore[arg-type]


async def test_an_iteration_moves_the_position_record_by_record(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view:
        await produce(view, range(500))
        async with view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
            seen = []
            async for record in consumer:
                seen.append(int(record.value or b""))
                assert consumer.position(T0) == record.offset + 1
                if record.offset == 299:
                    await consumer.commit()
                    break
            assert seen == list(range(300))
            assert await drain(consumer, 200) == list(range(300, 500))
        assert view.groups.committed("g")[T0] == CommittedOffset(300)


async def test_a_pattern_follows_topics_as_they_come_grow_and_go(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g", pattern="a.*", auto_offset_reset="earliest") as consumer:
        assert await consumer.poll(wait_s=1) == []
        assert (consumer.subscription, consumer.assignment) == (frozenset(), frozenset())
        await view.topics.create("a1")
        await produce(view, [1], topic="a1")
        assert await drain(consumer, 1) == [1]
        assert consumer.subscription == {"a1"}
        await view.topics.create("a2")
        await view.topics.add_partitions("a1", 2)
        await produce(view, [2], topic="a2")
        await produce(view, [3], 1, topic="a1")
        assert sorted(await drain(consumer, 3)) == [1, 2, 3]  # what was not committed comes again
        await view.topics.delete("a1")
        await consumer.poll(wait_s=1)
        assert (consumer.subscription, {each.topic for each in consumer.assignment}) == ({"a2"}, {"a2"})
        with pytest.raises(ValueError, match="no partner"):
            consumer.subscribe(pattern="a)")


async def test_a_topic_that_comes_later_is_read_from_its_beginning(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g", ["later"], auto_offset_reset="earliest") as consumer:
        assert await consumer.poll(wait_s=1) == []
        await view.topics.create("later")
        await produce(view, [7], topic="later")
        assert await drain(consumer, 1) == [7]
        await view.topics.delete("later")
        await view.topics.create("later")
        await produce(view, [8, 9], topic="later")
        assert await drain(consumer, 2) == [8, 9]


async def test_another_subscription_is_another_round(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("g", ["t"]) as consumer:
        await settled(consumer)
        await view.topics.create("u")
        consumer.subscribe(["u"])
        await settled(consumer)
        assert consumer.assignment == {TopicPartition("u", 0)}
        consumer.unsubscribe()
        found = view.groups.get("g")
        assert found is not None and not found.members
        assert (consumer.subscription, consumer.assignment) == (frozenset(), frozenset())
        assert await consumer.poll(wait_s=1) == []
        consumer.subscribe(["t"])
        await settled(consumer)
        with pytest.raises(ValueError, match="unsubscribe first"):
            consumer.assign([T0])
        with pytest.raises(ValueError, match="not both"):
            consumer.subscribe(["t"], pattern="t")


async def test_assigned_partitions_need_no_group(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("") as consumer:
        await produce(view, range(3))
        consumer.assign([T0, TopicPartition("nowhere", 0)])
        assert consumer.position(T0) is None
        await consumer.seek_to_beginning(T0)
        assert values(await consumer.poll()) == [0, 1, 2]
        consumer.assign([T0, T1])
        assert consumer.position(T0) == 3  # it was there already
        await consumer.seek_to_end()
        assert (consumer.position(T0), consumer.position(T1)) == (3, 0)
        with pytest.raises(InvalidGroupId):
            await consumer.commit()
        with pytest.raises(ValueError, match="t-5 is not assigned"):
            consumer.seek(TopicPartition("t", 5), 0)
        with pytest.raises(ValueError, match="no offset"):
            consumer.seek(T0, -1)
        with pytest.raises(ValueError, match="assigned to it"):
            consumer.subscribe(["t"])


async def test_assigned_consumers_commit_as_long_as_the_group_has_no_members(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g") as alone:
        alone.assign([T0])
        await alone.commit({T0: CommittedOffset(3, "note")})
        assert await alone.committed([T0, T1]) == {T0: CommittedOffset(3, "note"), T1: None}
        with pytest.raises(OffsetMetadataTooLarge, match="t-0"):
            await alone.commit({T0: CommittedOffset(3, "x" * 5000)})
        with pytest.raises(UnknownTopicOrPartition):
            await alone.commit({TopicPartition("t", 9): CommittedOffset(3)})
        async with view.consumer("g", ["t"]) as member:
            await settled(member)
            with pytest.raises(UnknownMemberId):
                await alone.commit({T0: CommittedOffset(4)})
            with pytest.raises(UnknownMemberId):
                await view.groups.commit("g", {T0: CommittedOffset(4)})
            with pytest.raises(NonEmptyGroup, match="has members"):
                await view.groups.delete("g")
        await view.groups.delete("g")
        with pytest.raises(GroupIdNotFound):
            await view.groups.delete("g")
        assert view.groups.get("g") is None and view.groups.names() == []


async def test_commits_around_a_round(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("g", ["t"]) as first:
        await produce(view, [0, 1])
        with pytest.raises(UnknownMemberId, match="poll first"):
            await first.commit({T0: CommittedOffset(1)})
        await settled(first)
        async with view.consumer("g", ["t"]) as second:
            await second.poll(wait_s=0)
            await wait_all_tasks_blocked()
            await first.commit({T0: CommittedOffset(1)})  # the round waits for us: what we had is still ours
            await first.poll(wait_s=0)
            with pytest.raises(RebalanceInProgress):
                await first.commit({T0: CommittedOffset(2)})
            assert view.groups.committed("g")[T0] == CommittedOffset(1)
            await settled(first, second)
            await first.commit()


async def test_a_member_that_stops_polling_leaves_and_may_come_again(
    live: Live, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with live() as view, view.consumer("g", ["t"], max_poll_interval_ms=20_000) as slow:
        await settled(slow)
        await trio.sleep(19)
        found = view.groups.get("g")
        assert found is not None and len(found.members) == 1  # heartbeats go on meanwhile
        await trio.sleep(5)
        found = view.groups.get("g")
        assert found is not None and not found.members
        assert "max_poll_interval_ms" in caplog.text
        with pytest.raises(UnknownMemberId):
            await slow.commit({T0: CommittedOffset(1)})
        await slow.poll(wait_s=100)  # a long wait is no absence
        await settled(slow)
        await slow.commit()


async def test_sessions_outlive_rounds_that_take_long(live: Live, autojump_clock: MockClock) -> None:
    """The second member's round lasts until the first one polls again: ten times its session."""
    async with live() as view, view.consumer("g", ["t"], session_timeout_ms=6000) as first:
        await settled(first)
        async with view.consumer("g", ["t"], session_timeout_ms=6000) as second:
            await second.poll(wait_s=60)
            assert second.assignment == frozenset()
            await settled(first, second)
            found = view.groups.get("g")
            assert found is not None and len(found.members) == 2


async def test_a_member_that_the_group_removed_joins_as_a_new_one(
    live: Live, autojump_clock: MockClock
) -> None:
    from leafcuttr.state.groups.events import Leaver

    async with live() as view, view.consumer("g", ["t"]) as consumer:
        await settled(consumer)
        found = view.groups.get("g")
        assert found is not None
        before = found.members[0].member_id
        core_of(view).groups.leave("g", [Leaver(before)])
        await settled(consumer)
        found = view.groups.get("g")
        assert found is not None and found.members[0].member_id != before


async def test_a_static_member_finds_its_place_and_fences_its_double(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view:
        async with view.consumer("g", ["t"], instance_id="one") as first:
            await settled(first)
        found = view.groups.get("g")
        assert found is not None and [each.instance_id for each in found.members] == ["one"]
        generation = core_of(view).groups.find("g").generation
        async with view.consumer("g", ["t"], instance_id="one") as again:
            await settled(again)
            assert core_of(view).groups.find("g").generation == generation
            async with view.consumer("g", ["t"], instance_id="one") as double:
                await settled(double)
                for _ in range(2):
                    with pytest.raises(FencedInstanceId):
                        await again.poll(wait_s=30)
                await double.poll(wait_s=30)
                await double.commit()


async def test_a_session_that_the_broker_does_not_allow(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("g", ["t"], session_timeout_ms=10) as consumer:
        for _ in range(2):
            with pytest.raises(InvalidSessionTimeout, match=r"group\.min\.session\.timeout\.ms"):
                await consumer.poll()
    async with live() as view:
        with pytest.raises(ValueError, match="earliest, latest, none"):
            async with view.consumer("g", ["t"], auto_offset_reset="never"):
                pass
        with pytest.raises(ValueError, match="max_poll_interval_ms is at least 1"):
            async with view.consumer("g", ["t"], max_poll_interval_ms=0):
                pass


def test_every_option_travels_in_the_one_object() -> None:
    parameters = set(signature(Broker.consumer).parameters) - {"self", "topics", "pattern"}
    assert {field.name for field in fields(ConsumerOptions)} == parameters - {"client_id"} | {"client"}


async def test_a_full_group_takes_the_next_member_once_one_has_left(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live(group_max_size="1") as view, view.consumer("g", ["t"]) as second:
        async with view.consumer("g", ["t"]) as first:
            await settled(first)
            for _ in range(2):
                with pytest.raises(GroupMaxSizeReached):
                    await second.poll()
        await settled(second)


async def test_the_groups_topic_is_deleted(live: Live, autojump_clock: MockClock) -> None:
    """Deleting it deletes the groups: members begin anew, with nothing committed."""
    async with live() as view, view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
        await produce(view, [1])
        assert await drain(consumer, 1) == [1]
        await consumer.commit()
        await core_of(view).topics.delete("__consumer_offsets")
        assert await drain(consumer, 1) == [1]
        await consumer.commit()
        assert view.groups.committed("g")[T0] == CommittedOffset(1)


async def test_no_poll_after_the_end_of_a_subscription_that_was_under_way(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g", ["t"]) as first:
        await settled(first)
        async with view.consumer("g", ["t"]) as second:
            await second.poll(wait_s=0)  # its round waits for the first one
            second.unsubscribe()
            found = view.groups.get("g")
            assert found is not None and len(found.members) == 1
            assert await second.poll(wait_s=5) == []
            second.subscribe(["t"])
            await settled(first, second)
            assert {*first.assignment, *second.assignment} == {T0, T1}


async def test_errors_of_the_body_come_out_as_they_are(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view:
        with pytest.raises(KeyError):
            async with view.consumer("g", ["t"]) as consumer:
                await settled(consumer)
                raise KeyError
        found = view.groups.get("g")
        assert found is not None and not found.members


async def test_a_cancelled_poll_changes_nothing(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
        with trio.move_on_after(0):
            await consumer.poll(wait_s=60)
        await settled(consumer)
        with trio.move_on_after(5) as scope:
            await consumer.poll(wait_s=60)
        assert scope.cancelled_caught
        await produce(view, [1])
        assert await drain(consumer, 1) == [1]


async def test_two_polls_at_once(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view, view.consumer("g", ["t"]) as consumer, trio.open_nursery() as nursery:
        nursery.start_soon(consumer.poll)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await consumer.poll()
        nursery.cancel_scope.cancel()


async def test_a_restart_finds_offsets_once_they_are_loaded(live: Live, autojump_clock: MockClock) -> None:
    async with live() as view:
        await produce(view, range(3))
        await view.groups.commit("g", {T0: CommittedOffset(2)})
    async with live() as view, view.consumer("g", ["t"]) as consumer:
        assert await drain(consumer, 1) == [2]


async def test_an_offline_partition_does_not_hold_up_the_others(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view, view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
        await produce(view, [1], 1)
        await settled(consumer)
        topic = core_of(view).topics.by_name["t"]
        topic.partitions[0].log.take_offline("the test says so")
        await produce(view, [2], 1)
        assert values(await consumer.poll()) in ([2], [1, 2])
        topic.partitions[1].log.take_offline("the test says so")
        with pytest.raises(StorageError, match="the test says so"):
            await consumer.poll()


async def transaction(view: Broker, producer_id: int, value: int, commit: bool | None) -> None:
    log = core_of(view).topics.by_name["t"].partitions[0].log
    batch = encode_batch(
        [WireRecord(0, 1_700_000_000_000, None, b"%d" % value)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    append(log, batch, 1_700_000_000_000)
    if commit is not None:
        await end(view, producer_id, commit)


async def end(view: Broker, producer_id: int, commit: bool) -> None:
    log = core_of(view).topics.by_name["t"].partitions[0].log
    staged = stage_marker(log, producer_id, 0, commit=commit, coordinator_epoch=0, now_ms=1_700_000_000_000)
    await log.write().confirm(staged)


async def test_committed_leaves_out_what_was_aborted_and_waits_for_what_is_open(
    live: Live, autojump_clock: MockClock
) -> None:
    async with live() as view:
        await transaction(view, 1, 1, False)
        await transaction(view, 2, 2, True)
        await transaction(view, 3, 3, None)
        await produce(view, [4])
        async with view.consumer("g", committed=True) as consumer, view.consumer("h") as other:
            for each in (consumer, other):
                each.assign([T0])
                await each.seek_to_beginning()
            assert values(await other.poll()) == [1, 2, 3, 4]
            assert values(await consumer.poll()) == [2]
            assert await consumer.poll() == []
            await end(view, 3, False)
            assert values(await consumer.poll()) == [4]
            await transaction(view, 5, 5, False)
            assert await consumer.poll() == []
            end_of_log = core_of(view).topics.by_name["t"].partitions[0].log.log_end_offset
            assert consumer.position(T0) == end_of_log  # lag is 0 behind what nobody gets


async def test_a_position_that_a_transaction_may_change_is_waited_for(
    live: Live, autojump_clock: MockClock
) -> None:
    """KIP-447: to go on at the old offset would be to read twice what the transaction is about to say is done."""
    async with live() as view:
        await produce(view, range(5))
        core = core_of(view)
        await view.groups.commit("g", {T0: CommittedOffset(1)})
        topic = core.topics.by_name["t"]
        new = NewOffset("t", topic.id, 0, 4, -1, "")
        staged = core.groups.offsets.commit_in_transaction("g", Committer(), ProducerIdAndEpoch(9, 0), [new])
        assert staged == [0]
        partition = core.groups.partition_of("g").partition
        async with view.consumer("g", auto_offset_reset="earliest") as consumer:
            consumer.assign([T0, T1])
            assert await consumer.poll(wait_s=10) == []
            await produce(view, [9], 1)
            assert values(await consumer.poll(wait_s=10)) == [9]  # the other one does not wait with it
            assert consumer.position(T0) is None
            async with trio.open_nursery() as nursery:
                nursery.start_soon(decide, core, partition)
                assert values(await consumer.poll(wait_s=10)) == [4]


async def decide(core: Core, partition: int) -> None:
    await wait_all_tasks_blocked()
    core.groups.offsets.transaction_ended(partition, 9, commit=True, marker_at=100)


class Worker:
    """Somebody who polls, works, commits, and may fall over at any moment."""

    def __init__(self, view: Broker, done: set[int], number: int) -> None:
        self.view = view
        self.done = done
        self.number = number
        self.scope = trio.CancelScope()

    async def work(self, seed: int) -> None:
        dice = random.Random(seed)
        with self.scope:
            kind = {"pattern": "t.*"} if dice.random() < 0.3 else {"topics": ["t"]}
            if dice.random() < 0.2:
                kind["instance_id"] = f"static-{self.number}"
            options: dict[str, Any] = {"auto_offset_reset": "earliest", "session_timeout_ms": 6000, **kind}
            async with self.view.consumer("g", **options) as consumer:
                while True:
                    try:
                        records = await consumer.poll(
                            wait_s=dice.choice([0, 0.5, 3]), max_records=dice.choice([1, 7, None])
                        )
                        await trio.sleep(dice.choice([0, 0, 0.2]))
                        self.done.update(values(records))
                        if dice.random() < 0.7:
                            await consumer.commit()
                    except (RebalanceInProgress, UnknownMemberId, IllegalGeneration):
                        pass
                    except FencedInstanceId:
                        return
                    if dice.random() < 0.02:
                        consumer.unsubscribe()
                        await consumer.poll(wait_s=0.1)
                        consumer.subscribe(["t"])


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(n, marks=pytest.mark.long) for n in range(3, 40))])
async def test_nothing_is_passed_over_when_members_come_and_go(
    live: Live, autojump_clock: MockClock, seed: int
) -> None:
    """At least once: workers come, fall over, stand still, and a topic grows, while records are produced."""
    dice = random.Random(seed)
    async with live() as view, trio.open_nursery() as nursery:
        done: set[int] = set()
        workers: list[Worker] = []
        count = 0
        for step in range(60):
            if dice.random() < 0.25 and len(workers) < 4:
                workers.append(Worker(view, done, dice.randrange(3)))
                nursery.start_soon(workers[-1].work, seed * 1000 + step)
            if dice.random() < 0.15 and workers:
                workers.pop(dice.randrange(len(workers))).scope.cancel()
            if dice.random() < 0.03:
                await view.topics.add_partitions("t", view.topics.partition_count("t") + 1)
            many = dice.randrange(20)
            await produce(view, range(count, count + many), dice.randrange(view.topics.partition_count("t")))
            count += many
            await trio.sleep(dice.choice([0, 0.1, 2, 8]))
        last = Worker(view, done, 9)
        nursery.start_soon(last.work, seed)
        with trio.move_on_after(600):
            while len(done) < count:
                await trio.sleep(5)
        assert done == set(range(count))
        nursery.cancel_scope.cancel()


async def test_in_whose_name_it_commits(live: Live) -> None:
    async with live() as view:
        await produce(view, range(3))
        async with view.consumer("g", ["t"], auto_offset_reset="earliest", instance_id="static") as consumer:
            with pytest.raises(UnknownMemberId):
                consumer.group_metadata()
            await drain(consumer, 3)
            (member,) = core_of(view).groups.find("g").members
            generation = core_of(view).groups.find("g").generation
            assert consumer.group_metadata() == ("g", generation, member.member_id, "static")
        async with view.consumer("g") as reader:
            reader.assign([T0])
            assert reader.group_metadata() == ConsumerGroupMetadata("g")
        async with view.consumer("") as alone:
            alone.assign([T0])
            with pytest.raises(InvalidGroupId):
                alone.group_metadata()


async def test_back_to_what_is_committed(live: Live) -> None:
    async with live() as view:
        await produce(view, range(6))
        async with view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
            assert await drain(consumer, 6) == [*range(6)]
            consumer.seek_to_committed()
            assert consumer.position(T0) is None
            assert await drain(consumer, 6) == [*range(6)]  # nothing is committed: where the policy says
            await consumer.commit({T0: CommittedOffset(4)})
            consumer.seek_to_committed()
            assert consumer.assignment == {T0, T1}
            assert await drain(consumer, 2) == [4, 5]
            await consumer.poll(wait_s=0)
            assert consumer.position(T0) == 6
