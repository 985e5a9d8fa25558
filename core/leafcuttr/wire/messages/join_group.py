"""Join a group of the classic protocol; answered when the rebalance is complete.

Versions:
- 1: rebalance timeout apart from the session timeout (KIP-62).
- 4: a member without id gets one with MEMBER_ID_REQUIRED and joins again (KIP-394).
- 5: static members (KIP-345).
- 6: flexible.
- 7: protocol type in the answer, protocol name may be null (KIP-559).
- 8: reason (KIP-800).
- 9: `skip_assignment` for a static leader that returns (KIP-814).

Without a rebalance timeout (version 0, hence the default of -1) the session timeout counts.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, BYTES, INT16, INT32, STRING, array, field, message, struct


@struct
class JoinGroupRequestProtocol:
    name: str = field(STRING, "0+")
    metadata: bytes = field(BYTES, "0+")


@message("0-9", flexible="6+")
class JoinGroupRequest:
    group_id: str = field(STRING, "0+")
    session_timeout_ms: int = field(INT32, "0+")
    rebalance_timeout_ms: int = field(INT32, "1+", default=-1, ignorable=True)
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "5+", nullable="5+", default=None)
    protocol_type: str = field(STRING, "0+")
    protocols: Sequence[JoinGroupRequestProtocol] = field(array(JoinGroupRequestProtocol), "0+")
    reason: str | None = field(STRING, "8+", nullable="8+", default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = field(BYTES, "0+")


@message("0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    error_code: int = field(INT16, "0+")
    generation_id: int = field(INT32, "0+", default=-1)
    protocol_type: str | None = field(STRING, "7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "0+", nullable="7+")
    leader: str = field(STRING, "0+")
    skip_assignment: bool = field(BOOL, "9+")
    member_id: str = field(STRING, "0+")
    members: Sequence[JoinGroupResponseMember] = field(array(JoinGroupResponseMember), "0+")
