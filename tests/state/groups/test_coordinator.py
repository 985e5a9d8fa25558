"""The coordinator on real logs, in the time of a clock that jumps when everybody sleeps.

One module, longer than most, because each test needs the same broker, its clock and its restarts.
"""

from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.errors import CoordinatorNotAvailable, ErrorCode, GroupIdNotFound, GroupMaxSizeReached
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.events import JoinAnswer, Leaver
from leafcuttr.state.groups.states import GroupState
from leafcuttr.state.internal_log import ProducerIdAndEpoch
from leafcuttr_sdk import TopicPartition
from support.coordinator import commit, join, join_event, running, sync, topics
from support.logs import append_marker
from support.topics import alter_config
from support.waiting import next_look

Start = Callable[..., Broker]


async def test_a_silent_member_is_gone_after_its_session_and_not_before(
    start: Start, autojump_clock: MockClock
) -> None:
    broker = await topics(start())
    groups = broker.groups
    async with running(groups):
        joined = await join(groups, "g")
        await sync(groups, "g", joined)
        for _ in range(4):
            await trio.sleep(9.9)
            assert groups.heartbeat("g", joined.member_id, None, 1) is ErrorCode.NONE
        await trio.sleep(9.9)
        assert len(groups.find("g").members) == 1
        await trio.sleep(0.2)
        assert groups.find("g").is_empty
        assert groups.heartbeat("g", joined.member_id, None, 1) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_waiting_members_are_answered_at_the_rebalance_timeout(
    start: Start, autojump_clock: MockClock
) -> None:
    groups = start().groups
    async with running(groups):
        first = await join(groups, "g", session_timeout_ms=100_000)
        await sync(groups, "g", first)
        began = trio.current_time()
        second = await join(groups, "g", session_timeout_ms=100_000)
        assert trio.current_time() - began == pytest.approx(30, abs=0.1)
        assert second.generation == 2 and second.leader == second.member_id
        assert first.member_id not in groups.find("g").members


async def test_the_first_round_waits_for_its_delay(start: Start, autojump_clock: MockClock) -> None:
    groups = (await topics(start(group_initial_rebalance_delay_ms="3000"))).groups
    async with running(groups):
        answers: list[JoinAnswer] = []

        async def one() -> None:
            answers.append(await join(groups, "g"))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(one)
        assert [answer.generation for answer in answers] == [1, 1, 1]
        assert sum(len(answer.members) for answer in answers) == 3


async def test_many_groups_share_one_timer(start: Start, autojump_clock: MockClock) -> None:
    groups = start().groups
    async with running(groups):
        for number in range(100):
            await join(groups, f"g{number}", session_timeout_ms=10_000 + 100 * number)
        await trio.sleep(10 + 5.05)
        gone = [group for group in groups.all() if group.is_empty]
        assert len(gone) == 51
        await trio.sleep(5)
        assert all(group.is_empty for group in groups.all())


async def test_groups_and_offsets_come_back_after_a_restart(start: Start, autojump_clock: MockClock) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        joined = await join(broker.groups, "g", instance_id="one")
        await sync(broker.groups, "g", joined)
        member = Committer(1, joined.member_id, "one")
        assert await commit(broker, "g", member) is ErrorCode.NONE
        assert await commit(broker, "g", member, offset=6) is ErrorCode.NONE
        assert await commit(broker, "simple", partition=1) is ErrorCode.NONE
        await trio.sleep(9)
    broker = start()
    assert broker.groups.loading
    async with running(broker.groups):
        group = broker.groups.find("g")
        assert (group.state, group.generation, group.protocol_name) == (GroupState.STABLE, 1, "range")
        (restored,) = group.members
        assert (restored.member_id, restored.instance_id) == (joined.member_id, "one")
        assert restored.assignment == b"to " + joined.member_id.encode()
        kept = broker.groups.offsets.fetch("g")["t"][0]
        assert (kept.offset, kept.leader_epoch, kept.metadata) == (6, 3, "said")
        assert kept.topic_id == broker.topics.by_name["t"].id
        assert broker.groups.offsets.fetch("simple")["t"][1].offset == 5
        await trio.sleep(9.5)
        assert broker.groups.heartbeat("g", joined.member_id, "one", 1) is ErrorCode.NONE, "a fresh session"
        back = await join(broker.groups, "g", instance_id="one")
        assert back.generation == 1 and back.skip_assignment


