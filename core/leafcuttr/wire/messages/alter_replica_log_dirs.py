"""Move replicas between the log directories of a broker (KIP-113).

Versions:
- 2: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, STRING, array, field, message, struct


@struct
class AlterReplicaLogDirTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[int] = field(array(INT32), "0+")


@struct
class AlterReplicaLogDir:
    path: str = field(STRING, "0+")
    topics: Sequence[AlterReplicaLogDirTopic] = field(array(AlterReplicaLogDirTopic), "0+")


@message("1-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    dirs: Sequence[AlterReplicaLogDir] = field(array(AlterReplicaLogDir), "0+")


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = field(STRING, "0+")
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = field(
        array(AlterReplicaLogDirPartitionResult), "0+"
    )


@message("1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    results: Sequence[AlterReplicaLogDirTopicResult] = field(array(AlterReplicaLogDirTopicResult), "0+")
