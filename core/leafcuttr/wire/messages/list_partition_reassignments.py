"""The moves of partitions that are under way (KIP-455).

Flexible from version 0. Null topics mean all.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, STRING, array, field, message, struct


@struct
class ListPartitionReassignmentsTopics:
    name: str = field(STRING, "0+")
    partition_indexes: Sequence[int] = field(array(INT32), "0+")


@message("0", flexible="0+")
class ListPartitionReassignmentsRequest:
    timeout_ms: int = field(INT32, "0+", default=60000)
    topics: Sequence[ListPartitionReassignmentsTopics] | None = field(
        array(ListPartitionReassignmentsTopics), "0+", nullable="0+", default=None
    )


@struct
class OngoingPartitionReassignment:
    partition_index: int = field(INT32, "0+")
    replicas: Sequence[int] = field(array(INT32), "0+")
    adding_replicas: Sequence[int] = field(array(INT32), "0+")
    removing_replicas: Sequence[int] = field(array(INT32), "0+")


@struct
class OngoingTopicReassignment:
    name: str = field(STRING, "0+")
    partitions: Sequence[OngoingPartitionReassignment] = field(array(OngoingPartitionReassignment), "0+")


@message("0", flexible="0+")
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    topics: Sequence[OngoingTopicReassignment] = field(array(OngoingTopicReassignment), "0+")
