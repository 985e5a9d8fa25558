"""Read record batches from partitions, by consumers (and by followers, which do not exist here).

An answer waits until `min_bytes` are there or `max_wait_ms` have passed. `max_bytes` and
`partition_max_bytes` are soft: the first batch of the first partition that has data is sent whole (KIP-74).

Versions:
- 4: message format v2, isolation level, aborted transactions (KIP-98).
- 5: log start offset (KIP-107).
- 7: sessions, so that an unchanged request shrinks to nothing (KIP-227).
- 9: the consumer's leader epoch is checked (KIP-320).
- 10: zstd allowed (KIP-110).
- 11: rack of the consumer, preferred replica (KIP-392).
- 12: flexible; divergence by last fetched epoch (KIP-595).
- 13: topic ids instead of names (KIP-516).
- 15: replica state, in a tagged field (KIP-903).
- 16: addresses of new leaders (KIP-951).
- 17, 18: directory id and high watermark of followers (KIP-853, KIP-1166).

`aborted_transactions` is null when the isolation level is read_uncommitted, and an empty list when it is
read_committed and nothing was aborted.
"""

from collections.abc import Sequence

from leafcuttr.wire.codec import Records
from leafcuttr.wire.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    array,
    field,
    message,
    struct,
)


@struct
class ReplicaState:
    replica_id: int = field(INT32, "15+", default=-1)
    replica_epoch: int = field(INT64, "15+", default=-1)


@struct
class FetchPartition:
    partition: int = field(INT32, "0+")
    current_leader_epoch: int = field(INT32, "9+", default=-1, ignorable=True)
    fetch_offset: int = field(INT64, "0+")
    last_fetched_epoch: int = field(INT32, "12+", default=-1)
    log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
    partition_max_bytes: int = field(INT32, "0+")
    replica_directory_id: bytes = field(UUID, "17+", tag=0, tagged="17+", ignorable=True)
    high_watermark: int = field(
        INT64, "18+", default=9223372036854775807, tag=1, tagged="18+", ignorable=True
    )


@struct
class FetchTopic:
    topic: str = field(STRING, "0-12", ignorable=True)
    topic_id: bytes = field(UUID, "13+", ignorable=True)
    partitions: Sequence[FetchPartition] = field(array(FetchPartition), "0+")


@struct
class ForgottenTopic:
    topic: str = field(STRING, "7-12", ignorable=True)
    topic_id: bytes = field(UUID, "13+", ignorable=True)
    partitions: Sequence[int] = field(array(INT32), "7+")


@message("4-18", flexible="12+")
class FetchRequest:
    cluster_id: str | None = field(
        STRING, "12+", nullable="12+", default=None, tag=0, tagged="12+", ignorable=True
    )
    replica_id: int = field(INT32, "0-14", default=-1)
    replica_state: ReplicaState = field(ReplicaState, "15+", tag=1, tagged="15+")
    max_wait_ms: int = field(INT32, "0+")
    min_bytes: int = field(INT32, "0+")
    max_bytes: int = field(INT32, "3+", default=2147483647, ignorable=True)
    isolation_level: int = field(INT8, "4+", ignorable=True)
    session_id: int = field(INT32, "7+", ignorable=True)
    session_epoch: int = field(INT32, "7+", default=-1, ignorable=True)
    topics: Sequence[FetchTopic] = field(array(FetchTopic), "0+")
    forgotten_topics_data: Sequence[ForgottenTopic] = field(array(ForgottenTopic), "7+")
    rack_id: str = field(STRING, "11+", ignorable=True)


@struct
class EpochEndOffset:
    epoch: int = field(INT32, "12+", default=-1)
    end_offset: int = field(INT64, "12+", default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, "12+", default=-1)
    leader_epoch: int = field(INT32, "12+", default=-1)


@struct
class SnapshotId:
    end_offset: int = field(INT64, "0+", default=-1)
    epoch: int = field(INT32, "0+", default=-1)


@struct
class AbortedTransaction:
    producer_id: int = field(INT64, "4+")
    first_offset: int = field(INT64, "4+")


@struct
class PartitionData:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    high_watermark: int = field(INT64, "0+")
    last_stable_offset: int = field(INT64, "4+", default=-1, ignorable=True)
    log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, "12+", tag=0, tagged="12+")
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "12+", tag=1, tagged="12+")
    snapshot_id: SnapshotId = field(SnapshotId, "12+", tag=2, tagged="12+")
    aborted_transactions: Sequence[AbortedTransaction] | None = field(
        array(AbortedTransaction), "4+", nullable="4+", ignorable=True
    )
    preferred_read_replica: int = field(INT32, "11+", default=-1)
    records: Records = field(RECORDS, "0+", nullable="0+")


@struct
class FetchableTopicResponse:
    topic: str = field(STRING, "0-12", ignorable=True)
    topic_id: bytes = field(UUID, "13+", ignorable=True)
    partitions: Sequence[PartitionData] = field(array(PartitionData), "0+")


@struct
class NodeEndpoint:
    node_id: int = field(INT32, "16+")
    host: str = field(STRING, "16+")
    port: int = field(INT32, "16+")
    rack: str | None = field(STRING, "16+", nullable="16+", default=None)


@message("4-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    error_code: int = field(INT16, "7+", ignorable=True)
    session_id: int = field(INT32, "7+")
    responses: Sequence[FetchableTopicResponse] = field(array(FetchableTopicResponse), "0+")
    node_endpoints: Sequence[NodeEndpoint] = field(array(NodeEndpoint), "16+", tag=0, tagged="16+")
