"""Hand in the leader's assignments, and get one's own.

Versions:
- 3: static members (KIP-345).
- 4: flexible.
- 5: protocol type and name, to be the same on both sides (KIP-559).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BYTES, INT16, INT32, STRING, array, field, message, struct


@struct
class SyncGroupRequestAssignment:
    member_id: str = field(STRING, "0+")
    assignment: bytes = field(BYTES, "0+")


@message("0-5", flexible="4+")
class SyncGroupRequest:
    group_id: str = field(STRING, "0+")
    generation_id: int = field(INT32, "0+")
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    protocol_type: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignments: Sequence[SyncGroupRequestAssignment] = field(array(SyncGroupRequestAssignment), "0+")


@message("0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "0+")
    protocol_type: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = field(STRING, "5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = field(BYTES, "0+")
