"""What consumers send each other through the coordinator: the topics that each wants, and the partitions that each
gets.

The bytes stand behind a version of 16 bits, and readers of an older one ignore what newer ones add at the end.

Versions:
- 1: the partitions that a member has (KIP-429).
- 2: since which generation (KIP-792).
- 3: its rack (KIP-881).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BYTES, INT32, STRING, array, field, message, struct


@struct
class OwnedPartitions:
    topic: str = field(STRING, "1+")
    partitions: Sequence[int] = field(array(INT32), "1+")


@message("0-3")
class ConsumerProtocolSubscription:
    topics: Sequence[str] = field(array(STRING), "0+")
    user_data: bytes | None = field(BYTES, "0+", nullable="0+", default=None)
    owned_partitions: Sequence[OwnedPartitions] = field(array(OwnedPartitions), "1+", ignorable=True)
    generation_id: int = field(INT32, "2+", default=-1, ignorable=True)
    rack_id: str | None = field(STRING, "3+", nullable="3+", default=None, ignorable=True)


@struct
class AssignedPartitions:
    topic: str = field(STRING, "0+")
    partitions: Sequence[int] = field(array(INT32), "0+")


@message("0-3")
class ConsumerProtocolAssignment:
    assigned_partitions: Sequence[AssignedPartitions] = field(array(AssignedPartitions), "0+")
    user_data: bytes | None = field(BYTES, "0+", nullable="0+", default=None)
