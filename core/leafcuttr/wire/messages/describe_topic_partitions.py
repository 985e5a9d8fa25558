"""Topics and partitions in pages, which a cursor joins (KIP-966).

Flexible from version 0. `Cursor` is the same in the request and in the answer; null when there is no page
before or after.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, STRING, UUID, array, field, message, struct


@struct
class TopicRequest:
    name: str = field(STRING, "0+")


@struct
class Cursor:
    topic_name: str = field(STRING, "0+")
    partition_index: int = field(INT32, "0+")


@message("0", flexible="0+")
class DescribeTopicPartitionsRequest:
    topics: Sequence[TopicRequest] = field(array(TopicRequest), "0+")
    response_partition_limit: int = field(INT32, "0+", default=2000)
    cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: int = field(INT16, "0+")
    partition_index: int = field(INT32, "0+")
    leader_id: int = field(INT32, "0+")
    leader_epoch: int = field(INT32, "0+", default=-1, ignorable=True)
    replica_nodes: Sequence[int] = field(array(INT32), "0+")
    isr_nodes: Sequence[int] = field(array(INT32), "0+")
    eligible_leader_replicas: Sequence[int] | None = field(array(INT32), "0+", nullable="0+", default=None)
    last_known_elr: Sequence[int] | None = field(array(INT32), "0+", nullable="0+", default=None)
    offline_replicas: Sequence[int] = field(array(INT32), "0+", ignorable=True)


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int = field(INT16, "0+")
    name: str | None = field(STRING, "0+", nullable="0+")
    topic_id: bytes = field(UUID, "0+", ignorable=True)
    is_internal: bool = field(BOOL, "0+", ignorable=True)
    partitions: Sequence[DescribeTopicPartitionsResponsePartition] = field(
        array(DescribeTopicPartitionsResponsePartition), "0+"
    )
    topic_authorized_operations: int = field(INT32, "0+", default=-2147483648)


@message("0", flexible="0+")
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    topics: Sequence[DescribeTopicPartitionsResponseTopic] = field(
        array(DescribeTopicPartitionsResponseTopic), "0+"
    )
    next_cursor: Cursor | None = field(Cursor, "0+", nullable="0+", default=None)
