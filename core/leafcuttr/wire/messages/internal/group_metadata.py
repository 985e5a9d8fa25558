"""The records of group metadata in `__consumer_offsets`.

Values of version 1 carry the rebalance timeout, 2 the time of the last change of state (KIP-211), 3 the instance id
of static members (KIP-345), 4 is flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BYTES, INT32, INT64, STRING, array, field, message, struct


@message("2")
class GroupMetadataKey:
    group: str = field(STRING, "2")


@struct
class MemberMetadata:
    member_id: str = field(STRING, "0+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None, ignorable=True)
    client_id: str = field(STRING, "0+")
    client_host: str = field(STRING, "0+")
    rebalance_timeout: int = field(INT32, "1+", default=-1, ignorable=True)
    session_timeout: int = field(INT32, "0+")
    subscription: bytes = field(BYTES, "0+")
    assignment: bytes = field(BYTES, "0+")


@message("0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: str = field(STRING, "0+")
    generation: int = field(INT32, "0+")
    protocol: str | None = field(STRING, "0+", nullable="0+")
    leader: str | None = field(STRING, "0+", nullable="0+")
    current_state_timestamp: int = field(INT64, "2+", default=-1, ignorable=True)
    members: Sequence[MemberMetadata] = field(array(MemberMetadata), "0+")