async def test_requests_meanwhile_are_told_to_come_back(start: Start) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        await commit(broker, "g")
    groups = start().groups
    with pytest.raises(Exception) as caught:
        groups.find("g")
    assert getattr(caught.value, "code", None) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_slow_disk_delays_the_answer_not_the_loop(start: Start) -> None:
    broker = await topics(start())
    # A flush after every message is not done on the loop.
    await alter_config(broker.topics, "__consumer_offsets", {"flush.messages": "1"})
    async with running(broker.groups):
        joined = await join(broker.groups, "g")
        assert (await sync(broker.groups, "g", joined)).error is ErrorCode.NONE
        member = Committer(1, joined.member_id)
        async with trio.open_nursery() as nursery:
            for offset in range(10):
                nursery.start_soon(lambda n=offset: commit(broker, "g", member, offset=n))
        kept = broker.groups.offsets.fetch("g")["t"][0]
        assert 0 <= kept.offset < 10
    broker = start()
    async with running(broker.groups):
        assert broker.groups.offsets.fetch("g")["t"][0] == kept, "memory and log agree on the last one"


async def test_nothing_is_acknowledged_that_the_log_refused(start: Start) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        for partition in broker.topics.by_name["__consumer_offsets"].partitions:
            partition.log.offline = "the disk is gone"
        assert await commit(broker, "g") is ErrorCode.NOT_COORDINATOR
        assert broker.groups.offsets.fetch("g") == {}
        joined = await join(broker.groups, "g")
        assert (await sync(broker.groups, "g", joined)).error is ErrorCode.NOT_COORDINATOR


async def test_groups_of_a_log_that_cannot_be_read_are_not_available(start: Start) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        await commit(broker, "g")
        await commit(broker, "other")
    broker = start()
    topic = broker.topics.by_name["__consumer_offsets"]
    holding = [each.log for each in topic.partitions if each.log.high_watermark]
    assert len(holding) == 2
    holding[0].offline = "the disk is gone"
    async with running(broker.groups):
        found = []
        for group in ("g", "other"):
            try:
                found.append(broker.groups.find(group).group_id)
            except CoordinatorNotAvailable:
                found.append("not available")
        assert found.count("not available") == 1


async def test_offsets_of_an_empty_group_expire_with_it(start: Start, autojump_clock: MockClock) -> None:
    broker = await topics(start(offsets_retention_minutes="1", offsets_retention_check_interval_ms="10000"))
    groups = broker.groups
    async with running(groups):
        joined = await join(groups, "g")
        await sync(groups, "g", joined)
        await commit(broker, "g", Committer(1, joined.member_id))
        for _ in range(10):
            await trio.sleep(9)
            groups.heartbeat("g", joined.member_id, None, 1)
        assert groups.offsets.fetch("g"), "kept for as long as a member subscribes to the topic"
        groups.leave("g", [Leaver(joined.member_id)])
        await trio.sleep(59)
        assert groups.offsets.fetch("g"), "a minute counts from when the group became empty"
        await trio.sleep(12)
        assert not groups.offsets.fetch("g")
        with pytest.raises(GroupIdNotFound):
            groups.find("g")
    groups = start().groups
    async with running(groups):
        assert groups.all() == []


@pytest.mark.setting("group.initial.rebalance.delay.ms")
async def test_how_long_a_new_group_waits_for_other_members(start: Start, autojump_clock: MockClock) -> None:
    broker = await topics(start(group_initial_rebalance_delay_ms="7000"))
    async with running(broker.groups):
        began = trio.current_time()
        assert (await join(broker.groups, "g")).generation == 1
        assert trio.current_time() - began == pytest.approx(7, abs=0.01)


@pytest.mark.setting("offsets.retention.check.interval.ms")
async def test_how_often_expired_offsets_are_deleted(start: Start, autojump_clock: MockClock) -> None:
    broker = await topics(start(offsets_retention_minutes="1", offsets_retention_check_interval_ms="190000"))
    async with running(broker.groups):
        began = trio.current_time()
        await commit(broker, "simple")
        due = next_look(began, 190, trio.current_time() + 60)  # no multiple of the default's 600
        await trio.sleep_until(due - 1)
        assert broker.groups.offsets.fetch("simple")
        await trio.sleep_until(due + 1)
        assert not broker.groups.offsets.fetch("simple")


async def test_offsets_of_a_simple_group_expire_after_the_commit(
    start: Start, autojump_clock: MockClock
) -> None:
    broker = await topics(start(offsets_retention_minutes="1", offsets_retention_check_interval_ms="10000"))
    async with running(broker.groups):
        await commit(broker, "simple", partition=0)
        await trio.sleep(40)
        await commit(broker, "simple", partition=1)
        await trio.sleep(35)
        assert set(broker.groups.offsets.fetch("simple")["t"]) == {1}
        await trio.sleep(40)
        assert broker.groups.all() == []


