"""The producers that are active on partitions (KIP-664).

Flexible from version 0. Times are ms since the epoch, -1 for none.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class TopicRequest:
    name: str = field(STRING, "0+")
    partition_indexes: Sequence[int] = field(array(INT32), "0+")


@message("0", flexible="0+")
class DescribeProducersRequest:
    topics: Sequence[TopicRequest] = field(array(TopicRequest), "0+")


@struct
class ProducerState:
    producer_id: int = field(INT64, "0+")
    producer_epoch: int = field(INT32, "0+")
    last_sequence: int = field(INT32, "0+", default=-1)
    last_timestamp: int = field(INT64, "0+", default=-1)
    coordinator_epoch: int = field(INT32, "0+")
    current_txn_start_offset: int = field(INT64, "0+", default=-1)


@struct
class PartitionResponse:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)
    active_producers: Sequence[ProducerState] = field(array(ProducerState), "0+")


@struct
class TopicResponse:
    name: str = field(STRING, "0+")
    partitions: Sequence[PartitionResponse] = field(array(PartitionResponse), "0+")


@message("0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: int = field(INT32, "0+")
    topics: Sequence[TopicResponse] = field(array(TopicResponse), "0+")
