"""The states of a classic group, as a table. What does not fit the table is in `machine`, and named here.

Theory of operation
===================

A group divides the partitions of some topics among its members, and does it anew whenever members come, go or
change their minds. The broker knows nothing of partitions: it gathers the members, elects a leader, hands the
leader all metadata and passes the leader's assignment on as opaque bytes. One such rebalance
is a generation.

  EMPTY                 there are no members; there may be committed offsets.
  PREPARING_REBALANCE   the join phase: members send JoinGroup and wait. It ends when all known members wait and no
                        member id that was handed out is still expected back (KIP-394), or at the rebalance timeout.
                        A member that has not come by then is out, unless it is a static one (KIP-345): those leave
                        by session timeout only. Out of EMPTY the phase lasts `group.initial.rebalance.delay.ms`,
                        prolonged while new members arrive.
  COMPLETING_REBALANCE  the sync phase: all members know the generation and wait in SyncGroup for the leader's
                        assignment. It ends when the leader's has been stored. A member that has not sent SyncGroup
                        within the rebalance timeout is removed, which begins a new rebalance.
  STABLE                all members have an assignment and send heartbeats.
  DEAD                  the group has been deleted; nothing may happen to it any more.

The machine sees requests and the passing of time (a clock reading comes with every event). Requests that wait
are represented by a token, which the machine gives back with the answer; it never forgets one. Its outputs
are answers, and one thing to store (`events.Store`), whose outcome comes back in as an event: no member gets
an assignment that is not in the log.

Not in the table, because they change no state of the group:

* A static member that comes back with no member id takes the place of its former self. In STABLE, with the
  same protocol, it gets the assignment that it had, and there is no new generation.
* A follower that sends JoinGroup again with unchanged metadata in COMPLETING_REBALANCE or STABLE, and a leader
  that does so in COMPLETING_REBALANCE, did not get the first answer: it gets it once more. A leader in STABLE
  requests a new rebalance.
* Session timeouts are counted for each member that does not wait in JoinGroup or SyncGroup. A newcomer that
  waits in its first JoinGroup is given up after five minutes, because the broker cannot see whether it is
  still there.

Source: https://cwiki.apache.org/confluence/display/KAFKA/Kafka+Client-side+Assignment+Proposal and the KIPs
named.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.runtime.transitions import TransitionError


class GroupState(Enum):
    """The value is the name on the wire (DescribeGroups, ListGroups)."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupCause(Enum):
    """Why a group changes its state."""

    MEMBERS_CHANGED = "a member came, went, or brought other metadata"
    SYNC_OVERDUE = "members did not send SyncGroup in time"
    NOT_STORED = "the assignment could not be written"
    JOINED = "the join phase is over and there are members"
    DESERTED = "the join phase is over and no member is left"
    ASSIGNED = "the leader's assignment is in the log"
    DELETED = "the group was deleted, or was empty and had no offsets"


TRANSITIONS: Final[Mapping[GroupState, Mapping[GroupCause, GroupState]]] = {
    GroupState.EMPTY: {
        GroupCause.MEMBERS_CHANGED: GroupState.PREPARING_REBALANCE,
        GroupCause.DELETED: GroupState.DEAD,
    },
    GroupState.PREPARING_REBALANCE: {
        GroupCause.JOINED: GroupState.COMPLETING_REBALANCE,
        GroupCause.DESERTED: GroupState.EMPTY,
    },
    GroupState.COMPLETING_REBALANCE: {
        GroupCause.MEMBERS_CHANGED: GroupState.PREPARING_REBALANCE,
        GroupCause.SYNC_OVERDUE: GroupState.PREPARING_REBALANCE,
        GroupCause.NOT_STORED: GroupState.PREPARING_REBALANCE,
        GroupCause.ASSIGNED: GroupState.STABLE,
    },
    GroupState.STABLE: {
        GroupCause.MEMBERS_CHANGED: GroupState.PREPARING_REBALANCE,
        GroupCause.SYNC_OVERDUE: GroupState.PREPARING_REBALANCE,
    },
    GroupState.DEAD: {},
}

# What a known member of the current generation is answered. In COMPLETING_REBALANCE a heartbeat is fine: a client may
# begin with them as soon as it has its JoinGroup answer. A commit is not: the member may be about to lose the
# partition.
HEARTBEAT_ANSWER: Final[Mapping[GroupState, ErrorCode]] = {
    GroupState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    GroupState.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    GroupState.COMPLETING_REBALANCE: ErrorCode.NONE,
    GroupState.STABLE: ErrorCode.NONE,
    GroupState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
COMMIT_ANSWER: Final[Mapping[GroupState, ErrorCode]] = {
    GroupState.EMPTY: ErrorCode.NONE,
    GroupState.PREPARING_REBALANCE: ErrorCode.NONE,
    GroupState.COMPLETING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    GroupState.STABLE: ErrorCode.NONE,
    GroupState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def after(state: GroupState, cause: GroupCause) -> GroupState:
    """The state that follows. Raises TransitionError."""
    try:
        return TRANSITIONS[state][cause]
    except KeyError:
        raise TransitionError(f"a group in state {state.value} cannot change because {cause.value}") from None
