"""The group machine by example: each rule of the protocol that a client can see, one test each."""

import itertools
from collections.abc import Iterator

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.runtime.transitions import TransitionError
from leafcuttr.state.groups.events import (
    Answer,
    GroupLimits,
    Join,
    JoinAnswer,
    Leaver,
    Store,
    Sync,
    SyncAnswer,
)
from leafcuttr.state.groups.machine import NEW_MEMBER_JOIN_TIMEOUT_S, Group
from leafcuttr.state.groups.members import Member
from leafcuttr.state.groups.states import TRANSITIONS, GroupCause, GroupState, after

RANGE = (("range", b"r"),)


class Scene:
    """A group, the time, and the answers that came out so far, by token."""

    def __init__(self, **limits: int) -> None:
        numbers: Iterator[int] = itertools.count(1)
        self.group = Group("g", GroupLimits(**limits), unique=lambda: str(next(numbers)))
        self.now = 1000.0
        self.answers: dict[str, JoinAnswer | SyncAnswer] = {}
        self.stores: list[Store] = []
        self.store_error = ErrorCode.NONE

    def settle(self) -> None:
        while effects := self.group.take_effects():
            for effect in effects:
                if isinstance(effect, Answer):
                    assert effect.token not in self.answers
                    self.answers[str(effect.token)] = effect.value
                else:
                    self.stores.append(effect)
                    self.group.stored(effect, self.store_error, self.now)

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self.group.wake_at is not None and self.group.wake_at <= until:
            self.now = max(self.now, self.group.wake_at)
            self.group.tick(self.now)
            self.settle()
        self.now = until

    def join(
        self, token: str, member_id: str = "", instance_id: str | None = None, **changes: object
    ) -> None:
        values: dict[str, object] = {
            "client_id": "c",
            "client_host": "/127.0.0.1",
            "protocol_type": "consumer",
            "protocols": RANGE,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "two_steps": False,
        } | changes
        self.group.join(Join(member_id=member_id, instance_id=instance_id, **values), token, self.now)  # type: ignore[arg-type]
        self.settle()

    def sync(
        self, token: str, member_id: str, assignments: dict[str, bytes] | None = None, **changes: object
    ) -> None:
        values: dict[str, object] = {
            "instance_id": None,
            "generation": self.group.generation,
            "protocol_type": None,
            "protocol_name": None,
        } | changes
        self.group.sync(Sync(member_id=member_id, assignments=assignments or {}, **values), token, self.now)  # type: ignore[arg-type]
        self.settle()

    def leave(self, *leavers: Leaver) -> list[ErrorCode]:
        errors = self.group.leave(leavers, self.now)
        self.settle()
        return errors

    def heartbeat(
        self, member_id: str, instance_id: str | None = None, generation: int | None = None
    ) -> ErrorCode:
        error = self.group.heartbeat(
            member_id, instance_id, self.group.generation if generation is None else generation, self.now
        )
        self.settle()
        return error

    def joined(self, token: str) -> JoinAnswer:
        answer = self.answers[token]
        assert isinstance(answer, JoinAnswer)
        return answer

    def synced(self, token: str) -> SyncAnswer:
        answer = self.answers[token]
        assert isinstance(answer, SyncAnswer)
        return answer

    def stable_pair(self) -> tuple[str, str]:
        """Bring two members to STABLE; the first leads. Return their ids."""
        self.join("a")
        first = self.joined("a").member_id
        self.join("b")
        self.join("a2", first)
        second = self.joined("b").member_id
        self.sync("sa", first, {first: b"1", second: b"2"})
        self.sync("sb", second)
        assert self.group.state is GroupState.STABLE
        return first, second


def test_one_member_joins_and_is_assigned() -> None:
    scene = Scene()
    scene.join("j")
    joined = scene.joined("j")
    assert joined.error is ErrorCode.NONE
    assert (joined.generation, joined.protocol_name, joined.leader) == (1, "range", joined.member_id)
    assert [member.metadata for member in joined.members] == [b"r"]
    scene.sync("s", joined.member_id, {joined.member_id: b"all"})
    assert scene.synced("s").assignment == b"all"
    assert scene.stores[-1].assignments == {joined.member_id: b"all"}
    assert scene.group.state is GroupState.STABLE


