"""Delete committed offsets of topics that a group does not subscribe to (KIP-496).

One version, never made flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, STRING, array, field, message, struct


@struct
class OffsetDeleteRequestPartition:
    partition_index: int = field(INT32, "0+")


@struct
class OffsetDeleteRequestTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[OffsetDeleteRequestPartition] = field(array(OffsetDeleteRequestPartition), "0+")


@message("0")
class OffsetDeleteRequest:
    group_id: str = field(STRING, "0+")
    topics: Sequence[OffsetDeleteRequestTopic] = field(array(OffsetDeleteRequestTopic), "0+")


@struct
class OffsetDeleteResponsePartition:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")


@struct
class OffsetDeleteResponseTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[OffsetDeleteResponsePartition] = field(array(OffsetDeleteResponsePartition), "0+")


@message("0")
class OffsetDeleteResponse:
    error_code: int = field(INT16, "0+")
    throttle_time_ms: int = field(INT32, "0+", ignorable=True)
    topics: Sequence[OffsetDeleteResponseTopic] = field(array(OffsetDeleteResponseTopic), "0+")
