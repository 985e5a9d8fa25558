"""The state of the metadata quorum (KIP-595).

Flexible from version 0.

Versions:
- 1: when each replica last fetched and was caught up (KIP-836).
- 2: error messages, directory ids, addresses of the nodes (KIP-853).

Kafka calls parts of the request and of the answer TopicData and PartitionData alike; those of the request are
RequestTopicData and RequestPartitionData here.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, UINT16, UUID, array, field, message, struct


@struct
class RequestPartitionData:
    partition_index: int = field(INT32, "0+")


@struct
class RequestTopicData:
    topic_name: str = field(STRING, "0+")
    partitions: Sequence[RequestPartitionData] = field(array(RequestPartitionData), "0+")


@message("0-2", flexible="0+")
class DescribeQuorumRequest:
    topics: Sequence[RequestTopicData] = field(array(RequestTopicData), "0+")


@struct
class ReplicaState:
    replica_id: int = field(INT32, "0+")
    replica_directory_id: bytes = field(UUID, "2+")
    log_end_offset: int = field(INT64, "0+")
    last_fetch_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(INT64, "1+", default=-1, ignorable=True)


@struct
class PartitionData:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+")
    high_watermark: int = field(INT64, "0+")
    current_voters: Sequence[ReplicaState] = field(array(ReplicaState), "0+")
    observers: Sequence[ReplicaState] = field(array(ReplicaState), "0+")


@struct
class TopicData:
    topic_name: str = field(STRING, "0+")
    partitions: Sequence[PartitionData] = field(array(PartitionData), "0+")


@struct
class Listener:
    name: str = field(STRING, "2+")
    host: str = field(STRING, "2+")
    port: int = field(UINT16, "2+")


@struct
class Node:
    node_id: int = field(INT32, "2+")
    listeners: Sequence[Listener] = field(array(Listener), "2+")


@message("0-2", flexible="0+")
class DescribeQuorumResponse:
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "2+", nullable="2+", ignorable=True)
    topics: Sequence[TopicData] = field(array(TopicData), "0+")
    nodes: Sequence[Node] = field(array(Node), "2+")
