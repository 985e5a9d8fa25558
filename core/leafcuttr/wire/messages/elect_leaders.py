"""Elect the preferred, or an unclean, leader of partitions (KIP-183).

A null array means all partitions.

Versions:
- 1: the type of election, top-level error (KIP-460).
- 2: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class TopicPartitions:
    topic: str = field(STRING, "0+")
    partitions: Sequence[int] = field(array(INT32), "0+")


@message("0-2", flexible="2+")
class ElectLeadersRequest:
    election_type: int = field(INT8, "1+")
    topic_partitions: Sequence[TopicPartitions] | None = field(array(TopicPartitions), "0+", nullable="0+")
    timeout_ms: int = field(INT32, "0+", default=60000)


@struct
class PartitionResult:
    partition_id: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


@struct
class ReplicaElectionResult:
    topic: str = field(STRING, "0+")
    partition_result: Sequence[PartitionResult] = field(array(PartitionResult), "0+")


@message("0-2", flexible="2+")
class ElectLeadersResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "1+")
    replica_election_results: Sequence[ReplicaElectionResult] = field(array(ReplicaElectionResult), "0+")
