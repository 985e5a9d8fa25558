"""Append record batches to partitions.

Each partition carries one record set; the answer gives the base offset or an error, and with acks=0 there is
no answer.

Versions 0 to 2 are gone from Kafka and from here, though ApiVersions names them for librdkafka's sake
(KAFKA-18659).

Versions:
- 3: message format v2, transactional id (KIP-98).
- 5: log start offset in the answer.
- 7: zstd allowed (KIP-110).
- 8: which records of a batch were at fault (KIP-467).
- 9: flexible.
- 10: on a leader error the answer names the new leader and its address in tagged fields (KIP-951).
- 11, 12: transactional errors and implicit partitions of transactions (KIP-890).
- 13: topic ids instead of names (KIP-516).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, RECORDS, STRING, UUID, array, field, message, struct


@struct
class PartitionProduceData:
    index: int = field(INT32, "0+")
    records: memoryview | None = field(RECORDS, "0+", nullable="0+")


@struct
class TopicProduceData:
    name: str = field(STRING, "0-12", ignorable=True)
    topic_id: bytes = field(UUID, "13+", ignorable=True)
    partition_data: Sequence[PartitionProduceData] = field(array(PartitionProduceData), "0+")


@message("3-13", flexible="9+")
class ProduceRequest:
    transactional_id: str | None = field(STRING, "3+", nullable="3+", default=None)
    acks: int = field(INT16, "0+")
    timeout_ms: int = field(INT32, "0+")
    topic_data: Sequence[TopicProduceData] = field(array(TopicProduceData), "0+")


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = field(INT32, "8+")
    batch_index_error_message: str | None = field(STRING, "8+", nullable="8+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, "10+", default=-1)
    leader_epoch: int = field(INT32, "10+", default=-1)


@struct
class PartitionProduceResponse:
    index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    base_offset: int = field(INT64, "0+")
    log_append_time_ms: int = field(INT64, "2+", default=-1, ignorable=True)
    log_start_offset: int = field(INT64, "5+", default=-1, ignorable=True)
    record_errors: Sequence[BatchIndexAndErrorMessage] = field(
        array(BatchIndexAndErrorMessage), "8+", ignorable=True
    )
    error_message: str | None = field(STRING, "8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, "10+", tag=0, tagged="10+")


@struct
class TopicProduceResponse:
    name: str = field(STRING, "0-12", ignorable=True)
    topic_id: bytes = field(UUID, "13+", ignorable=True)
    partition_responses: Sequence[PartitionProduceResponse] = field(array(PartitionProduceResponse), "0+")


@struct
class NodeEndpoint:
    node_id: int = field(INT32, "10+")
    host: str = field(STRING, "10+")
    port: int = field(INT32, "10+")
    rack: str | None = field(STRING, "10+", nullable="10+", default=None)


@message("3-13", flexible="9+")
class ProduceResponse:
    responses: Sequence[TopicProduceResponse] = field(array(TopicProduceResponse), "0+")
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    node_endpoints: Sequence[NodeEndpoint] = field(array(NodeEndpoint), "10+", tag=0, tagged="10+")
