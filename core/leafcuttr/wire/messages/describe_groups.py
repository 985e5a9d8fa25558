"""State and members of classic groups.

Versions:
- 3: authorized operations (KIP-430).
- 4: instance ids (KIP-345).
- 5: flexible.
- 6: an unknown group gets GROUP_ID_NOT_FOUND and a message instead of the state Dead (KIP-1043).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, BYTES, INT16, INT32, STRING, array, field, message, struct


@message("0-6", flexible="5+")
class DescribeGroupsRequest:
    groups: Sequence[str] = field(array(STRING), "0+")
    include_authorized_operations: bool = field(BOOL, "3+")


@struct
class DescribedGroupMember:
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "4+", nullable="4+", default=None, ignorable=True)
    client_id: str = field(STRING, "0+")
    client_host: str = field(STRING, "0+")
    member_metadata: bytes = field(BYTES, "0+")
    member_assignment: bytes = field(BYTES, "0+")


@struct
class DescribedGroup:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "6+", nullable="6+", default=None)
    group_id: str = field(STRING, "0+")
    group_state: str = field(STRING, "0+")
    protocol_type: str = field(STRING, "0+")
    protocol_data: str = field(STRING, "0+")
    members: Sequence[DescribedGroupMember] = field(array(DescribedGroupMember), "0+")
    authorized_operations: int = field(INT32, "3+", default=-2147483648)


@message("0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    groups: Sequence[DescribedGroup] = field(array(DescribedGroup), "0+")
