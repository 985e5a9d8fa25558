"""Events and effects of the group machine: plain values, neither bytes of the wire nor I/O.

Times that clients name are milliseconds, as on the wire; clock readings are seconds of a monotonic clock.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from leafcuttr.errors import ErrorCode

Token: TypeAlias = object
"""Stands for a request that waits; the machine keeps it and gives it back with the answer, once."""

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""(name, metadata) of the assignment strategies that a member can do, the one it likes best first."""

NO_GENERATION = -1
NO_MEMBER = ""


class GroupLimits(NamedTuple):
    """The broker's settings that the machine needs."""

    max_size: int = 2**31 - 1
    initial_rebalance_delay_ms: int = 0


class Join(NamedTuple):
    """JoinGroup. `two_steps`: hand out a member id first (v4, KIP-394). `can_skip_assignment`: v9 (KIP-814)."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    two_steps: bool = True
    can_skip_assignment: bool = True
    reason: str | None = None


class Sync(NamedTuple):
    """SyncGroup. Protocol type and name are checked if given (v5, KIP-559); assignments by member id."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class Leaver(NamedTuple):
    """One member of a LeaveGroup: by member id, or by instance id alone (an administrator removes it)."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


class JoinedMember(NamedTuple):
    """What the leader is told of each member."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """The answer to a Join."""

    error: ErrorCode = ErrorCode.NONE
    member_id: str = NO_MEMBER
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = NO_MEMBER
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


class SyncAnswer(NamedTuple):
    """The answer to a Sync."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class Answer(NamedTuple):
    """Give this to the request that waits under this token."""

    token: Token
    value: JoinAnswer | SyncAnswer


class Store(NamedTuple):
    """Write the group's metadata with these assignments (by member id), then call `Group.stored` with this
    object.

    `token` is the request of a static member that came back and is answered once its new id is in the log.
    """

    generation: int
    assignments: Mapping[str, bytes]
    token: Token | None = None
    answer: JoinAnswer | None = None


GroupEffect: TypeAlias = Answer | Store
