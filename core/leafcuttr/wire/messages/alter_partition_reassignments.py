"""Start or cancel moving partitions to other brokers (KIP-455).

Flexible from version 0. Null replicas cancel.

Versions:
- 1: whether the replication factor may change (KIP-860).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, STRING, array, field, message, struct


@struct
class ReassignablePartition:
    partition_index: int = field(INT32, "0+")
    replicas: Sequence[int] | None = field(array(INT32), "0+", nullable="0+", default=None)


@struct
class ReassignableTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[ReassignablePartition] = field(array(ReassignablePartition), "0+")


@message("0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = field(INT32, "0+", default=60000)
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True)
    topics: Sequence[ReassignableTopic] = field(array(ReassignableTopic), "0+")


@struct
class ReassignablePartitionResponse:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


@struct
class ReassignableTopicResponse:
    name: str = field(STRING, "0+")
    partitions: Sequence[ReassignablePartitionResponse] = field(array(ReassignablePartitionResponse), "0+")


@message("0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    allow_replication_factor_change: bool = field(BOOL, "1+", default=True, ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    responses: Sequence[ReassignableTopicResponse] = field(array(ReassignableTopicResponse), "0+")
