"""One classic group: requests and the time go in, answers and things to store come out, without I/O.

`states` has the table of transitions and the theory; here is what drives it. Every public method that takes
`now` (monotonic seconds) may leave effects in `effects`, which the caller takes with `take_effects` and
carries out in order before it calls the machine again; for a `Store` it calls `stored` once the outcome is
known. `wake_at` is the time at which `tick` must be called at the latest.

One module, though longer than most, because each request's rules only make sense beside those of the others.
"""

import uuid
from collections.abc import Callable, Sequence
from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.state.groups.events import (
    NO_MEMBER,
    Answer,
    GroupEffect,
    GroupLimits,
    Join,
    JoinAnswer,
    JoinedMember,
    Leaver,
    Store,
    Sync,
    SyncAnswer,
    Token,
)
from leafcuttr.state.groups.members import Member, Members
from leafcuttr.state.groups.states import COMMIT_ANSWER, HEARTBEAT_ANSWER, GroupCause, GroupState, after

# How long a newcomer may wait in its first JoinGroup; Kafka's `group.new.member.join.timeout.ms`, internal
# there too.
NEW_MEMBER_JOIN_TIMEOUT_S: Final = 300.0
_LAST_GENERATION: Final = 2**31 - 1
# A member id has to fit a string of 32767 bytes, which a client id may fill alone; a character takes up to four.
LONGEST_PREFIX: Final = 8000


def _unique_suffix() -> str:
    return str(uuid.uuid4())


