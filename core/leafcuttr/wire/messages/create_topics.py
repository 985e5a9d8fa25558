"""Create topics, or only check whether they could be.

Versions:
- 2: throttle time.
- 4: -1 for partitions and replication factor means the broker's default (KIP-464).
- 5: flexible; the answer has the topic's settings (KIP-525).
- 6: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
- 7: topic id in the answer (KIP-516).

`topic_config_error_code` is a tagged field that says why the settings were left out.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT8, INT16, INT32, STRING, UUID, array, field, message, struct


@struct
class CreatableReplicaAssignment:
    partition_index: int = field(INT32, "0+")
    broker_ids: Sequence[int] = field(array(INT32), "0+")


@struct
class CreatableTopicConfig:
    name: str = field(STRING, "0+")
    value: str | None = field(STRING, "0+", nullable="0+")


@struct
class CreatableTopic:
    name: str = field(STRING, "0+")
    num_partitions: int = field(INT32, "0+")
    replication_factor: int = field(INT16, "0+")
    assignments: Sequence[CreatableReplicaAssignment] = field(array(CreatableReplicaAssignment), "0+")
    configs: Sequence[CreatableTopicConfig] = field(array(CreatableTopicConfig), "0+")


@message("2-7", flexible="5+")
class CreateTopicsRequest:
    topics: Sequence[CreatableTopic] = field(array(CreatableTopic), "0+")
    timeout_ms: int = field(INT32, "0+", default=60000)
    validate_only: bool = field(BOOL, "1+")


@struct
class CreatableTopicConfigs:
    name: str = field(STRING, "5+")
    value: str | None = field(STRING, "5+", nullable="5+")
    read_only: bool = field(BOOL, "5+")
    config_source: int = field(INT8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = field(BOOL, "5+")


@struct
class CreatableTopicResult:
    name: str = field(STRING, "0+")
    topic_id: bytes = field(UUID, "7+", ignorable=True)
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = field(INT16, "5+", tag=0, tagged="5+", ignorable=True)
    num_partitions: int = field(INT32, "5+", default=-1, ignorable=True)
    replication_factor: int = field(INT16, "5+", default=-1, ignorable=True)
    configs: Sequence[CreatableTopicConfigs] | None = field(
        array(CreatableTopicConfigs), "5+", nullable="5+", ignorable=True
    )


@message("2-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: int = field(INT32, "2+", ignorable=True)
    topics: Sequence[CreatableTopicResult] = field(array(CreatableTopicResult), "0+")
