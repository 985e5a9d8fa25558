"""DeleteRecords, versions 0 to 2: move the log start offset of partitions up (KIP-107). Versions differ in
encoding only.

-1 means everything there is. The low watermark of the answer is the log start offset, as there are no
followers that could lag behind. It is durable before it is answered, with one write for all partitions of a
request: if that fails, those whose start has moved are answered with KAFKA_STORAGE_ERROR. A partition of an
internal topic is an INVALID_TOPIC_EXCEPTION, one of a topic that belongs to a plugin a TOPIC_AUTHORIZATION_FAILED, one
of a topic that is compacted and not deleted from a POLICY_VIOLATION. The timeout has no use: nothing is waited for.
"""

from typing import Final

from leafcuttr.errors import (
    BrokerError,
    ErrorCode,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    StorageError,
)
from leafcuttr.handlers.access import DELETE_TOPIC, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.topic_owners import check_owner
from leafcuttr.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from leafcuttr_sdk import TopicPartition

HIGH_WATERMARK: Final = -1


async def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    # The last offset counts for a partition that is named twice, and a topic is in the answer once.
    requested: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            requested.setdefault(topic.name, {})[partition.partition_index] = partition.offset
    pace = Pace()
    results: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for name, offsets in requested.items():
        allowed = may(broker, context, DELETE_TOPIC, name)
        results[name] = [
            _delete(broker, name, index, offset) if allowed else _refused(index, DELETE_TOPIC.error)
            async for index, offset in pace.over(offsets.items())
        ]
    if any(part.low_watermark > 0 for parts in results.values() for part in parts):
        try:
            await broker.logs.keep_log_starts()
        except StorageError as error:
            results = {name: [_not_kept(part, error) for part in parts] for name, parts in results.items()}
    return DeleteRecordsResponse(
        topics=[DeleteRecordsTopicResult(name=name, partitions=parts) for name, parts in results.items()]
    )


def _not_kept(part: DeleteRecordsPartitionResult, error: StorageError) -> DeleteRecordsPartitionResult:
    if part.low_watermark <= 0:
        return part
    return _refused(part.partition_index, error.code)


def _refused(index: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)


def _delete(broker: Broker, name: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = move_log_start(broker, TopicPartition(name, index), offset)
    except BrokerError as error:
        return _refused(index, error.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def move_log_start(
    broker: Broker, topic_partition: TopicPartition, offset: int, *, plugin: str | None = None
) -> int:
    """Move it up to `offset`, in memory; where it is then. A `plugin` may do so in an internal topic too. Raises
    UnknownTopicOrPartition, TopicAuthorizationFailed, InvalidTopic, StorageError, PolicyViolation,
    OffsetOutOfRange."""
    partition = broker.topics.partition(topic_partition)
    log = partition.log
    check_owner(partition.topic, plugin)
    if partition.topic.internal and plugin is None:
        raise InvalidTopic
    if log.offline is not None:
        raise StorageError
    if log.config.compact and not log.config.delete:
        raise PolicyViolation
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise OffsetOutOfRange
    return log.delete_records_before(offset)
