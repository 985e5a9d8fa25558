"""Store the offsets a group has consumed to.

Versions 2 to 4 carry a retention time, which 5 drops (KIP-211).

Versions:
- 6: leader epoch (KIP-320).
- 7: static members (KIP-345).
- 8: flexible.
- 9: the epoch of a consumer of the new protocol in the place of the generation (KIP-848).
- 10: topic ids instead of names.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, UUID, array, field, message, struct


@struct
class OffsetCommitRequestPartition:
    partition_index: int = field(INT32, "0+")
    committed_offset: int = field(INT64, "0+")
    committed_leader_epoch: int = field(INT32, "6+", default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, "0+", nullable="0+")


@struct
class OffsetCommitRequestTopic:
    name: str = field(STRING, "0-9", ignorable=True)
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    partitions: Sequence[OffsetCommitRequestPartition] = field(array(OffsetCommitRequestPartition), "0+")


@message("2-10", flexible="8+")
class OffsetCommitRequest:
    group_id: str = field(STRING, "0+")
    generation_id_or_member_epoch: int = field(INT32, "1+", default=-1, ignorable=True)
    member_id: str = field(STRING, "1+", ignorable=True)
    group_instance_id: str | None = field(STRING, "7+", nullable="7+", default=None)
    retention_time_ms: int = field(INT64, "2-4", default=-1, ignorable=True)
    topics: Sequence[OffsetCommitRequestTopic] = field(array(OffsetCommitRequestTopic), "0+")


@struct
class OffsetCommitResponsePartition:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")


@struct
class OffsetCommitResponseTopic:
    name: str = field(STRING, "0-9", ignorable=True)
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    partitions: Sequence[OffsetCommitResponsePartition] = field(array(OffsetCommitResponsePartition), "0+")


@message("2-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    topics: Sequence[OffsetCommitResponseTopic] = field(array(OffsetCommitResponseTopic), "0+")