def test_two_step_join_hands_out_an_id_first() -> None:
    scene = Scene()
    scene.join("one", two_steps=True)
    answer = scene.joined("one")
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("c-")
    assert scene.group.is_empty and scene.group.expects_somebody
    scene.join("two", answer.member_id, two_steps=True)
    assert scene.joined("two").error is ErrorCode.NONE
    assert scene.joined("two").member_id == answer.member_id


def test_an_id_that_is_not_fetched_is_forgotten_after_the_session_timeout() -> None:
    scene = Scene()
    scene.join("one", two_steps=True)
    scene.advance(10.1)
    assert not scene.group.expects_somebody
    scene.join("two", scene.joined("one").member_id)
    assert scene.joined("two").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_join_waits_for_an_id_that_is_still_expected_back() -> None:
    scene = Scene()
    first, _ = scene.stable_pair()
    scene.join("pending", two_steps=True)
    scene.join("again", first, protocols=(("range", b"changed"),))
    scene.heartbeat(scene.joined("b").member_id)
    scene.join("again-b", scene.joined("b").member_id)
    assert "again" not in scene.answers
    scene.advance(10.1)
    assert scene.joined("again").generation == scene.joined("again-b").generation == 3


def test_a_second_member_starts_a_round_in_which_all_get_the_same_generation() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    assert scene.joined("a2").generation == scene.joined("b").generation == 2
    assert scene.joined("b").members == ()
    assert {member.member_id for member in scene.joined("a2").members} == {first, second}
    assert (scene.synced("sa").assignment, scene.synced("sb").assignment) == (b"1", b"2")


def test_followers_wait_for_the_leader() -> None:
    scene = Scene()
    scene.join("a")
    first = scene.joined("a").member_id
    scene.join("b")
    scene.join("a2", first)
    second = scene.joined("b").member_id
    scene.sync("sb", second)
    assert "sb" not in scene.answers
    scene.sync("sa", first, {second: b"2"})
    assert scene.synced("sb").assignment == b"2"
    assert scene.synced("sa").assignment == b""


