"""Read back the committed offsets of a group, of several from version 8 on.

Versions:
- 1: offsets from the broker's own topic.
- 2: null means all topics; top-level error.
- 5: leader epoch (KIP-320).
- 6: flexible.
- 7: `require_stable` waits for transactions (KIP-447).
- 8: several groups, and all results below `groups` (KIP-709).
- 9: member id and epoch (KIP-848).
- 10: topic ids instead of names.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, INT64, STRING, UUID, array, field, message, struct


@struct
class OffsetFetchRequestTopic:
    name: str = field(STRING, "0-7")
    partition_indexes: Sequence[int] = field(array(INT32), "0-7")


@struct
class OffsetFetchRequestTopics:
    name: str = field(STRING, "8-9", ignorable=True)
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    partition_indexes: Sequence[int] = field(array(INT32), "8+")


@struct
class OffsetFetchRequestGroup:
    group_id: str = field(STRING, "8+")
    member_id: str | None = field(STRING, "9+", nullable="9+", default=None, ignorable=True)
    member_epoch: int = field(INT32, "9+", default=-1, ignorable=True)
    topics: Sequence[OffsetFetchRequestTopics] | None = field(
        array(OffsetFetchRequestTopics), "8+", nullable="8+"
    )


@message("1-10", flexible="6+")
class OffsetFetchRequest:
    group_id: str = field(STRING, "0-7")
    topics: Sequence[OffsetFetchRequestTopic] | None = field(
        array(OffsetFetchRequestTopic), "0-7", nullable="2-7"
    )
    groups: Sequence[OffsetFetchRequestGroup] = field(array(OffsetFetchRequestGroup), "8+")
    require_stable: bool = field(BOOL, "7+")


@struct
class OffsetFetchResponsePartition:
    partition_index: int = field(INT32, "0-7")
    committed_offset: int = field(INT64, "0-7")
    committed_leader_epoch: int = field(INT32, "5-7", default=-1, ignorable=True)
    metadata: str | None = field(STRING, "0-7", nullable="0-7")
    error_code: int = field(INT16, "0-7")


@struct
class OffsetFetchResponseTopic:
    name: str = field(STRING, "0-7")
    partitions: Sequence[OffsetFetchResponsePartition] = field(array(OffsetFetchResponsePartition), "0-7")


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = field(INT32, "8+")
    committed_offset: int = field(INT64, "8+")
    committed_leader_epoch: int = field(INT32, "8+", default=-1, ignorable=True)
    metadata: str | None = field(STRING, "8+", nullable="8+")
    error_code: int = field(INT16, "8+")


@struct
class OffsetFetchResponseTopics:
    name: str = field(STRING, "8-9", ignorable=True)
    topic_id: bytes = field(UUID, "10+", ignorable=True)
    partitions: Sequence[OffsetFetchResponsePartitions] = field(array(OffsetFetchResponsePartitions), "8+")


@struct
class OffsetFetchResponseGroup:
    group_id: str = field(STRING, "8+")
    topics: Sequence[OffsetFetchResponseTopics] = field(array(OffsetFetchResponseTopics), "8+")
    error_code: int = field(INT16, "8+")


@message("1-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: int = field(INT32, "3+", ignorable=True)
    topics: Sequence[OffsetFetchResponseTopic] = field(array(OffsetFetchResponseTopic), "0-7")
    error_code: int = field(INT16, "2-7", ignorable=True)
    groups: Sequence[OffsetFetchResponseGroup] = field(array(OffsetFetchResponseGroup), "8+")
