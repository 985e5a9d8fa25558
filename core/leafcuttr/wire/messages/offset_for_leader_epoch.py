"""Where a leader epoch ends, for clients that detect truncation (KIP-320).

Versions:
- 2: the client's own epoch is checked.
- 3: replica id, -2 for a debugging consumer.
- 4: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class OffsetForLeaderPartition:
    partition: int = field(INT32, "0+")
    current_leader_epoch: int = field(INT32, "2+", default=-1, ignorable=True)
    leader_epoch: int = field(INT32, "0+")


@struct
class OffsetForLeaderTopic:
    topic: str = field(STRING, "0+")
    partitions: Sequence[OffsetForLeaderPartition] = field(array(OffsetForLeaderPartition), "0+")


@message("2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    replica_id: int = field(INT32, "3+", default=-2, ignorable=True)
    topics: Sequence[OffsetForLeaderTopic] = field(array(OffsetForLeaderTopic), "0+")


@struct
class EpochEndOffset:
    error_code: int = field(INT16, "0+")
    partition: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "1+", default=-1, ignorable=True)
    end_offset: int = field(INT64, "0+", default=-1)


@struct
class OffsetForLeaderTopicResult:
    topic: str = field(STRING, "0+")
    partitions: Sequence[EpochEndOffset] = field(array(EpochEndOffset), "0+")


@message("2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: Sequence[OffsetForLeaderTopicResult] = field(array(OffsetForLeaderTopicResult), "0+")