def test_members_hear_of_a_round_by_heartbeat() -> None:
    scene = Scene()
    first, _ = scene.stable_pair()
    scene.join("c")
    assert scene.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_rejoin_is_removed_at_the_rebalance_timeout() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    scene.join("c", session_timeout_ms=100_000)
    for _ in range(12):
        scene.heartbeat(first)
        scene.heartbeat(second)
        scene.advance(5)
    assert scene.joined("c").generation == 3
    assert scene.joined("c").leader == scene.joined("c").member_id
    assert scene.heartbeat(first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_session_ends_and_the_rest_divide_anew() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    scene.advance(5)
    assert scene.heartbeat(second) is ErrorCode.NONE
    scene.advance(4.9)
    assert first in scene.group.members
    scene.advance(0.2)
    assert first not in scene.group.members
    assert scene.heartbeat(second) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_member_leaves_an_empty_group_behind() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    assert scene.leave(Leaver(first), Leaver(second), Leaver("who")) == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert scene.group.state is GroupState.EMPTY
    assert scene.group.generation == 3
    assert scene.group.protocol_type == "consumer"
    assert scene.stores[-1] == Store(3, {})
    assert scene.group.wake_at is None or scene.group.tick(scene.now + 1000) is None
    assert scene.group.wake_at is None


def test_the_leader_leaves_while_followers_wait_for_its_assignment() -> None:
    scene = Scene()
    scene.join("a")
    first = scene.joined("a").member_id
    scene.join("b")
    scene.join("a2", first)
    second = scene.joined("b").member_id
    scene.sync("sb", second)
    scene.leave(Leaver(first))
    assert scene.synced("sb").error is ErrorCode.REBALANCE_IN_PROGRESS
    scene.join("b2", second)
    assert scene.joined("b2").leader == second


def test_a_member_that_does_not_sync_in_time_is_removed() -> None:
    scene = Scene()
    scene.join("a", session_timeout_ms=300_000, rebalance_timeout_ms=20_000)
    first = scene.joined("a").member_id
    scene.advance(19.9)
    assert first in scene.group.members
    scene.advance(0.2)
    assert scene.group.state is GroupState.EMPTY


def test_protocol_vote_takes_the_favourite_of_most_among_what_all_can() -> None:
    scene = Scene(initial_rebalance_delay_ms=1000)
    scene.join("a", protocols=(("mine", b""), ("sticky", b"s"), ("range", b"r")))
    scene.join("b", protocols=(("range", b"r"), ("sticky", b"s")))
    scene.join("c", protocols=(("range", b"r"), ("sticky", b"s")))
    scene.advance(3)
    assert scene.joined("a").protocol_name == "range"
    scene.join("d", protocols=(("other", b""),))
    assert scene.joined("d").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    scene.join("e", protocol_type="connect")
    assert scene.joined("e").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    scene.join("f", protocols=())
    assert scene.joined("f").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_first_round_is_prolonged_while_newcomers_arrive() -> None:
    scene = Scene(initial_rebalance_delay_ms=3000)
    scene.join("a", rebalance_timeout_ms=7000)
    scene.advance(2)
    scene.join("b", rebalance_timeout_ms=7000)
    scene.advance(2)
    scene.join("c", rebalance_timeout_ms=7000)
    assert not scene.answers
    scene.advance(2.1)
    assert not scene.answers, "prolonged twice: 3 + 3 of at most 7 seconds"
    scene.advance(1)
    assert {scene.joined(token).generation for token in "abc"} == {1}


def test_follower_that_joins_again_unchanged_gets_the_same_answer_and_a_leader_a_new_round() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    scene.join("again", second)
    assert scene.joined("again").generation == 2
    assert scene.group.state is GroupState.STABLE
    scene.join("lead", first)
    assert scene.group.state is GroupState.PREPARING_REBALANCE


def test_leader_that_missed_the_join_answer_gets_it_again() -> None:
    scene = Scene()
    scene.join("a")
    first = scene.joined("a").member_id
    scene.join("again", first)
    assert scene.joined("again") == scene.joined("a")


def test_a_second_request_of_the_same_member_releases_the_first() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    scene.join("x", first)
    scene.join("y", first)
    assert scene.joined("x").error is ErrorCode.REBALANCE_IN_PROGRESS
    scene.join("z", second)
    assert scene.joined("y").generation == 3
    scene.sync("s1", second)
    scene.sync("s2", second)
    assert scene.synced("s1").error is ErrorCode.REBALANCE_IN_PROGRESS


def test_group_is_full() -> None:
    scene = Scene(max_size=2)
    first, _ = scene.stable_pair()
    scene.join("c")
    assert scene.joined("c").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scene.joined("c").member_id == ""
    scene.leave(Leaver(first))
    scene.join("d")
    assert "d" not in scene.answers


@pytest.mark.parametrize("size", [1, 2, 3])
def test_as_many_as_fit_are_taken_while_a_round_is_prepared(size: int) -> None:
    """The members that wait are counted, because the others may not come again at all."""
    scene = Scene(max_size=size, initial_rebalance_delay_ms=3000)
    for number in range(size):
        scene.join(f"first {number}")
    scene.join("one more")
    assert scene.joined("one more").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    scene.advance(7)  # the delay, and once more because somebody came
    members = [scene.joined(f"first {number}").member_id for number in range(size)]
    assert all(members) and len(scene.group.members) == size
    scene.sync("s", members[0], dict.fromkeys(members, b""))
    scene.join("again", members[0])  # a new rebalance: it waits, the others are told to rejoin
    for number in range(size - 1):
        scene.join(f"new {number}")
        assert f"new {number}" not in scene.answers
    scene.join("too many")
    assert scene.joined("too many").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    scene.join("once more", members[0])
    if size > 1:
        assert "once more" not in scene.answers, "a member that waits has its place already"
        scene.join("too late", members[-1])
        assert scene.joined("too late").error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert members[-1] not in scene.group.members


@pytest.mark.parametrize("older", [0, 1])
def test_an_older_generation_is_refused_everywhere(older: int) -> None:
    scene = Scene()
    first, _ = scene.stable_pair()
    assert scene.group.generation == 2
    assert scene.heartbeat(first, generation=older) is ErrorCode.ILLEGAL_GENERATION
    assert scene.group.check_commit(first, None, older, scene.now) is ErrorCode.ILLEGAL_GENERATION
    assert scene.group.check_transactional_commit(first, None, older) is ErrorCode.ILLEGAL_GENERATION
    scene.sync("late", first, {first: b"of another round"}, generation=older)
    assert scene.synced("late").error is ErrorCode.ILLEGAL_GENERATION
    scene.join("b2", "")
    scene.join("a3", first)  # a round is prepared: the generation is still the second
    assert scene.heartbeat(first, generation=older) is ErrorCode.ILLEGAL_GENERATION
    assert scene.heartbeat(first, generation=2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_static_member_comes_back_to_its_assignment_without_a_round() -> None:
    scene = Scene()
    scene.join("a", instance_id="i1")
    first = scene.joined("a").member_id
    assert first.startswith("i1-")
    scene.sync("sa", first, {first: b"1"}, instance_id="i1")
    scene.join("back", instance_id="i1")
    back = scene.joined("back")
    assert back.generation == 1 and back.member_id != first
    assert back.leader == back.member_id and back.skip_assignment and len(back.members) == 1
    assert scene.stores[-1].assignments == {back.member_id: b"1"}
    scene.sync("sb", back.member_id, instance_id="i1")
    assert scene.synced("sb").assignment == b"1"
    assert scene.heartbeat(first, "i1") is ErrorCode.FENCED_INSTANCE_ID
    assert scene.heartbeat(first) is ErrorCode.UNKNOWN_MEMBER_ID


def test_old_static_leader_is_told_that_another_member_leads() -> None:
    scene = Scene()
    scene.join("a", instance_id="i1")
    first = scene.joined("a").member_id
    scene.sync("sa", first, {first: b"1"})
    scene.join("back", instance_id="i1", can_skip_assignment=False)
    back = scene.joined("back")
    assert back.leader == first and not back.members and not back.skip_assignment


def test_static_member_in_flight_is_fenced_by_its_successor() -> None:
    scene = Scene()
    scene.join("a", instance_id="i1")
    first = scene.joined("a").member_id
    scene.join("b", instance_id="i2")
    scene.join("b2", instance_id="i2")
    assert scene.joined("b").error is ErrorCode.FENCED_INSTANCE_ID
    scene.join("a2", first, instance_id="i1")
    assert scene.joined("b2").generation == 2
    scene.sync("sb", scene.joined("b2").member_id)
    scene.join("b3", instance_id="i2")
    assert scene.synced("sb").error is ErrorCode.FENCED_INSTANCE_ID
    assert scene.group.state is GroupState.PREPARING_REBALANCE


def test_static_member_that_changes_its_protocol_starts_a_round() -> None:
    scene = Scene()
    scene.join("a", instance_id="i1", protocols=(("range", b""), ("sticky", b"")))
    first = scene.joined("a").member_id
    scene.sync("sa", first)
    scene.join("back", instance_id="i1", protocols=(("sticky", b""),))
    assert scene.joined("back").generation == 2
    assert scene.joined("back").protocol_name == "sticky"


def test_static_members_outlive_a_round_that_they_miss() -> None:
    scene = Scene()
    scene.join("a", instance_id="i1", session_timeout_ms=600_000)
    first = scene.joined("a").member_id
    scene.sync("sa", first)
    scene.join("b", instance_id="i2", session_timeout_ms=600_000)
    scene.advance(60)
    assert scene.joined("b").generation == 2
    assert scene.joined("b").leader == scene.joined("b").member_id
    assert {member.instance_id for member in scene.joined("b").members} == {"i1", "i2"}


def test_administrator_removes_a_static_member_by_its_instance() -> None:
    scene = Scene()
    scene.join("a", instance_id="i1")
    assert scene.leave(Leaver("", "i2"), Leaver("", "i1"), Leaver("")) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert scene.group.is_empty


def test_assignment_that_cannot_be_stored_is_not_told() -> None:
    scene = Scene()
    scene.join("a")
    first = scene.joined("a").member_id
    scene.store_error = ErrorCode.NOT_COORDINATOR
    scene.sync("s", first, {first: b"1"})
    assert scene.synced("s").error is ErrorCode.NOT_COORDINATOR
    assert scene.group.state is GroupState.PREPARING_REBALANCE
    scene.store_error = ErrorCode.NONE
    scene.join("again", first)
    assert scene.joined("again").generation == 2


def test_assignment_of_a_round_that_is_over_is_not_applied() -> None:
    scene = Scene()
    scene.join("a")
    first = scene.joined("a").member_id
    scene.group.sync(
        Sync(
            member_id=first,
            instance_id=None,
            generation=1,
            protocol_type=None,
            protocol_name=None,
            assignments={},
        ),
        "s",
        scene.now,
    )
    (store,) = scene.group.take_effects()
    assert isinstance(store, Store)
    scene.join("b")
    scene.group.stored(store, ErrorCode.NONE, scene.now)
    assert scene.group.state is GroupState.PREPARING_REBALANCE
    assert scene.synced("s").error is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"generation": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "i9"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
    ],
)
def test_what_a_sync_must_match(changes: dict[str, object], error: ErrorCode) -> None:
    scene = Scene()
    scene.join("a")
    scene.sync("s", scene.joined("a").member_id, **changes)
    assert scene.synced("s").error is error


