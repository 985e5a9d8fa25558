"""Add partitions to topics (KIP-195).

Versions:
- 2: flexible.
- 3: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, STRING, array, field, message, struct


@struct
class CreatePartitionsAssignment:
    broker_ids: Sequence[int] = field(array(INT32), "0+")


@struct
class CreatePartitionsTopic:
    name: str = field(STRING, "0+")
    count: int = field(INT32, "0+")
    assignments: Sequence[CreatePartitionsAssignment] | None = field(
        array(CreatePartitionsAssignment), "0+", nullable="0+"
    )


@message("0-3", flexible="2+")
class CreatePartitionsRequest:
    topics: Sequence[CreatePartitionsTopic] = field(array(CreatePartitionsTopic), "0+")
    timeout_ms: int = field(INT32, "0+")
    validate_only: bool = field(BOOL, "0+")


@struct
class CreatePartitionsTopicResult:
    name: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+", default=None)


@message("0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    results: Sequence[CreatePartitionsTopicResult] = field(array(CreatePartitionsTopicResult), "0+")
