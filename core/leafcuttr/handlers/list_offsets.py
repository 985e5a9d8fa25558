"""ListOffsets, versions 1 to 11: the offset for a time, or for one of the special times.

Version 2 added the isolation level, 4 the leader epoch (KIP-320), 6 is flexible, 7 the offset of the largest timestamp
(-3, KIP-734), 8 the earliest local offset (-4, KIP-405), 9 the last tiered offset (-5, KIP-1005), 10 a timeout, 11 the
earliest offset that waits for upload (-6, KIP-1023). There is no tiered storage here: the earliest local offset is
the log start offset, and -5 and -6 have no answer (offset -1). With read_committed the log ends at the last stable
offset, and what a search finds from there on is no answer. What a search needs and the page cache lacks is read in by
a worker thread first.
"""

from typing import Final

from leafcuttr.errors import (
    BrokerError,
    ErrorCode,
    FencedLeaderEpoch,
    StorageError,
    UnknownLeaderEpoch,
    UnsupportedVersion,
)
from leafcuttr.handlers.access import DESCRIBE_TOPIC, may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.state.topics import Partition
from leafcuttr.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from leafcuttr_sdk import TopicPartition

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
# The first version that may request each special time.
_SINCE: Final = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}
_READ_COMMITTED: Final = 1


async def handle(broker: Broker, context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    committed = request.isolation_level == _READ_COMMITTED
    pace = Pace()
    requested_twice = await _requested_twice(request, pace)
    topics: list[ListOffsetsTopicResponse] = []
    unseen: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        if not may(broker, context, DESCRIBE_TOPIC, topic.name):
            denied = [
                _failure(item.partition_index, DESCRIBE_TOPIC.error)
                async for item in pace.over(topic.partitions)
            ]
            unseen.append(ListOffsetsTopicResponse(name=topic.name, partitions=denied))
            continue
        answers: list[ListOffsetsPartitionResponse] = []
        refused: set[int] = set()
        for item in topic.partitions:
            await pace.turn()
            tp = TopicPartition(topic.name, item.partition_index)
            try:
                if tp in requested_twice:
                    if item.partition_index not in refused:
                        refused.add(item.partition_index)
                        answers.append(_failure(item.partition_index, ErrorCode.INVALID_REQUEST))
                else:
                    answers.append(
                        await _offset(broker.topics.partition(tp), item, committed, context.api_version)
                    )
            except BrokerError as error:
                answers.append(_failure(item.partition_index, error.code))
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics + unseen)


async def _offset(
    partition: Partition, item: ListOffsetsPartition, committed: bool, version: int
) -> ListOffsetsPartitionResponse:
    log, epoch = partition.log, item.current_leader_epoch
    if log.offline is not None:
        raise StorageError(log.offline)  # what it knows of its offsets may be old: a consumer would jump
    if 0 <= epoch < partition.leader_epoch:
        raise FencedLeaderEpoch
    if epoch > partition.leader_epoch:
        raise UnknownLeaderEpoch
    timestamp = item.timestamp
    if timestamp < _EARLIEST_PENDING_UPLOAD or version < _SINCE.get(timestamp, 0):
        raise UnsupportedVersion
    end = log.last_stable_offset if committed else log.high_watermark
    found: tuple[int, int, int] | None
    match timestamp:
        case -1:
            found = (-1, end, log.leader_epoch)
        case -2 | -4:
            found = (-1, log.log_start_offset, log.leader_epoch)
        case -5 | -6:
            found = None
        case -3:
            found = await log.max_timestamp_offset()
        case _:
            found = await log.offset_for_timestamp(timestamp)
    searched = timestamp >= 0 or timestamp == _MAX_TIMESTAMP
    if found is None or (searched and found[1] >= end):
        return ListOffsetsPartitionResponse(partition_index=item.partition_index)
    return ListOffsetsPartitionResponse(
        partition_index=item.partition_index, timestamp=found[0], offset=found[1], leader_epoch=found[2]
    )


async def _requested_twice(request: ListOffsetsRequest, pace: Pace) -> set[TopicPartition]:
    seen: set[TopicPartition] = set()
    twice: set[TopicPartition] = set()
    for topic in request.topics:
        async for item in pace.over(topic.partitions):
            tp = TopicPartition(topic.name, item.partition_index)
            (twice if tp in seen else seen).add(tp)
    return twice


def _failure(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)