def test_which_members_may_commit() -> None:
    scene = Scene()
    commit = scene.group.check_commit
    assert commit("", None, -1, scene.now) is ErrorCode.NONE
    assert commit("x", None, 1, scene.now) is ErrorCode.UNKNOWN_MEMBER_ID
    scene.join("a")
    first = scene.joined("a").member_id
    assert commit(first, None, 1, scene.now) is ErrorCode.REBALANCE_IN_PROGRESS
    scene.sync("s", first)
    assert commit(first, None, 1, scene.now) is ErrorCode.NONE
    assert commit(first, None, 2, scene.now) is ErrorCode.ILLEGAL_GENERATION
    assert commit(first, "i", 1, scene.now) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", None, -1, scene.now) is ErrorCode.UNKNOWN_MEMBER_ID
    scene.join("b")
    assert commit(first, None, 1, scene.now) is ErrorCode.NONE, (
        "the old generation may commit while others join"
    )


def test_a_commit_counts_as_a_heartbeat() -> None:
    scene = Scene()
    first, _ = scene.stable_pair()
    scene.advance(9)
    assert scene.group.check_commit(first, None, 2, scene.now) is ErrorCode.NONE
    scene.advance(9)
    assert first in scene.group.members


def test_newcomer_is_given_up_after_five_minutes() -> None:
    scene = Scene()
    scene.join("a", instance_id="i1", rebalance_timeout_ms=3_000_000, session_timeout_ms=3_000_000)
    scene.sync("sa", scene.joined("a").member_id)
    scene.join("b")
    scene.advance(NEW_MEMBER_JOIN_TIMEOUT_S + 0.1)
    assert scene.joined("b").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_deleted_group_answers_with_errors() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    assert scene.group.delete() is ErrorCode.NON_EMPTY_GROUP
    scene.leave(Leaver(first), Leaver(second))
    assert scene.group.delete() is ErrorCode.NONE
    assert scene.group.delete() is ErrorCode.GROUP_ID_NOT_FOUND
    assert scene.heartbeat(first) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.join("late")
    assert scene.joined("late").error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_the_table_names_every_state_and_refuses_what_it_does_not_have() -> None:
    assert set(TRANSITIONS) == set(GroupState)
    assert {cause for row in TRANSITIONS.values() for cause in row} == set(GroupCause)
    with pytest.raises(TransitionError, match="state Dead"):
        after(GroupState.DEAD, GroupCause.ASSIGNED)