class Group:
    """The membership of one group. Not thread-safe; each call is complete when it returns."""

    def __init__(
        self, group_id: str, limits: GroupLimits, *, unique: Callable[[], str] = _unique_suffix
    ) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.changes = 0
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.members = Members()
        self.wake_at: float | None = None
        self._limits = limits
        self._unique = unique
        self._effects: list[GroupEffect] = []
        # Member ids handed out and expected back, with the time at which they are given up.
        self._pending: dict[str, float] = {}
        self._not_synced: set[str] = set()
        self._storing: Store | None = None
        # The phase timers: of the join phase (in PREPARING_REBALANCE) and of the sync phase (until all have synced).
        self._join_ends: float | None = None
        self._initial_left_ms: int | None = None
        self._newcomer_seen = False
        self._sync_ends: float | None = None

    def restore(
        self,
        *,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
        leader: str | None,
        members: Sequence[Member],
    ) -> None:
        """Be the group that was read from the log. No time runs before `resume`."""
        self.generation = generation
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        for member in members:
            self.members.add(member)
        if members:
            self.state = GroupState.STABLE
            if leader is not None and leader in self.members:
                self.members.leader_id = leader

    def resume(self, now: float) -> None:
        """Give restored members a whole session from now on; begin a rebalance if they are too many."""
        for member in self.members:
            self._restart_session(member, now)
        if len(self.members) > self._limits.max_size:
            self._prepare_rebalance(GroupCause.MEMBERS_CHANGED, now)

    def take_effects(self) -> list[GroupEffect]:
        effects, self._effects = self._effects, []
        return effects

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def expects_somebody(self) -> bool:
        """A member id has been handed out and its owner may come."""
        return bool(self._pending)

    # --- requests -----------------------------------------------------------------------------------------

    def join(self, join: Join, token: Token, now: float) -> None:
        """JoinGroup. The answer comes as an effect: at once, or when the join phase is over."""
        if not self._has_room_for(join.member_id):
            if join.member_id in self.members:
                self._remove(join.member_id)
            self._pending.pop(join.member_id, None)
            self._reject_join(token, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER)
            self._complete_join_if_all_are_here(now)
        elif self.state is GroupState.DEAD:
            self._reject_join(token, ErrorCode.COORDINATOR_NOT_AVAILABLE, join.member_id)
        elif not self._can_work_with(join):
            self._reject_join(token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, join.member_id)
        elif join.member_id == NO_MEMBER:
            self._join_new(join, token, now)
        elif join.member_id in self._pending:
            self._add(join, join.member_id, token, now)
        elif error := self._check_member(join.member_id, join.instance_id):
            self._reject_join(token, error, join.member_id)
        else:
            self._join_again(self.members.by_id[join.member_id], join, token, now)

    def sync(self, sync: Sync, token: Token, now: float) -> None:
        """SyncGroup. The answer comes as an effect: at once, or when the leader's assignment is stored."""
        error = self._check_sync(sync)
        if error:
            self._answer(token, SyncAnswer(error=error))
            return
        member = self.members.by_id[sync.member_id]
        self._has_synced(member.member_id)
        if self.state is GroupState.STABLE:
            self._restart_session(member, now)
            self._answer(token, self._sync_answer(member))
            return
        if member.syncing is not None:
            self._answer(member.syncing, SyncAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = token
        if member.member_id == self.members.leader_id and self._storing is None:
            assignments = {id_: sync.assignments.get(id_, b"") for id_ in self.members.by_id}
            self._storing = Store(self.generation, assignments)
            self._effects.append(self._storing)

    def stored(self, store: Store, error: ErrorCode, now: float) -> None:
        """The outcome of a Store. Without effect on the group if it has gone on to another generation
        meanwhile.
        """
        if store.token is not None and store.answer is not None:
            answer = store.answer if not error else JoinAnswer(error=error)
            self._answer(store.token, answer)
            return
        if store is not self._storing:
            return
        self._storing = None
        if error:
            self._prepare_rebalance(GroupCause.NOT_STORED, now, error)
            return
        for member in self.members:
            member.assignment = store.assignments[member.member_id]
            if member.syncing is not None:
                token, member.syncing = member.syncing, None
                self._answer(token, self._sync_answer(member))
                self._restart_session(member, now)
        self._move(GroupCause.ASSIGNED)

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int, now: float) -> ErrorCode:
        error = self._check_generation(member_id, instance_id, generation) or HEARTBEAT_ANSWER[self.state]
        if error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS) and member_id in self.members:
            self._restart_session(self.members.by_id[member_id], now)
        return error

    def leave(self, leavers: Sequence[Leaver], now: float) -> list[ErrorCode]:
        """LeaveGroup: one error code for each leaver, in order."""
        if self.state is GroupState.DEAD:
            return [ErrorCode.COORDINATOR_NOT_AVAILABLE] * len(leavers)
        errors = [self._leave_one(leaver) for leaver in leavers]
        if ErrorCode.NONE in errors:
            self._after_departure(now)
        return errors

    def check_commit(self, member_id: str, instance_id: str | None, generation: int, now: float) -> ErrorCode:
        """May this OffsetCommit be accepted? A member's commit counts as a heartbeat.

        Without member id and generation the request is an administrator's or a simple consumer's, which Kafka
        allows while the group is empty.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and self.is_empty:
            return ErrorCode.NONE
        if generation < 0 and member_id == NO_MEMBER and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self._check_generation(member_id, instance_id, generation) or COMMIT_ANSWER[self.state]
        if not error:
            self._restart_session(self.members.by_id[member_id], now)
        return error

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """May this TxnOffsetCommit be accepted? Clients of before v3 name no member, and are believed (KIP-447)."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and (self.is_empty or (member_id == NO_MEMBER and instance_id is None)):
            return ErrorCode.NONE
        return self._check_generation(member_id, instance_id, generation)

    def delete(self) -> ErrorCode:
        """DeleteGroups, or the end of a group that nothing is known of any more."""
        if self.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if not self.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        self._pending.clear()
        self._move(GroupCause.DELETED)
        return ErrorCode.NONE

    def give_up(self, member_id: str, now: float) -> None:
        """Expect the owner of this id no longer, if it has not come: it gets UNKNOWN_MEMBER_ID when it does."""
        if self._pending.pop(member_id, None) is not None:
            self._complete_join_if_all_are_here(now)

    # --- time ---------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Do what is due. Heartbeats only move deadlines back, so `wake_at` may be early, never late."""
        for member_id in [id_ for id_, until in self._pending.items() if until <= now]:
            del self._pending[member_id]
            self._complete_join_if_all_are_here(now)
        for member in list(self.members):
            if member.deadline is not None and member.deadline <= now and member.member_id in self.members:
                self._session_over(member, now)
        if self._join_ends is not None and self._join_ends <= now:
            self._join_phase_timed_out(now)
        if self._sync_ends is not None and self._sync_ends <= now:
            self._sync_phase_timed_out(now)
        deadlines = [member.deadline for member in self.members if member.deadline is not None]
        deadlines += self._pending.values()
        deadlines += [at for at in (self._join_ends, self._sync_ends) if at is not None]
        self.wake_at = min(deadlines, default=None)

    def _wake_by(self, at: float) -> float:
        if self.wake_at is None or at < self.wake_at:
            self.wake_at = at
        return at

    def _restart_session(self, member: Member, now: float) -> None:
        member.deadline = self._wake_by(now + member.session_timeout_ms / 1000)

    def _session_over(self, member: Member, now: float) -> None:
        member.deadline = None
        if (member.joining is None and member.syncing is None) or member.is_new:
            self._remove(member.member_id)
            self._after_departure(now)

    # --- joining ------------------------------------------------------------------------------------------

    def _has_room_for(self, member_id: str) -> bool:
        # In the join phase those that wait are counted: a member that has not joined again may never do so.
        known = self.members.by_id.get(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            present = self.members.waiting_to_join()
            return (known is not None and known.joining is not None) or present < self._limits.max_size
        if self.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return known is not None or len(self.members) < self._limits.max_size
        return True

    def _can_work_with(self, join: Join) -> bool:
        if self.state is GroupState.EMPTY:
            return bool(join.protocol_type and join.protocols)
        names = [name for name, _ in join.protocols]
        return join.protocol_type == self.protocol_type and self.members.any_supported_by_all(names)

    def _join_new(self, join: Join, token: Token, now: float) -> None:
        prefix = join.client_id if join.instance_id is None else join.instance_id
        member_id = f"{prefix[:LONGEST_PREFIX]}-{self._unique()}"
        if join.instance_id is not None:
            former = self.members.by_instance.get(join.instance_id)
            if former is None:
                self._add(join, member_id, token, now)
            else:
                self._replace_static(former, member_id, join, token, now)
        elif join.two_steps:
            self._pending[member_id] = self._wake_by(now + join.session_timeout_ms / 1000)
            self._reject_join(token, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(join, member_id, token, now)

    def _add(self, join: Join, member_id: str, token: Token, now: float) -> None:
        if not self.members:
            self.protocol_type = join.protocol_type
        member = _member_of(join, member_id)
        member.is_new = True
        member.joining = token
        member.deadline = self._wake_by(now + NEW_MEMBER_JOIN_TIMEOUT_S)
        self._pending.pop(member_id, None)
        self.members.add(member)
        self._newcomer_seen = True
        self._prepare_rebalance_or_complete_join(now)

    def _join_again(self, member: Member, join: Join, token: Token, now: float) -> None:
        if self.state is GroupState.EMPTY:
            self._reject_join(token, ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
            return
        leads = member.member_id == self.members.leader_id
        unchanged = member.protocols == join.protocols
        repeats_request = self.state is GroupState.COMPLETING_REBALANCE or (
            self.state is GroupState.STABLE and not leads
        )
        if unchanged and repeats_request:
            self._restart_session(member, now)
            self._answer(token, self._join_answer(member))
        else:
            self._update(member, join, token)
            self._prepare_rebalance_or_complete_join(now)

    def _update(self, member: Member, join: Join, token: Token | None) -> None:
        self.members.change_protocols(member, join.protocols)
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.session_timeout_ms
        if member.joining is not None:
            # The same member sends it twice: the first request's connection is most likely gone.
            self._answer(
                member.joining,
                JoinAnswer(error=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id),
            )
        member.joining = token

    def _replace_static(self, former_id: str, member_id: str, join: Join, token: Token, now: float) -> None:
        """KIP-345: the instance has restarted. A request that still waits under its former member id is fenced."""
        former = self.members.by_id[former_id]
        former_leader = self.members.leader_id or NO_MEMBER
        self._release(former, ErrorCode.FENCED_INSTANCE_ID, former_id)
        member = _member_of(join, member_id)
        member.assignment = former.assignment
        self.members.replace(former_id, member)
        self._not_synced.discard(former_id)
        self._restart_session(member, now)
        if self.state is not GroupState.STABLE:
            member.joining = token
            self._prepare_rebalance_or_complete_join(now)
        elif self.members.elect_protocol() != self.protocol_name:
            member.joining = token
            self._prepare_rebalance(GroupCause.MEMBERS_CHANGED, now)
        else:
            leads = member_id == self.members.leader_id
            # Before v9 (KIP-814) a leader cannot be told to keep the assignment: it is told that the former
            # self leads.
            answer = self._join_answer(
                member,
                leader=None if join.can_skip_assignment else former_leader,
                skip_assignment=leads and join.can_skip_assignment,
            )
            self._effects.append(Store(self.generation, self._assignments(), token, answer))

    def _prepare_rebalance_or_complete_join(self, now: float) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            self._complete_join_if_all_are_here(now)
        else:
            self._prepare_rebalance(GroupCause.MEMBERS_CHANGED, now)

    def _prepare_rebalance(
        self, cause: GroupCause, now: float, error: ErrorCode = ErrorCode.REBALANCE_IN_PROGRESS
    ) -> None:
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._drop_assignments(error, now)
        self._storing = None
        self._sync_ends = None
        initial = self.state is GroupState.EMPTY
        self._move(cause)
        self._newcomer_seen = False
        if initial:
            delay_ms = self._limits.initial_rebalance_delay_ms
            self._initial_left_ms = max(self._rebalance_timeout_ms() - delay_ms, 0)
            self._join_ends = self._wake_by(now + delay_ms / 1000)
            if delay_ms == 0:
                self._join_phase_timed_out(now)
        else:
            self._initial_left_ms = None
            self._join_ends = self._wake_by(now + self.members.rebalance_timeout_s())
            self._complete_join_if_all_are_here(now)

    def _rebalance_timeout_ms(self) -> int:
        return round(self.members.rebalance_timeout_s() * 1000)

    def _complete_join_if_all_are_here(self, now: float) -> None:
        # The first rebalance waits for its delay even if all members are known: that is what the delay is for.
        if self.state is not GroupState.PREPARING_REBALANCE or self._initial_left_ms is not None:
            return
        if not self._pending and self.members.all_waiting_to_join():
            self._complete_join(now)

    def _join_phase_timed_out(self, now: float) -> None:
        left_ms = self._initial_left_ms
        if left_ms and self._newcomer_seen:
            self._newcomer_seen = False
            delay_ms = min(self._limits.initial_rebalance_delay_ms, left_ms)
            self._initial_left_ms = max(left_ms - delay_ms, 0)
            self._join_ends = self._wake_by(now + delay_ms / 1000)
        else:
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        for member in list(self.members):
            if member.joining is None and member.instance_id is None:
                self._remove(member.member_id)
        if len(self.members) and not self.members.keep_or_replace_leader():
            # Only static members are left, all of them silent: wait on until a member joins or their sessions
            # end.
            self._join_ends = self._wake_by(now + self.members.rebalance_timeout_s())
            return
        self._join_ends = None
        self._initial_left_ms = None
        # Kafka's int wraps, and it takes a number below 0 for that of a client which is no member.
        self.generation = self.generation + 1 if self.generation < _LAST_GENERATION else 1
        self._not_synced.clear()
        if not self.members:
            self.protocol_name = None
            self._move(GroupCause.DESERTED)
            self._effects.append(Store(self.generation, {}))
            return
        self.protocol_name = self.members.elect_protocol()
        self._move(GroupCause.JOINED)
        for member in self.members:
            if member.joining is not None:
                token, member.joining = member.joining, None
                self._answer(token, self._join_answer(member))
            member.is_new = False
            self._restart_session(member, now)
            self._not_synced.add(member.member_id)
        self._sync_ends = self._wake_by(now + self.members.rebalance_timeout_s())

    # --- assigning ----------------------------------------------------------------------------------------

    def _check_sync(self, sync: Sync) -> ErrorCode:
        error = self._check_generation(sync.member_id, sync.instance_id, sync.generation)
        if error:
            return error
        if sync.protocol_type is not None and sync.protocol_type != self.protocol_type:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if sync.protocol_name is not None and sync.protocol_name != self.protocol_name:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _has_synced(self, member_id: str) -> None:
        self._not_synced.discard(member_id)
        if not self._not_synced:
            self._sync_ends = None

    def _sync_phase_timed_out(self, now: float) -> None:
        self._sync_ends = None
        overdue = [id_ for id_ in self._not_synced if id_ in self.members]
        for member_id in overdue:
            self._remove(member_id)
        if overdue:
            self._prepare_rebalance(GroupCause.SYNC_OVERDUE, now)

    def _drop_assignments(self, error: ErrorCode, now: float) -> None:
        for member in self.members:
            member.assignment = b""
            if member.syncing is not None:
                token, member.syncing = member.syncing, None
                self._answer(token, SyncAnswer(error=error))
                self._restart_session(member, now)

    def _assignments(self) -> dict[str, bytes]:
        return {member.member_id: member.assignment for member in self.members}

    # --- leaving ------------------------------------------------------------------------------------------

    def _leave_one(self, leaver: Leaver) -> ErrorCode:
        member_id = leaver.member_id
        if member_id == NO_MEMBER:
            member_id = self.members.by_instance.get(leaver.instance_id or "", NO_MEMBER)
        elif member_id in self._pending:
            del self._pending[member_id]
            return ErrorCode.NONE
        error = self._check_member(member_id, leaver.instance_id)
        if not error:
            self._remove(member_id)
        return error

    def _remove(self, member_id: str) -> None:
        member = self.members.remove(member_id)
        self._has_synced(member_id)
        self._release(member, ErrorCode.UNKNOWN_MEMBER_ID, NO_MEMBER)

    def _release(self, member: Member, error: ErrorCode, member_id: str) -> None:
        """Answer whatever this member still waits for."""
        if member.joining is not None:
            token, member.joining = member.joining, None
            self._reject_join(token, error, member_id)
        if member.syncing is not None:
            token, member.syncing = member.syncing, None
            self._answer(token, SyncAnswer(error=error))

    def _after_departure(self, now: float) -> None:
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare_rebalance(GroupCause.MEMBERS_CHANGED, now)
        else:
            self._complete_join_if_all_are_here(now)

    # --- checks and answers -------------------------------------------------------------------------------

    def _check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            current = self.members.by_instance.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def _check_generation(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._check_member(member_id, instance_id)
        if not error and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def _join_answer(
        self, member: Member, *, leader: str | None = None, skip_assignment: bool = False
    ) -> JoinAnswer:
        leader = leader if leader is not None else self.members.leader_id or NO_MEMBER
        leads = leader == member.member_id
        return JoinAnswer(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader,
            skip_assignment=skip_assignment,
            members=[
                JoinedMember(each.member_id, each.instance_id, each.metadata(self.protocol_name))
                for each in self.members
            ]
            if leads
            else (),
        )

    def _sync_answer(self, member: Member) -> SyncAnswer:
        return SyncAnswer(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def _reject_join(self, token: Token, error: ErrorCode, member_id: str) -> None:
        self._answer(token, JoinAnswer(error=error, member_id=member_id))

    def _answer(self, token: Token, value: JoinAnswer | SyncAnswer) -> None:
        self._effects.append(Answer(token, value))

    def _move(self, cause: GroupCause) -> None:
        self.state = after(self.state, cause)
        self.changes += 1


def _member_of(join: Join, member_id: str) -> Member:
    return Member(
        member_id=member_id,
        instance_id=join.instance_id,
        client_id=join.client_id,
        client_host=join.client_host,
        session_timeout_ms=join.session_timeout_ms,
        rebalance_timeout_ms=join.rebalance_timeout_ms,
        protocols=join.protocols,
    )
