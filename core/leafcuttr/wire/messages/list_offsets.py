"""Find an offset by timestamp, or one of the special ones: -1 latest, -2 earliest, and later negatives.

Versions:
- 1: one offset with its timestamp per partition.
- 2: isolation level (KIP-98).
- 4: leader epoch, checked and answered (KIP-320).
- 5: OFFSET_NOT_AVAILABLE may be answered.
- 6: flexible.
- 7: -3, the offset of the largest timestamp (KIP-734).
- 8: -4, earliest local (KIP-405).
- 9: -5, latest tiered (KIP-1005).
- 10: `timeout_ms` for remote storage (KIP-1075).
- 11: -6, earliest pending upload (KIP-1023).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class ListOffsetsPartition:
    partition_index: int = field(INT32, "0+")
    current_leader_epoch: int = field(INT32, "4+", default=-1, ignorable=True)
    timestamp: int = field(INT64, "0+")


@struct
class ListOffsetsTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[ListOffsetsPartition] = field(array(ListOffsetsPartition), "0+")


@message("1-11", flexible="6+")
class ListOffsetsRequest:
    replica_id: int = field(INT32, "0+")
    isolation_level: int = field(INT8, "2+")
    topics: Sequence[ListOffsetsTopic] = field(array(ListOffsetsTopic), "0+")
    timeout_ms: int = field(INT32, "10+", ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    timestamp: int = field(INT64, "1+", default=-1)
    offset: int = field(INT64, "1+", default=-1)
    leader_epoch: int = field(INT32, "4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: str = field(STRING, "0+")
    partitions: Sequence[ListOffsetsPartitionResponse] = field(array(ListOffsetsPartitionResponse), "0+")


@message("1-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: Sequence[ListOffsetsTopicResponse] = field(array(ListOffsetsTopicResponse), "0+")