def test_the_last_generation_is_followed_by_the_first() -> None:
    """Kafka's number wraps and is below 0 then, which it takes for somebody who is no member."""
    bench = Scene()
    bench.group.generation = 2**31 - 2
    bench.join("a")
    assert bench.joined("a").generation == 2**31 - 1
    bench.join("b")
    bench.join("a2", bench.joined("a").member_id)
    assert bench.joined("b").generation == bench.joined("a2").generation == 1
    first = bench.joined("a").member_id
    bench.sync("s", first, {first: b"1"})
    assert bench.heartbeat(first) == ErrorCode.NONE


def test_an_expected_id_is_given_up_exactly_at_its_session_timeout() -> None:
    scene = Scene()
    scene.join("one", two_steps=True)
    assert scene.group.wake_at == scene.now + 10
    scene.advance(9.999)
    assert scene.group.expects_somebody
    scene.advance(0.001)
    assert not scene.group.expects_somebody


def test_a_session_ends_exactly_at_its_timeout() -> None:
    scene = Scene()
    scene.join("a", session_timeout_ms=8000)
    first = scene.joined("a").member_id
    assert scene.group.members.by_id[first].deadline == scene.now + 8
    scene.advance(3)
    assert scene.heartbeat(first) is ErrorCode.NONE
    scene.advance(7.999)
    assert first in scene.group.members
    scene.advance(0.001)
    assert first not in scene.group.members