def commit_in_transaction(broker: Broker, group: str, *, partition: int, offset: int) -> ErrorCode:
    new = NewOffset("t", broker.topics.by_name["t"].id, partition, offset, 3, "said")
    result = broker.groups.offsets.commit_in_transaction(group, Committer(), ProducerIdAndEpoch(7, 0), [new])
    assert isinstance(result, list)
    return result[0]


@pytest.mark.parametrize("commits", [True, False])
async def test_offsets_do_not_expire_while_a_transaction_may_change_them(
    start: Start, autojump_clock: MockClock, commits: bool
) -> None:
    """A tombstone behind the transaction's commit would outlive it: the offset would be gone after a restart."""
    settings = {"offsets_retention_minutes": "1", "offsets_topic_num_partitions": "1"}
    broker = await topics(start(**settings, offsets_retention_check_interval_ms="10000"))
    groups = broker.groups
    both = {TopicPartition("t", 0), TopicPartition("t", 1)}
    log = broker.topics.by_name["__consumer_offsets"].partitions[0].log
    async with running(groups):
        assert not await commit(broker, "g", partition=0, offset=5)
        assert not await commit(broker, "g", partition=1, offset=5)
        assert not await commit(broker, "other", partition=0)
        assert not commit_in_transaction(broker, "g", partition=0, offset=8)
        end = log.log_end_offset
        await trio.sleep(200)
        assert not groups.offsets.fetch("other")
        assert {each: got.offset for each, got in groups.offsets.fetch("g")["t"].items()} == {0: 5}
        assert log.log_end_offset == end + 3, "of partition 1, of the other group's offset, of that group"
        assert groups.offsets.unstable("g") == both - {TopicPartition("t", 1)}
        marker_at = append_marker(log, 7, 0, commit=commits, coordinator_epoch=0)
        groups.offsets.transaction_ended(0, 7, commit=commits, marker_at=marker_at)
        assert groups.offsets.fetch("g")["t"][0].offset == (8 if commits else 5)
    broker = start(**settings)
    async with running(broker.groups):
        assert broker.groups.offsets.fetch("g")["t"][0].offset == (8 if commits else 5)


async def test_a_group_that_only_a_transaction_knows_is_kept(start: Start, autojump_clock: MockClock) -> None:
    broker = await topics(start(offsets_retention_minutes="1", offsets_retention_check_interval_ms="10000"))
    groups = broker.groups
    async with running(groups):
        assert not commit_in_transaction(broker, "g", partition=0, offset=8)
        await trio.sleep(200)
        assert groups.find("g").is_empty
        assert not groups.offsets.fetch("g")
        groups.offsets.transaction_ended(groups.partition_of("g").partition, 7, commit=True, marker_at=99)
        assert groups.offsets.fetch("g")["t"][0].offset == 8


async def test_deleting_the_offsets_topic_deletes_the_groups(start: Start) -> None:
    broker = await topics(start())
    groups = broker.groups
    async with running(groups):
        first = await join(groups, "g")
        await sync(groups, "g", first)
        waiter = groups.join("g", join_event())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter.wait)
            await wait_all_tasks_blocked()
            await broker.topics.delete("__consumer_offsets")
        assert waiter.answer is None
        assert groups.all() == []
        await groups.ready()
        assert (await join(groups, "g")).generation == 1


async def test_a_new_offsets_topic_has_groups_where_the_old_one_could_not_be_read(start: Start) -> None:
    broker = await topics(start(offsets_topic_num_partitions="1"))
    async with running(broker.groups):
        await commit(broker, "g")
    broker = start(offsets_topic_num_partitions="1")
    groups = broker.groups
    broker.topics.by_name["__consumer_offsets"].partitions[0].log.take_offline("a test")
    async with running(groups):
        assert groups.failed == 1
        with pytest.raises(CoordinatorNotAvailable):
            groups.find("g")
        await broker.topics.delete("__consumer_offsets")
        assert groups.failed == 0
        await groups.ready()
        assert (await join(groups, "g")).generation == 1


async def test_offsets_of_a_deleted_topic_do_not_come_back(start: Start) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        await commit(broker, "g")
        await commit(broker, "other")
        await broker.topics.delete("t")
        assert not broker.groups.offsets.fetch("g")
        await broker.topics.create("t", 2, {})
        await commit(broker, "g", offset=9)
        await wait_all_tasks_blocked()
    broker = start()
    async with running(broker.groups):
        assert broker.groups.offsets.fetch("g")["t"][0].offset == 9
        assert not broker.groups.offsets.fetch("other")


async def test_offsets_of_a_topic_of_the_same_name_are_not_taken_for_its_own(start: Start) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        await commit(broker, "g")
    # Not running: there is nobody to write tombstones, as after a crash right behind the deletion.
    await broker.topics.delete("t")
    await broker.topics.create("t", 2, {})
    broker = start()
    async with running(broker.groups):
        assert not broker.groups.offsets.fetch("g")


