"""What clients leave behind that never come back is bounded: groups, member ids, and what is kept for their time."""

import gc
import tracemalloc
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.errors import ErrorCode, UnknownMemberId
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.coordinator import GroupCoordinator
from leafcuttr.state.groups.events import JoinAnswer, Leaver
from leafcuttr.state.groups.idle import MOST_HANDED_OUT, MOST_IDLE
from leafcuttr.state.groups.machine import Group
from leafcuttr.state.groups.records import GroupKey, OffsetKey, parse_key
from leafcuttr.state.groups.table import Entry
from leafcuttr.wire.entries import decode_entries
from support.coordinator import commit, join_event, running, sync, topics
from support.topics import alter_config
from support.waiting import eventually

Start = Callable[..., Broker]
SESSION_S = 10.0


def opened(start: Start, **settings: str) -> Broker:
    """Nothing expires here: a clock that jumps does so too while a worker is waited for."""
    return start(offsets_retention_check_interval_ms=str(2**31 - 1), **settings)


def hand_out(groups: GroupCoordinator, group: str, **changes: object) -> str:
    """The member id for a client's first JoinGroup, as those of v4 and later."""
    answer = groups.join(group, join_event(two_steps=True, **changes)).answer
    assert isinstance(answer, JoinAnswer) and answer.error is ErrorCode.MEMBER_ID_REQUIRED
    return answer.member_id


def leave_idle(groups: GroupCoordinator, group: str) -> None:
    """Make a group that nobody is in, without a record of it."""
    assert groups.leave(group, [Leaver(hand_out(groups, group))]) == [ErrorCode.NONE]


def alive(kind: type) -> int:
    """How many there are, wherever they are still held."""
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())


def names(groups: GroupCoordinator) -> list[str]:
    return [group.group_id for group in groups.all()]


async def trimmed(groups: GroupCoordinator) -> None:
    with trio.fail_after(60):
        while len(groups.all()) > MOST_IDLE:
            await trio.lowlevel.checkpoint()


async def in_the_log(broker: Broker) -> set[str]:
    """The groups with records in `__consumer_offsets` that have no tombstone."""
    latest: dict[bytes, bytes | None] = {}
    topic = broker.topics.by_name["__consumer_offsets"]
    for partition in topic.partitions:
        async for batches in broker.groups._log.batches(partition.index):
            for header, batch in batches:
                latest |= {key: value for _, key, value in decode_entries(header, batch) if key is not None}
    keys = [parse_key(key) for key, value in latest.items() if value is not None]
    return {key.group for key in keys if isinstance(key, GroupKey | OffsetKey)}