def test_a_member_that_waits_for_its_join_answer_needs_no_heartbeat() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    scene.advance(5)
    scene.heartbeat(second)
    scene.join("a3", first)
    scene.advance(9.999)
    assert (first in scene.group.members, second in scene.group.members) == (True, True)
    scene.advance(0.001)
    assert first in scene.group.members
    assert second not in scene.group.members, "its session is over"
    assert scene.joined("a3").generation == 3


@pytest.mark.parametrize(
    ("rebalance_ms", "newcomers", "complete"),
    [
        (60_000, (), 3),
        (60_000, (1,), 6),
        (60_000, (3,), 3),
        (60_000, (1, 2), 6),
        (60_000, (1, 4), 9),
        (60_000, (1, 4, 7), 12),
        (6_000, (1, 4), 6),
        (6_000, (1, 4, 5), 6),
        (7_000, (1, 4), 7),
        (7_000, (1, 4, 6.5), 7),
        (4_500, (1,), 4.5),
        (2_000, (1,), 3),
    ],
)
def test_when_the_first_round_is_complete(
    rebalance_ms: int, newcomers: tuple[float, ...], complete: float
) -> None:
    """Each delay in which somebody has come is followed by another, up to the rebalance timeout. The round begins with
    the first member, which does not count as one that has come."""
    scene = Scene(initial_rebalance_delay_ms=3000)
    began = scene.now
    scene.join("first", rebalance_timeout_ms=rebalance_ms)
    moments = sorted({*newcomers, complete - 0.001, complete})
    for moment in moments:
        scene.advance(began + moment - scene.now)
        if moment in newcomers and moment < complete:
            scene.join(f"at {moment}", rebalance_timeout_ms=rebalance_ms)
        if moment < complete:
            assert not scene.answers
    assert scene.joined("first").generation == 1
    assert len(scene.joined("first").members) == 1 + sum(moment < complete for moment in newcomers)


def test_a_later_round_lasts_as_long_as_the_longest_rebalance_timeout() -> None:
    scene = Scene()
    scene.join("a", rebalance_timeout_ms=20_000, session_timeout_ms=300_000)
    first = scene.joined("a").member_id
    scene.sync("s", first, {first: b"1"})
    scene.join("b", rebalance_timeout_ms=30_000, session_timeout_ms=300_000)
    scene.advance(29.999)
    assert "b" not in scene.answers
    scene.advance(0.001)
    assert scene.joined("b").generation == 2
    assert first not in scene.group.members


