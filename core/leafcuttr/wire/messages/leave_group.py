"""Take members out of a classic group.

Versions 0 to 2 name one member.

Versions:
- 3: a list of them, static ones by instance id (KIP-345).
- 4: flexible.
- 5: reason (KIP-800).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, STRING, array, field, message, struct


@struct
class MemberIdentity:
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    reason: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)


@message("0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: str = field(STRING, "0+")
    member_id: str = field(STRING, "0-2")
    members: Sequence[MemberIdentity] = field(array(MemberIdentity), "3+")


@struct
class MemberResponse:
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+")
    error_code: int = field(INT16, "3+")


@message("0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0+")
    members: Sequence[MemberResponse] = field(array(MemberResponse), "3+")
