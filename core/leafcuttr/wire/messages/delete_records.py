"""Raise the log start offset of partitions: delete all records before an offset (KIP-107).

An offset of -1 stands for the high watermark.

Versions:
- 2: flexible.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class DeleteRecordsPartition:
    partition_index: int = field(INT32, "0+")
    offset: int = field(INT64, "0+")


@struct
class DeleteRecordsTopic:
    name: str = field(STRING, "0+")
    partitions: Sequence[DeleteRecordsPartition] = field(array(DeleteRecordsPartition), "0+")


@message("0-2", flexible="2+")
class DeleteRecordsRequest:
    topics: Sequence[DeleteRecordsTopic] = field(array(DeleteRecordsTopic), "0+")
    timeout_ms: int = field(INT32, "0+")


@struct
class DeleteRecordsPartitionResult:
    partition_index: int = field(INT32, "0+")
    low_watermark: int = field(INT64, "0+")
    error_code: int = field(INT16, "0+")


@struct
class DeleteRecordsTopicResult:
    name: str = field(STRING, "0+")
    partitions: Sequence[DeleteRecordsPartitionResult] = field(array(DeleteRecordsPartitionResult), "0+")


@message("0-2", flexible="2+")
class DeleteRecordsResponse:
    throttle_time_ms: int = field(INT32, "0+")
    topics: Sequence[DeleteRecordsTopicResult] = field(array(DeleteRecordsTopicResult), "0+")