@pytest.mark.parametrize(
    ("members", "generation", "member_id", "instance_id", "commit", "transactional"),
    [
        (False, -1, "", None, ErrorCode.NONE, ErrorCode.NONE),
        (False, -1, "who", None, ErrorCode.NONE, ErrorCode.NONE),
        (False, 0, "", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (False, 0, "who", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (True, -1, "", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE),
        (True, -1, "who", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (True, -1, "", "instance", ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (True, -1, "first", None, ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        (True, 0, "", None, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (True, 1, "first", None, ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
        (True, 2, "first", None, ErrorCode.NONE, ErrorCode.NONE),
        (True, 2, "first", "instance", ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID),
        (True, 3, "first", None, ErrorCode.ILLEGAL_GENERATION, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_whose_commit_is_taken(
    members: bool,
    generation: int,
    member_id: str,
    instance_id: str | None,
    commit: ErrorCode,
    transactional: ErrorCode,
) -> None:
    """Without a generation it is an administrator's, or a transactional client's of before v3 (KIP-447)."""
    scene = Scene()
    if members:
        first, _ = scene.stable_pair()
        member_id = first if member_id == "first" else member_id
    group = scene.group
    assert group.check_commit(member_id, instance_id, generation, scene.now) is commit
    assert group.check_transactional_commit(member_id, instance_id, generation) is transactional


def test_a_static_member_that_cannot_be_stored_hears_so() -> None:
    scene = Scene()
    scene.join("a", instance_id="i")
    first = scene.joined("a").member_id
    scene.sync("s", first, {first: b"1"}, instance_id="i")
    scene.store_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.join("again", instance_id="i")
    assert scene.joined("again") == JoinAnswer(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    scene.store_error = ErrorCode.NONE
    scene.join("third", instance_id="i")
    assert scene.joined("third").error is ErrorCode.NONE
    assert scene.group.state is GroupState.STABLE


def test_a_static_member_replaced_before_it_synced_leaves_nothing_overdue() -> None:
    scene = Scene()
    scene.join("a", session_timeout_ms=300_000)
    first = scene.joined("a").member_id
    scene.join("b", instance_id="i", session_timeout_ms=300_000)
    scene.join("a2", first, session_timeout_ms=300_000)
    second = scene.joined("b").member_id
    scene.sync("sa", first, {first: b"1", second: b"2"})
    scene.join("b2", instance_id="i", session_timeout_ms=300_000)
    third = scene.joined("b2").member_id
    assert scene.group.state is GroupState.STABLE
    scene.group.tick(scene.now + 60)
    assert (scene.group.state, set(scene.group.members.by_id)) == (GroupState.STABLE, {first, third})
    assert scene.group.wake_at is not None
    assert scene.group.wake_at > scene.now + 60


def restored(max_size: int = 10, leader: str | None = "two") -> Scene:
    scene = Scene(max_size=max_size)
    members = [
        Member(
            member_id=member_id, instance_id=None, client_id="c", client_host="/127.0.0.1", protocols=RANGE,
            session_timeout_ms=timeout_ms, rebalance_timeout_ms=60_000, assignment=member_id.encode(),
        )
        for member_id, timeout_ms in (("one", 6000), ("two", 8000))
    ]  # fmt: skip
    scene.group.restore(
        generation=5, protocol_type="consumer", protocol_name="range", leader=leader, members=members
    )
    return scene


def test_a_group_that_was_read_from_the_log_goes_on() -> None:
    scene = restored()
    assert (scene.group.state, scene.group.generation, scene.group.wake_at) == (GroupState.STABLE, 5, None)
    assert scene.group.members.leader_id == "two"
    scene.group.resume(scene.now)
    assert scene.group.wake_at == scene.now + 6
    assert [member.deadline for member in scene.group.members] == [scene.now + 6, scene.now + 8]
    assert scene.heartbeat("one") is ErrorCode.NONE
    scene.sync("s", "two", protocol_type="consumer", protocol_name="range")
    assert scene.synced("s") == SyncAnswer(ErrorCode.NONE, "consumer", "range", b"two")


@pytest.mark.parametrize(("leader", "expected"), [(None, "one"), ("gone", "one"), ("one", "one")])
def test_the_leader_of_a_group_that_was_read_is_one_of_its_members(leader: str | None, expected: str) -> None:
    assert restored(leader=leader).group.members.leader_id == expected


@pytest.mark.parametrize(("max_size", "state"), [(1, GroupState.PREPARING_REBALANCE), (2, GroupState.STABLE)])
def test_a_group_that_was_read_with_too_many_members_begins_a_round(max_size: int, state: GroupState) -> None:
    scene = restored(max_size)
    scene.group.resume(scene.now)
    assert scene.group.state is state


def test_a_group_without_members_that_was_read_is_empty() -> None:
    group = Group("g", GroupLimits())
    group.restore(generation=4, protocol_type="consumer", protocol_name=None, leader=None, members=[])
    group.resume(1000.0)
    assert (group.state, group.generation, group.protocol_type, group.wake_at) == (
        GroupState.EMPTY, 4, "consumer", None,
    )  # fmt: skip
    assert group.delete() is ErrorCode.NONE
    assert group.state is GroupState.DEAD


def test_a_group_with_members_is_not_deleted() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    assert scene.group.delete() is ErrorCode.NON_EMPTY_GROUP
    assert scene.heartbeat(first) is ErrorCode.NONE
    scene.leave(Leaver(first), Leaver(second))
    scene.join("expected", two_steps=True)
    assert scene.group.delete() is ErrorCode.NONE
    assert not scene.group.expects_somebody
    assert scene.group.delete() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_round_goes_on_without_the_owner_of_an_id_that_is_given_up() -> None:
    scene = Scene()
    first, second = scene.stable_pair()
    scene.join("expected", two_steps=True)
    scene.join("a3", first)
    scene.join("b3", second)
    scene.group.give_up("who", scene.now)
    scene.settle()
    assert "a3" not in scene.answers
    expected = scene.joined("expected").member_id
    scene.group.give_up(expected, scene.now)
    scene.settle()
    assert scene.joined("a3").generation == scene.joined("b3").generation == 3
    scene.join("late", expected)
    assert scene.joined("late").error is ErrorCode.UNKNOWN_MEMBER_ID
