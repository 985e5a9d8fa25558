"""Committed offsets on a real log: what is kept of a commit, and what deletion and expiry leave."""

from collections.abc import Callable

import pytest
from trio.testing import MockClock

from leafcuttr.errors import ErrorCode, GroupIdNotFound, IllegalGeneration, NonEmptyGroup
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.states import GroupState
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr_sdk import TopicPartition
from support.coordinator import commit, join, join_event, running, sync, topics

Start = Callable[..., Broker]
ONE = {"offsets_topic_num_partitions": "1"}


def new(broker: Broker, partition: int, offset: int) -> NewOffset:
    return NewOffset("t", broker.topics.by_name["t"].id, partition, offset, -1, "")


def offsets_of(broker: Broker, group: str) -> dict[int, int]:
    found = broker.groups.offsets.fetch(group).get("t", {})
    return {partition: committed.offset for partition, committed in found.items()}


async def test_each_offset_knows_its_record(start: Start) -> None:
    """Of two commits of a partition the later one in the log counts, in memory and after a restart."""
    broker = await topics(start(**ONE))
    log = broker.topics.by_name["__consumer_offsets"].partitions[0].log
    offsets = broker.groups.offsets
    async with running(broker.groups):
        assert await commit(broker, "other") is ErrorCode.NONE
        base = log.log_end_offset
        assert offsets.commit("g", Committer(), [new(broker, 1, 3), new(broker, 0, 4)]) == [0, 0]
        kept = offsets.fetch("g")["t"]
        assert (kept[1].written_at, kept[0].written_at) == (base, base + 1)
    broker = start(**ONE)
    async with running(broker.groups):
        found = broker.groups.offsets.fetch("g")["t"]
        assert (found[1].written_at, found[0].written_at) == (base, base + 1)
        assert offsets_of(broker, "g") == {1: 3, 0: 4}


@pytest.mark.parametrize("retention_ms", [-1, 0, 1000, 2**63 - 1])
async def test_a_retention_of_its_own(start: Start, retention_ms: int) -> None:
    broker = await topics(start(**ONE))
    async with running(broker.groups):
        code = broker.groups.offsets.commit("g", Committer(), [new(broker, 0, 1)], retention_ms=retention_ms)
        assert code == [0]
        kept = broker.groups.offsets.fetch("g")["t"][0]
        due = -1 if retention_ms < 0 else min(kept.commit_timestamp + retention_ms, 2**63 - 1)
        assert kept.expire_timestamp == due


@pytest.mark.parametrize("generation", [0, 1])
async def test_a_group_that_is_not_there_has_no_generation(start: Start, generation: int) -> None:
    broker = await topics(start(**ONE))
    offsets, who = broker.groups.offsets, Committer(generation, "m")
    async with running(broker.groups):
        with pytest.raises(GroupIdNotFound):
            offsets.commit("g", who, [new(broker, 0, 1)])
        with pytest.raises(IllegalGeneration):
            offsets.commit("g", who, [new(broker, 0, 1)], knows_missing_groups=False)
        with pytest.raises(IllegalGeneration):
            offsets.commit_in_transaction("g", who, ProducerIdAndEpoch(7, 0), [new(broker, 0, 1)])
        assert broker.groups.all() == []


async def test_a_transactional_commit_that_the_log_refused_leaves_nothing(start: Start) -> None:
    broker = await topics(start(**ONE))
    offsets = broker.groups.offsets
    async with running(broker.groups):
        assert await commit(broker, "g") is ErrorCode.NONE
        broker.topics.by_name["__consumer_offsets"].partitions[0].log.take_offline("a test")
        codes = offsets.commit_in_transaction("g", Committer(), ProducerIdAndEpoch(7, 0), [new(broker, 0, 9)])
        assert codes == [ErrorCode.NOT_COORDINATOR]
        assert offsets.unstable("g") == frozenset()
        offsets.transaction_ended(0, 7, commit=True, marker_at=99)
        assert offsets_of(broker, "g") == {0: 5}


async def test_members_that_are_no_consumers_may_use_anything(start: Start) -> None:
    broker = await topics(start(**ONE))
    groups, p0 = broker.groups, TopicPartition("t", 0)
    async with running(groups):
        assert await commit(broker, "g") is ErrorCode.NONE
        joined = await join(groups, "g", protocol_type="connect")
        await sync(groups, "g", joined)
        with pytest.raises(NonEmptyGroup):
            groups.offsets.delete("g", [p0])
        assert offsets_of(broker, "g") == {0: 5}


async def test_what_is_deleted_stays_deleted_and_what_is_not_stays(start: Start) -> None:
    """In memory, and after a restart: the tombstones are after the records that they delete."""
    broker = await topics(start(**ONE))
    offsets = broker.groups.offsets
    async with running(broker.groups):
        many = [new(broker, partition, partition) for partition in range(5)]
        assert offsets.commit("g", Committer(), many) == [0] * 5
        assert offsets.delete("g", [TopicPartition("t", number) for number in (4, 0, 2)]) == [0] * 3
        assert offsets_of(broker, "g") == {1: 1, 3: 3}
    broker = start(**ONE)
    async with running(broker.groups):
        assert offsets_of(broker, "g") == {1: 1, 3: 3}


async def test_nothing_expires_while_the_members_divide_anew(start: Start, autojump_clock: MockClock) -> None:
    """What they will subscribe to is not known before they have."""
    broker = await topics(start(**ONE, offsets_retention_minutes="1"))
    groups = broker.groups
    async with running(groups):
        joined = await join(groups, "g", session_timeout_ms=1_000_000, rebalance_timeout_ms=1_000_000)
        await sync(groups, "g", joined)
        other = NewOffset("u", bytes(16), 0, 5, -1, "")
        committed = groups.offsets.commit("g", Committer(1, joined.member_id), [other])
        assert committed == [0]
        groups.join("g", join_event(session_timeout_ms=1_000_000, rebalance_timeout_ms=1_000_000))
        (entry,) = groups.entries()
        assert entry.group.state is GroupState.PREPARING_REBALANCE
        broker.clock.set_by_ms = 3_600_000  # type: ignore[attr-defined]
        groups.offsets.expire(entry)
        assert groups.offsets.fetch("g")


async def test_no_tombstone_goes_over_a_commit_for_the_topic_that_comes_next(start: Start) -> None:
    broker = await topics(start(**ONE))
    offsets = broker.groups.offsets
    log = broker.topics.by_name["__consumer_offsets"].partitions[0].log
    async with running(broker.groups):
        assert offsets.commit("g", Committer(), [new(broker, 0, 8), new(broker, 1, 8)]) == [0, 0]
        found = offsets.forget_topic("t")
        assert offsets_of(broker, "g") == {}
        assert offsets.commit("g", Committer(), [new(broker, 1, 2)]) == [0]
        end = log.log_end_offset
        await offsets.write_tombstones_of_topic("t", found)
        assert log.log_end_offset == end + 1
        assert offsets_of(broker, "g") == {1: 2}
    broker = start(**ONE)
    async with running(broker.groups):
        assert offsets_of(broker, "g") == {1: 2}
