"""DescribeLogDirs, versions 1 to 5: what partitions take up in the data directory (KIP-113).

Version 3 added an error code for the whole answer, 4 the size and free space of the volume (KIP-827), 5
whether the directory is cordoned (KIP-1066), which one directory cannot be. Partitions that do not exist are
left out, as by Kafka. No lag and no future replicas: there are no followers and there is one directory.
"""

import os
from collections.abc import Iterable

import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import DESCRIBE_CLUSTER, refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.topics import Partition
from leafcuttr.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from leafcuttr.wire.primitives import LONG_MAX


async def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    if (refused := refusal(broker, context, DESCRIBE_CLUSTER)) is not None:
        return DescribeLogDirsResponse(error_code=refused.code)
    directory = broker.logs.directory
    topics = [
        DescribeLogDirsTopic(
            name=name,
            partitions=[
                DescribeLogDirsPartition(partition_index=part.index, partition_size=part.log.size)
                for part in partitions
            ],
        )
        for name, partitions in _requested(broker, request)
        if partitions
    ]
    try:
        # A volume that does not answer must not hold up everybody.
        volume = await trio.to_thread.run_sync(os.statvfs, directory)
    except OSError:
        result = DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=str(directory))
    else:
        result = DescribeLogDirsResult(
            log_dir=str(directory),
            topics=topics,
            # As Java's File says it, which does not wrap: a network file system may be larger than a long.
            total_bytes=min(volume.f_blocks * volume.f_frsize, LONG_MAX),
            usable_bytes=min(volume.f_bavail * volume.f_frsize, LONG_MAX),
        )
    return DescribeLogDirsResponse(results=[result])


def _requested(broker: Broker, request: DescribeLogDirsRequest) -> Iterable[tuple[str, list[Partition]]]:
    if request.topics is None:
        for topic in broker.topics.by_name.values():
            yield topic.name, topic.partitions
        return
    wanted: dict[str, dict[int, None]] = {}
    for requested in request.topics:
        wanted.setdefault(requested.topic, {}).update(dict.fromkeys(requested.partitions))
    for name, indexes in wanted.items():
        found = broker.topics.find(name)
        if found is not None:
            yield name, [found.partitions[index] for index in indexes if 0 <= index < len(found.partitions)]
