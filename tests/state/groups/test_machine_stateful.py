"""The group machine under random events: what must hold whatever members do, and in whatever order.

Members are honest or not: they join, rejoin, sync, heartbeat, leave, vanish, or ask under an id that is not theirs;
writes of assignments succeed, fail, or come back late. Time goes on in jumps.
"""

import itertools

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leafcuttr.errors import ErrorCode
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
from leafcuttr.state.groups.states import GroupState
from support.gates_slice import sampled

SESSION_S = 10
REBALANCE_S = 30
PROTOCOLS = [
    (("range", b"r"),),
    (("range", b"r"), ("sticky", b"s")),
    (("sticky", b"s2"), ("range", b"r")),
]
INSTANCES = [None, None, "i1", "i2"]


class GroupLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.tokens = itertools.count()
        self.waiting: dict[int, float] = {}
        self.ids: list[str] = []
        self.instance_of: dict[str, str | None] = {}
        self.late: list[Store] = []
        self.store_answers = "at once"
        # What members were told of each generation, and when each was last heard of.
        self.leaders: dict[int, set[str]] = {}
        self.protocols: dict[int, set[str | None]] = {}
        self.heard: dict[str, float] = {}

    @initialize(delay=st.sampled_from([0, 3000]), size=st.sampled_from([2, 100]))
    def begin(self, delay: int, size: int) -> None:
        numbers = itertools.count(1)
        self.limits = GroupLimits(max_size=size, initial_rebalance_delay_ms=delay)
        self.group = Group("g", self.limits, unique=lambda: str(next(numbers)))

    def token(self) -> int:
        token = next(self.tokens)
        self.waiting[token] = self.now
        return token

    def settle(self) -> None:
        while effects := self.group.take_effects():
            for effect in effects:
                if isinstance(effect, Answer):
                    self.take_answer(effect)
                elif self.store_answers == "late":
                    self.late.append(effect)
                else:
                    error = ErrorCode.NONE if self.store_answers == "at once" else ErrorCode.NOT_COORDINATOR
                    self.group.stored(effect, error, self.now)

    def take_answer(self, answer: Answer) -> None:
        assert isinstance(answer.token, int)
        assert answer.token in self.waiting, "answered twice"
        del self.waiting[answer.token]
        value = answer.value
        if isinstance(value, JoinAnswer) and value.error is ErrorCode.NONE:
            assert value.generation == self.group.generation
            assert value.member_id in self.group.members
            self.protocols.setdefault(value.generation, set()).add(value.protocol_name)
            told = self.leaders.setdefault(value.generation, set())
            if value.members:
                assert value.leader == value.member_id
                assert {member.member_id for member in value.members} == set(self.group.members.by_id)
                told.add(value.leader)
            self.remember(value.member_id)
        elif isinstance(value, JoinAnswer) and value.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.remember(value.member_id)
        elif isinstance(value, SyncAnswer) and value.error is ErrorCode.NONE:
            assert value.protocol_name == self.group.protocol_name

    def remember(self, member_id: str) -> None:
        self.heard[member_id] = self.now
        if member_id not in self.ids:
            self.ids.append(member_id)

    def instance(self, member_id: str) -> str | None:
        return self.instance_of.get(member_id)

    @rule(
        instance=st.sampled_from(INSTANCES),
        protocols=st.sampled_from(PROTOCOLS),
        two_steps=st.booleans(),
        skip=st.booleans(),
    )
    def join_new(
        self, instance: str | None, protocols: tuple[tuple[str, bytes], ...], two_steps: bool, skip: bool
    ) -> None:
        self.join("", instance, protocols, two_steps, skip)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), protocols=st.sampled_from(PROTOCOLS))
    def join_again(self, data: st.DataObject, protocols: tuple[tuple[str, bytes], ...]) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        known = self.group.members.by_id.get(member_id)
        self.join(member_id, known.instance_id if known else None, protocols, True, True)

    def join(
        self,
        member_id: str,
        instance: str | None,
        protocols: tuple[tuple[str, bytes], ...],
        two_steps: bool,
        skip: bool,
    ) -> None:
        event = Join(
            member_id=member_id,
            instance_id=instance,
            client_id="c",
            client_host="/h",
            protocol_type="consumer",
            protocols=protocols,
            session_timeout_ms=SESSION_S * 1000,
            rebalance_timeout_ms=REBALANCE_S * 1000,
            two_steps=two_steps,
            can_skip_assignment=skip,
        )
        self.group.join(event, self.token(), self.now)
        self.settle()

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), stale=st.booleans(), store=st.sampled_from(["at once", "at once", "late", "fails"]))
    def sync(self, data: st.DataObject, stale: bool, store: str) -> None:
        self.store_answers = store
        member_id = data.draw(st.sampled_from(self.ids))
        event = Sync(
            member_id=member_id,
            instance_id=None,
            generation=self.group.generation - stale,
            protocol_type=None,
            protocol_name=None,
            assignments={id_: id_.encode() for id_ in self.ids},
        )
        self.group.sync(event, self.token(), self.now)
        self.settle()
        self.store_answers = "at once"

    @precondition(lambda self: self.late)
    @rule(error=st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NOT_COORDINATOR]))
    def store_comes_back(self, error: ErrorCode) -> None:
        self.group.stored(self.late.pop(0), error, self.now)
        self.settle()

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        error = self.group.heartbeat(member_id, None, self.group.generation, self.now)
        if error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            assert member_id in self.group.members
            self.heard[member_id] = self.now
        self.settle()

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        (error,) = self.group.leave([Leaver(member_id)], self.now)
        assert (error is ErrorCode.NONE) or error is ErrorCode.UNKNOWN_MEMBER_ID
        self.settle()
        assert member_id not in self.group.members

    @rule(seconds=st.sampled_from([0.5, 3, 9.9, 31, 301]))
    def time_goes_on(self, seconds: float) -> None:
        until = self.now + seconds
        for _ in range(1000):
            at = self.group.wake_at
            if at is None or at > until:
                break
            self.now = max(self.now, at)
            before = {
                member.member_id: self.heard.get(member.member_id, 0.0)
                for member in self.group.members
                if member.joining is None and member.syncing is None
            }
            state = self.group.state
            self.group.tick(self.now)
            self.settle()
            if state is GroupState.STABLE and self.group.state is not GroupState.STABLE:
                gone = set(before) - set(self.group.members.by_id)
                assert all(self.now - before[id_] >= SESSION_S - 0.001 for id_ in gone), (
                    "a session ended too soon"
                )
        else:
            raise AssertionError("the machine wants to be woken without end")
        self.now = until

    @rule()
    def delete(self) -> None:
        if not self.group.is_empty:
            assert self.group.delete() is ErrorCode.NON_EMPTY_GROUP

    @invariant()
    def leader_is_a_member(self) -> None:
        if not hasattr(self, "group"):
            return
        members = self.group.members
        assert (members.leader_id in members.by_id) if len(members) else members.leader_id is None

    @invariant()
    def one_leader_and_one_protocol_a_generation(self) -> None:
        # A static leader that came back leads under its new id.
        assert all(len({id_.partition("-")[0] for id_ in told}) <= 1 for told in self.leaders.values())
        assert all(len(names) == 1 for names in self.protocols.values())

    @invariant()
    def only_known_states_have_members_or_waiters(self) -> None:
        if not hasattr(self, "group"):
            return
        group = self.group
        if group.state is GroupState.EMPTY:
            assert not len(group.members)
        waiting = sum((m.joining is not None) + (m.syncing is not None) for m in group.members)
        answered_by_store = sum(store.token is not None for store in self.late)
        assert waiting + answered_by_store == len(self.waiting), "somebody was forgotten"
        for member in group.members:
            if member.joining is None and member.syncing is None:
                assert member.deadline is not None, "a session that never ends"

    @invariant()
    def the_group_keeps_to_its_size(self) -> None:
        if hasattr(self, "group") and self.group.state in (
            GroupState.COMPLETING_REBALANCE,
            GroupState.STABLE,
        ):
            assert len(self.group.members) <= max(self.limits.max_size, len(INSTANCES))

    def teardown(self) -> None:
        """Nobody waits for ever: with time alone every request is answered and the group ends empty."""
        if not hasattr(self, "group"):
            return
        while self.late:
            self.store_comes_back(ErrorCode.NONE)
        for _ in range(8):
            self.time_goes_on(NEW_MEMBER_JOIN_TIMEOUT_S + REBALANCE_S + SESSION_S)
        assert not self.waiting
        assert self.group.is_empty
        assert self.group.wake_at is None


TestGroupLife = GroupLife.TestCase
TestGroupLife.settings = settings(
    max_examples=sampled(300),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