@pytest.mark.parametrize("clients", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
async def test_clients_that_never_come_back(clients: int, start: Start, autojump_clock: MockClock) -> None:
    groups = (await topics(opened(start))).groups
    async with running(groups):
        for number in range(clients):
            hand_out(groups, f"g{number}")
        most = MOST_HANDED_OUT + MOST_IDLE
        assert len(groups.all()) <= most
        assert alive(Group) <= most, "the timer holds none that are gone"
        await trio.sleep(SESSION_S + 1)
        assert len(groups.all()) == MOST_IDLE
        assert alive(Group) <= MOST_IDLE + 1, "the last that expired may be a variable of the timer's task"


@pytest.mark.long
async def test_what_they_take_of_memory(start: Start, autojump_clock: MockClock) -> None:
    groups = (await topics(opened(start))).groups
    async with running(groups):
        hand_out(groups, "first")
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(MOST_HANDED_OUT + 2 * MOST_IDLE):
            hand_out(groups, f"g{number}")
        meanwhile, _ = tracemalloc.get_traced_memory()
        await trio.sleep(SESSION_S + 1)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert meanwhile - before < 16 << 20
        assert after - before < 5 << 20


@pytest.mark.long
async def test_a_member_that_leaves_at_once_is_not_kept_until_the_end_of_a_session(start: Start) -> None:
    """The timer knows a group until its session ends, which may be half an hour away."""
    groups = (await topics(opened(start))).groups
    async with running(groups):
        for number in range(4 * MOST_IDLE):
            leave_idle(groups, f"g{number}")
        assert len(groups.all()) == MOST_IDLE
        assert alive(Entry) == MOST_IDLE
        assert len(groups._timers._heap) <= 3 * MOST_IDLE


async def test_members_of_one_group_that_never_come_back(start: Start) -> None:
    groups = (await topics(opened(start))).groups
    async with running(groups):
        first = hand_out(groups, "g")
        for _ in range(MOST_HANDED_OUT - 1):
            last = hand_out(groups, "g")
        second = hand_out(groups, "g")
        refused = groups.join("g", join_event(first)).answer
        assert isinstance(refused, JoinAnswer) and refused.error is ErrorCode.UNKNOWN_MEMBER_ID
        for member_id in (last, second):
            joined = groups.join("g", join_event(member_id))
            assert joined.answer is None or joined.answer.error is ErrorCode.NONE


@pytest.mark.long
async def test_long_names_count_for_more(start: Start) -> None:
    groups = (await topics(opened(start))).groups
    async with running(groups):
        for number in range(1_200):
            hand_out(groups, f"{number}" + "g" * 5_000, client_id="c" * 8_000)
        assert len(groups.all()) < 1_000
        for number in range(1_500):
            leave_idle(groups, f"{number}" + "h" * 8_000)
        assert sum(len(name) for name in names(groups)) < 10 << 20


@pytest.mark.long
async def test_ids_with_long_names_do_not_take_those_of_others(start: Start) -> None:
    """A few dozen requests a round trip would do, and no other client would come to join."""
    groups = (await topics(opened(start))).groups
    async with running(groups):
        first = hand_out(groups, "g")
        long = hand_out(groups, "long", client_id="c" * 32_000)
        for number in range(300):
            last = hand_out(groups, f"{number}" + "g" * 32_000, client_id="c" * 32_000)
        joined = groups.join("g", join_event(first))
        assert joined.answer is None or joined.answer.error is ErrorCode.NONE
        with pytest.raises(UnknownMemberId):
            groups.join("long", join_event(long))
        joined = groups.join("299" + "g" * 32_000, join_event(last))
        assert joined.answer is None or joined.answer.error is ErrorCode.NONE


async def test_the_one_that_has_been_idle_for_longest_goes_first(start: Start) -> None:
    groups = (await topics(opened(start))).groups
    async with running(groups):
        for number in range(MOST_IDLE):
            leave_idle(groups, f"g{number}")
        came = hand_out(groups, "g0")
        groups.leave("g0", [Leaver(came)])  # it is idle anew
        for number in range(3):
            leave_idle(groups, f"later{number}")
        kept = set(names(groups))
        assert not kept & {"g1", "g2", "g3"}
        assert {"g0", "g4", "later0", "later1", "later2"} <= kept and len(kept) == MOST_IDLE
        with pytest.raises(UnknownMemberId):
            groups.join("g1", join_event("somebody"))


async def test_groups_that_serve_for_something_stay(start: Start, autojump_clock: MockClock) -> None:
    broker = await topics(opened(start))
    groups = broker.groups
    async with running(groups):
        assert await commit(broker, "committed") is ErrorCode.NONE
        joined = groups.join("member", join_event(session_timeout_ms=1_000_000))
        expected = hand_out(groups, "expected", session_timeout_ms=1_000_000)
        for number in range(2 * MOST_IDLE):
            leave_idle(groups, f"g{number}")
        assert {"committed", "member", "expected"} <= set(names(groups))
        assert len(groups.all()) == MOST_IDLE + 3
        assert isinstance(joined.answer, JoinAnswer)
        assert groups.heartbeat("member", joined.answer.member_id, None, 1) is ErrorCode.NONE
        came = groups.join("expected", join_event(expected)).answer
        assert isinstance(came, JoinAnswer) and came.error is ErrorCode.NONE
        assert groups.offsets.fetch("committed")["t"][0].offset == 5


@pytest.mark.long
async def test_what_was_stored_of_them_gets_a_tombstone(start: Start, mock_clock: MockClock) -> None:
    """Members of old clients, and static ones, join in one step: of their groups there is a record."""
    broker = await topics(opened(start, offsets_topic_num_partitions="2"))
    groups = broker.groups
    async with running(groups):
        for number in range(MOST_IDLE + 300):
            groups.join(f"g{number}", join_event(rebalance_timeout_ms=1_000))
        for _ in range(int(SESSION_S) + 5):
            mock_clock.jump(1)
            await wait_all_tasks_blocked()
        kept = set(names(groups))
        assert len(kept) == MOST_IDLE and all(group.is_empty for group in groups.all())
        assert await in_the_log(broker) == kept
        for number in range(MOST_IDLE):
            leave_idle(groups, f"unstored{number}")
        assert await in_the_log(broker) == set()
    broker = opened(start)
    async with running(broker.groups):
        assert names(broker.groups) == []


async def test_none_is_written_for_what_was_never_stored(start: Start) -> None:
    broker = await topics(opened(start))
    groups = broker.groups
    async with running(groups):
        for number in range(2 * MOST_IDLE):
            leave_idle(groups, f"g{number}")
        written = [each.log.high_watermark for each in broker.topics.by_name["__consumer_offsets"].partitions]
        assert set(written) == {0}


@pytest.mark.long
async def test_of_those_in_the_log_the_ones_that_became_empty_last_are_kept(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await topics(opened(start, offsets_topic_num_partitions="3"))
    more = MOST_IDLE + 500
    with monkeypatch.context() as patch:
        # As another broker leaves them, which keeps them all.
        patch.setattr("leafcuttr.state.groups.idle.MOST_IDLE", 10 * MOST_IDLE)
        async with running(broker.groups):
            for number in range(more):
                answer = broker.groups.join(f"g{number}", join_event()).answer
                assert isinstance(answer, JoinAnswer)
                broker.groups.leave(f"g{number}", [Leaver(answer.member_id)])
                broker.clock.set_by_ms += 1  # type: ignore[attr-defined]
            assert len(await in_the_log(broker)) == more
    broker = opened(start)
    async with running(broker.groups):
        await trimmed(broker.groups)
        assert set(names(broker.groups)) == {f"g{number}" for number in range(500, more)}
        assert await in_the_log(broker) == set(names(broker.groups))


async def test_commits_that_are_refused_leave_no_group(start: Start) -> None:
    broker = await topics(opened(start, offset_metadata_max_bytes="3"))
    new = NewOffset("t", broker.topics.by_name["t"].id, 0, 1, -1, "too long")
    async with running(broker.groups):
        for number in range(2 * MOST_IDLE):
            codes = broker.groups.offsets.commit(f"g{number}", Committer(), [new])
            assert codes == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
        await trimmed(broker.groups)
        assert len(broker.groups.all()) == MOST_IDLE


@pytest.mark.long
async def test_groups_that_lose_their_offsets_with_a_topic(start: Start) -> None:
    broker = await topics(opened(start, offsets_topic_num_partitions="2"))
    async with running(broker.groups):
        for number in range(MOST_IDLE + 400):
            assert await commit(broker, f"g{number}") is ErrorCode.NONE
        assert len(broker.groups.all()) == MOST_IDLE + 400
        await broker.topics.delete("t")
        await trimmed(broker.groups)
        with trio.fail_after(60):
            while await in_the_log(broker):
                await trio.lowlevel.checkpoint()
        assert len(broker.groups.all()) == MOST_IDLE


@pytest.mark.long
async def test_while_the_log_takes_no_tombstones(start: Start) -> None:
    broker = await topics(opened(start))
    groups = broker.groups
    async with running(groups):
        for number in range(MOST_IDLE):
            answer = groups.join(f"stored{number}", join_event()).answer
            assert isinstance(answer, JoinAnswer)
            groups.leave(f"stored{number}", [Leaver(answer.member_id)])
        for partition in broker.topics.by_name["__consumer_offsets"].partitions:
            partition.log.offline = "the disk is gone"
        for number in range(5 * MOST_IDLE):
            leave_idle(groups, f"g{number}")
        kept = names(groups)
        assert len(kept) <= 3 * MOST_IDLE
        stored = sum(name.startswith("stored") for name in kept)
        assert stored == MOST_IDLE, "else they come back with the log"
        for partition in broker.topics.by_name["__consumer_offsets"].partitions:
            partition.log.offline = None
        for number in range(4 * MOST_IDLE):
            leave_idle(groups, f"later{number}")
        assert len(groups.all()) == MOST_IDLE
        assert not any(name.startswith("stored") for name in names(groups))


async def test_a_record_on_its_way_to_a_slow_disk_is_deleted_too(start: Start) -> None:
    broker = await topics(opened(start))
    groups = broker.groups
    async with running(groups):
        # A flush after every message is not done on the loop.
        await alter_config(broker.topics, "__consumer_offsets", {"flush.messages": "1"})
        answers = [groups.join(f"g{number}", join_event()).answer for number in range(MOST_IDLE + 50)]
        for number, answer in enumerate(answers):
            assert isinstance(answer, JoinAnswer)
            groups.leave(f"g{number}", [Leaver(answer.member_id)])

        async def let_go() -> bool:
            return await in_the_log(broker) == set(names(groups)) and len(groups.all()) <= MOST_IDLE

        await eventually(let_go, "the tombstones of those that are over the bound")
        assert len(groups.all()) == MOST_IDLE


async def test_a_group_comes_back_after_it_was_let_go(start: Start, autojump_clock: MockClock) -> None:
    broker = await topics(opened(start))
    groups = broker.groups
    async with running(groups):
        for number in range(MOST_IDLE + 1):
            leave_idle(groups, f"g{number}")
        assert "g0" not in names(groups)
        waiter = groups.join("g0", join_event())
        assert isinstance(waiter.answer, JoinAnswer)
        await sync(groups, "g0", waiter.answer)
        member = Committer(1, waiter.answer.member_id)
        assert await commit(broker, "g0", member) is ErrorCode.NONE
    broker = opened(start)
    async with running(broker.groups):
        assert broker.groups.offsets.fetch("g0")["t"][0].offset == 5
