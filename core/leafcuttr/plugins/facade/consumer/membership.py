"""One member's side of the group protocol as a state machine: answers in, what to do next out. No I/O.

    OUT  -- begin -->  JOINING  -- joined -->  SYNCING  -- synced -->  MEMBER
                          ^  \\_ again with the id it was given, or without one   |
                          |___________ begin, once a rebalance is wanted _________|

In MEMBER, `wants_rebalance` says that the group is in a new rebalance (or wants us in one) and the caller has to
`begin` when its records have been dealt with; until then heartbeats go on. An error that joining again does not cure is
raised, and the member is OUT.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from leafcuttr.errors import BrokerError, ErrorCode
from leafcuttr.plugins.facade.group_errors import error_of
from leafcuttr.state.groups.events import NO_GENERATION, NO_MEMBER, JoinAnswer, JoinedMember, SyncAnswer


class Phase(Enum):
    OUT = auto()
    JOINING = auto()
    SYNCING = auto()
    MEMBER = auto()


# Another rebalance with the same member id recovers.
_AGAIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.NOT_COORDINATOR})
# The group does not know us any more: another rebalance as a new member recovers.
_ANEW: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class Membership:
    """A member's id and generation in its group. `roster` are all members if this one leads the rebalance, `assignment`
    the bytes of its assignment, `lost` whether the group has gone on without it (its partitions may be another's)."""

    def __init__(self) -> None:
        self.phase = Phase.OUT
        self.member_id = NO_MEMBER
        self.generation = NO_GENERATION
        self.protocol: str | None = None
        self.leads = False
        self.roster: Sequence[JoinedMember] = ()
        self.skip_assignment = False
        self.assignment = b""
        self.wants_rebalance = False
        self.lost = False

    def begin(self) -> None:
        """A rebalance: JoinGroup is next."""
        self.phase = Phase.JOINING
        self.wants_rebalance = self.lost = False
        self.assignment = b""
        self.roster = ()

    def joined(self, answer: JoinAnswer) -> None:
        """The answer to JoinGroup. Raises BrokerError."""
        match answer.error:
            case ErrorCode.NONE:
                self.member_id = answer.member_id
                self.generation = answer.generation
                self.protocol = answer.protocol_name
                self.leads = answer.leader == answer.member_id
                self.roster = answer.members if self.leads else ()
                self.skip_assignment = answer.skip_assignment
                self.phase = Phase.SYNCING
            case ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = answer.member_id
            case error:
                self._join_again_or_raise(error)

    def synced(self, answer: SyncAnswer) -> None:
        """The answer to SyncGroup. Raises BrokerError."""
        if answer.error:
            self._join_again_or_raise(answer.error)
        else:
            self.assignment = answer.assignment
            self.phase = Phase.MEMBER

    def heard(self, code: ErrorCode) -> None:
        """The answer to a heartbeat or a commit of this generation. Raises BrokerError if no rebalance
        recovers from it."""
        if self.phase is not Phase.MEMBER:
            return
        if code in _ANEW:
            self._forget()
            self.lost = self.wants_rebalance = True
        elif code in _AGAIN:
            self.wants_rebalance = True
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            raise self._out(code)

    def left(self) -> None:
        """Out of the group, by its own will."""
        self.phase = Phase.OUT
        self.wants_rebalance = self.lost = False
        self.assignment = b""
        self._forget()

    def _join_again_or_raise(self, error: ErrorCode) -> None:
        if error in _ANEW:
            self._forget()
        elif error not in _AGAIN:
            raise self._out(error)
        self.phase = Phase.JOINING

    def _out(self, error: ErrorCode) -> BrokerError:
        self.left()
        return error_of(error)

    def _forget(self) -> None:
        self.member_id = NO_MEMBER
        self.generation = NO_GENERATION
        self.leads = False
