"""The log directories of a broker, and what each partition takes in them (KIP-113).

Versions:
- 2: flexible.
- 3: top-level error.
- 4: total and usable bytes of the volume (KIP-827).
- 5: whether the directory is cordoned.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class DescribableLogDirTopic:
    topic: str = field(STRING, "0+")
    partitions: Sequence[int] = field(array(INT32), "0+")


@message("1-5", flexible="2+")
class DescribeLogDirsRequest:
    topics: Sequence[DescribableLogDirTopic] | None = field(
        array(DescribableLogDirTopic), "0+", nullable="0+"
    )


@struct
class DescribeLogDirsPartition:
    partition_index: int = field(INT32, "0+")
    partition_size: int = field(INT64, "0+")
    offset_lag: int = field(INT64, "0+")
    is_future_key: bool = field(BOOL, "0+")


@struct
class DescribeLogDirsTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[DescribeLogDirsPartition] = field(array(DescribeLogDirsPartition), "0+")


@struct
class DescribeLogDirsResult:
    error_code: int = field(INT16, "0+")
    log_dir: str = field(STRING, "0+")
    topics: Sequence[DescribeLogDirsTopic] = field(array(DescribeLogDirsTopic), "0+")
    total_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
    usable_bytes: int = field(INT64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = field(BOOL, "5+", ignorable=True)


@message("1-5", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "3+", ignorable=True)
    results: Sequence[DescribeLogDirsResult] = field(array(DescribeLogDirsResult), "0+")
