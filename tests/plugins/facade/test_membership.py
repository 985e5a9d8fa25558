"""One member's side of the group protocol: what each answer leads to, and a whole life against the group's machine."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.plugins.facade.consumer.membership import Membership, Phase
from leafcuttr.state.groups.events import (
    Answer,
    GroupLimits,
    Join,
    JoinAnswer,
    JoinedMember,
    Leaver,
    Store,
    Sync,
    SyncAnswer,
)
from leafcuttr.state.groups.machine import Group
from support.gates_slice import sampled

_LASTING = [
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


def joining() -> Membership:
    membership = Membership()
    membership.begin()
    membership.joined(JoinAnswer(error=ErrorCode.MEMBER_ID_REQUIRED, member_id="m"))
    assert (membership.phase, membership.member_id) == (Phase.JOINING, "m")
    return membership


def member() -> Membership:
    membership = joining()
    answer = JoinAnswer(member_id="m", generation=3, protocol_name="range", leader="m")
    membership.joined(answer)
    assert membership.phase is Phase.SYNCING and membership.leads
    membership.synced(SyncAnswer(assignment=b"share"))
    assert (membership.phase, membership.assignment) == (Phase.MEMBER, b"share")
    return membership


def test_only_the_leader_is_given_the_roster() -> None:
    others = [JoinedMember("m", None, b""), JoinedMember("n", None, b"")]
    for leader, expected in (("m", others), ("n", ())):
        membership = joining()
        membership.joined(JoinAnswer(member_id="m", generation=1, leader=leader, members=others))
        assert (membership.leads, membership.roster) == (leader == "m", expected)


@pytest.mark.parametrize("error", [ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_what_another_round_mends_keeps_the_id(error: ErrorCode) -> None:
    membership = joining()
    membership.joined(JoinAnswer(error=error))
    assert (membership.phase, membership.member_id) == (Phase.JOINING, "m")
    membership.joined(JoinAnswer(member_id="m", generation=1))
    membership.synced(SyncAnswer(error=error))
    assert (membership.phase, membership.member_id) == (Phase.JOINING, "m")
    settled = member()
    settled.heard(error)
    assert (settled.phase, settled.wants_rebalance, settled.lost) == (Phase.MEMBER, True, False)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_a_forgotten_member_joins_as_a_new_one(error: ErrorCode) -> None:
    membership = joining()
    membership.joined(JoinAnswer(error=error))
    assert (membership.phase, membership.member_id) == (Phase.JOINING, "")
    settled = member()
    settled.heard(error)
    assert (settled.phase, settled.member_id, settled.wants_rebalance, settled.lost) == (
        Phase.MEMBER,
        "",
        True,
        True,
    )


@pytest.mark.parametrize("error", _LASTING)
def test_what_no_round_mends_is_raised(error: ErrorCode) -> None:
    for ask in (
        lambda one: one.joined(JoinAnswer(error=error)),
        lambda one: one.synced(SyncAnswer(error=error)),
    ):
        membership = joining()
        with pytest.raises(BrokerError) as raised:
            ask(membership)
        assert raised.value.code == error
        assert (membership.phase, membership.member_id) == (Phase.OUT, "")


def test_an_answer_that_comes_late_says_nothing() -> None:
    """To a heartbeat of the generation before: a round has begun meanwhile."""
    membership = joining()
    membership.heard(ErrorCode.ILLEGAL_GENERATION)
    assert (membership.phase, membership.member_id, membership.wants_rebalance) == (Phase.JOINING, "m", False)


class Lives(RuleBasedStateMachine):
    """Some members and the real machine of their group, a message at a time, in any order.

    A member in MEMBER that has heard nothing new has the assignment of the group's present generation, so that no two
    of one generation have the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.group = Group("g", GroupLimits())
        self.members = [Membership() for _ in range(3)]
        self.sent: dict[object, int] = {}
        self.waiting: dict[int, object] = {}
        self.answers: dict[int, JoinAnswer | SyncAnswer] = {}

    def settle(self) -> None:
        while effects := self.group.take_effects():
            for effect in effects:
                if isinstance(effect, Answer):
                    number = self.sent.pop(effect.token, None)
                    if number is not None and self.waiting.get(number) is effect.token:
                        del self.waiting[number]
                        self.answers[number] = effect.value
                elif isinstance(effect, Store):
                    self.group.stored(effect, ErrorCode.NONE, self.now)

    @rule(number=st.integers(0, 2))
    def go_on(self, number: int) -> None:
        """One step of a member: begin, send what is next, or take the answer."""
        one = self.members[number]
        if number in self.waiting:
            return
        answer = self.answers.pop(number, None)
        if isinstance(answer, JoinAnswer):
            one.joined(answer)
        elif isinstance(answer, SyncAnswer):
            one.synced(answer)
        elif one.phase is Phase.OUT or (one.phase is Phase.MEMBER and one.wants_rebalance):
            one.begin()
        elif one.phase is Phase.MEMBER:
            if one.member_id:
                one.heard(self.group.heartbeat(one.member_id, None, one.generation, self.now))
        else:
            token = object()
            self.sent[token], self.waiting[number] = number, token
            if one.phase is Phase.JOINING:
                self.group.join(_join(one.member_id), token, self.now)
            else:
                shares = {each.member_id: each.member_id.encode() for each in one.roster}
                sync = Sync(
                    member_id=one.member_id, instance_id=None, generation=one.generation,
                    protocol_type="consumer", protocol_name=one.protocol, assignments=shares,
                )  # fmt: skip
                self.group.sync(sync, token, self.now)
        self.settle()

    @rule(number=st.integers(0, 2))
    def leave(self, number: int) -> None:
        one = self.members[number]
        if one.member_id:
            self.group.leave([Leaver(one.member_id)], self.now)
        one.left()
        self.settle()
        self.waiting.pop(number, None)
        self.answers.pop(number, None)

    @rule(seconds=st.sampled_from([1.0, 5.0, 11.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.group.tick(self.now)
        self.settle()

    @invariant()
    def shares_are_of_those_who_have_them(self) -> None:
        current = [
            one
            for one in self.members
            if one.phase is Phase.MEMBER
            and one.generation == self.group.generation
            and one.member_id in self.group.members
        ]
        assert all(one.assignment == one.member_id.encode() for one in current)
        assert len({one.member_id for one in current}) == len(current)

    def teardown(self) -> None:
        """Left alone, all of them get there."""
        for _ in range(300):
            for number in range(3):
                self.go_on(number)
            self.now += 1.0
            self.group.tick(self.now)
            self.settle()
        assert [one.phase for one in self.members] == [Phase.MEMBER] * 3
        assert len({one.generation for one in self.members}) == 1
        assert sum(one.leads for one in self.members) == 1


def _join(member_id: str) -> Join:
    return Join(
        member_id=member_id,
        instance_id=None,
        client_id="c",
        client_host="/h",
        protocol_type="consumer",
        protocols=(("range", b""),),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=30_000,
    )


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=sampled(50), stateful_step_count=40, deadline=None)