async def test_damage_makes_the_groups_of_one_partition_unavailable(start: Start) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        await commit(broker, "g")
        await commit(broker, "other")
    broker = start()
    topic = broker.topics.by_name["__consumer_offsets"]
    log = next(each.log for each in topic.partitions if each.log.high_watermark)
    (file,) = log.directory.glob("*.log")
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    async with running(broker.groups):
        outcomes = set()
        for group in ("g", "other"):
            try:
                outcomes.add(len(broker.groups.offsets.fetch(group)))
            except CoordinatorNotAvailable:
                outcomes.add(-1)
        assert outcomes == {1, -1}


async def test_a_watch_hears_of_every_change_of_its_group_and_of_no_other(
    start: Start,
) -> None:
    groups = (await topics(start())).groups
    heard: list[str] = []
    async with running(groups):
        with (
            groups.watch("g", lambda: heard.append(groups.find("g").state.value)),
            groups.watch("other", lambda: pytest.fail("nothing has happened to that one")),
        ):
            joined = await join(groups, "g")
            await sync(groups, "g", joined)
            assert heard == ["CompletingRebalance", "Stable"]
            groups.leave("g", [Leaver(joined.member_id)])
            assert heard[-1] == "Empty"
        before = list(heard)
        await join(groups, "g")
        assert heard == before


async def test_generations_of_an_earlier_process_are_no_rebalances_of_this_one(start: Start) -> None:
    broker = await topics(start())
    async with running(broker.groups):
        await sync(broker.groups, "g", await join(broker.groups, "g"))
        assert broker.groups.rebalances == 1
    groups = start().groups
    async with running(groups):
        assert groups.find("g").generation == 1
        assert groups.rebalances == 0
        await join(groups, "other")
        assert groups.rebalances == 1


async def test_nothing_is_kept_of_ended_watches(start: Start) -> None:
    groups = (await topics(start())).groups
    heard: list[str] = []
    async with running(groups):
        with groups.watch("g", lambda: heard.append("first")):
            with groups.watch("g", lambda: heard.append("second")):
                await join(groups, "g")
            before = len(heard)
            assert set(heard) == {"first", "second"}
            groups.leave("g", [Leaver(member.member_id) for member in groups.find("g").members])
            assert set(heard[before:]) == {"first"}
        assert groups._watchers == {}


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_group_is_deleted_with_what_an_open_transaction_holds_for_it(
    start: Start, restarts: bool
) -> None:
    """The end of the transaction does not bring it back."""
    settings = {"offsets_topic_num_partitions": "1"}
    broker = await topics(start(**settings))
    async with running(broker.groups):
        assert not await commit(broker, "g", partition=1)
        assert not commit_in_transaction(broker, "g", partition=0, offset=8)
        assert broker.groups.delete("g") is ErrorCode.NONE
        assert broker.groups.offsets.unstable("g") == frozenset()
        if not restarts:
            broker.groups.offsets.transaction_ended(0, 7, commit=True, marker_at=99)
            assert broker.groups.offsets.fetch("g") == {}
    if restarts:
        log = broker.topics.by_name["__consumer_offsets"].partitions[0].log
        append_marker(log, 7, 0, commit=True, coordinator_epoch=0)
        broker = start(**settings)
        async with running(broker.groups):
            assert broker.groups.offsets.fetch("g") == {}
            assert broker.groups.all() == []


async def test_a_member_that_joins_again_is_not_counted_twice(start: Start) -> None:
    """What the metadata of all members may take together is four times the largest batch of `__consumer_offsets`."""
    broker = await topics(start(message_max_bytes="20000", offsets_topic_num_partitions="1"))
    groups = broker.groups
    most = 4 * broker.topics.by_name["__consumer_offsets"].partitions[0].log.config.max_message_bytes
    async with running(groups):
        protocols = (("range", bytes(most - len("range"))),)
        with pytest.raises(GroupMaxSizeReached):
            groups.join("g", join_event(protocols=(("range", bytes(most + 1)),)))
        first = await join(groups, "g", protocols=protocols)
        assert first.error is ErrorCode.NONE
        again = await join(groups, "g", first.member_id, protocols=protocols)
        assert again.error is ErrorCode.NONE
        with pytest.raises(GroupMaxSizeReached):
            groups.join("g", join_event())
        smaller = await join(groups, "g", first.member_id, protocols=(("range", b"x"),))
        assert smaller.error is ErrorCode.NONE
        groups.join("g", join_event(protocols=(("range", bytes(1000)),)))
