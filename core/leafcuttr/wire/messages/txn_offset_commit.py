"""Commit offsets of a group as part of a transaction (KIP-98, KIP-447).

Versions:
- 2: leader epochs (KIP-320).
- 3: flexible; the member and its generation, which are checked (KIP-447).
- 4: TRANSACTION_ABORTABLE may be answered (KIP-890).
- 5: adds the group's offsets to the transaction by itself (KIP-890, part 2).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int = field(INT32, "0+")
    committed_offset: int = field(INT64, "0+")
    committed_leader_epoch: int = field(INT32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, "0+", nullable="0+")


@struct
class TxnOffsetCommitRequestTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[TxnOffsetCommitRequestPartition] = field(
        array(TxnOffsetCommitRequestPartition), "0+"
    )


@message("0-5", flexible="3+")
class TxnOffsetCommitRequest:
    transactional_id: str = field(STRING, "0+")
    group_id: str = field(STRING, "0+")
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT16, "0+")
    generation_id: int = field(INT32, "3+", default=-1)
    member_id: str = field(STRING, "3+")
    group_instance_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    topics: Sequence[TxnOffsetCommitRequestTopic] = field(array(TxnOffsetCommitRequestTopic), "0+")


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")


@struct
class TxnOffsetCommitResponseTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[TxnOffsetCommitResponsePartition] = field(
        array(TxnOffsetCommitResponsePartition), "0+"
    )


@message("0-5", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: int = field(INT32, "0+")
    topics: Sequence[TxnOffsetCommitResponseTopic] = field(array(TxnOffsetCommitResponseTopic), "0+")
