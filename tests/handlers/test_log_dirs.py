"""DescribeLogDirs and AlterReplicaLogDirs: one data directory, what is in it, and nowhere else to go."""

import os
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from leafcuttr.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append


@pytest.mark.parametrize("version", range(1, 6))
async def test_every_version_tells_sizes(broker: Broker, ask: Any, version: int) -> None:
    topic = await broker.topics.create("orders", 2, {})
    await broker.topics.create("events", 1, {})
    now = broker.clock.now_ms()
    batch = encode_batch([Record(0, now, b"k", b"v" * 1000)])
    append(topic.partitions[1].log, batch, now)

    answer = await ask(DescribeLogDirsRequest(topics=None), version)

    assert answer.error_code == ErrorCode.NONE
    (directory,) = answer.results
    assert (directory.error_code, directory.log_dir) == (ErrorCode.NONE, str(broker.logs.directory))
    sizes = {
        (found.name, part.partition_index): (part.partition_size, part.offset_lag, part.is_future_key)
        for found in directory.topics
        for part in found.partitions
    }
    assert sizes == {
        ("orders", 0): (0, 0, False),
        ("orders", 1): (len(batch), 0, False),
        ("events", 0): (0, 0, False),
    }
    assert not directory.is_cordoned
    volume = os.statvfs(broker.logs.directory)
    if version >= 4:
        assert directory.total_bytes == volume.f_blocks * volume.f_frsize
        assert 0 < directory.usable_bytes <= directory.total_bytes
    else:
        assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)


async def test_only_what_is_asked_for_and_there(broker: Broker, ask: Any) -> None:
    await broker.topics.create("orders", 2, {})
    asked = [
        DescribableLogDirTopic(topic="orders", partitions=[1, 9, -1, 1]),
        DescribableLogDirTopic(topic="missing", partitions=[0]),
        DescribableLogDirTopic(topic="orders", partitions=[1]),
    ]
    answer = await ask(DescribeLogDirsRequest(topics=asked), 4)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in answer.results[0].topics] == [
        ("orders", [1])
    ]
    for none in ([], [DescribableLogDirTopic(topic="orders")]):
        answer = await ask(DescribeLogDirsRequest(topics=none), 4)
        assert [list(result.topics) for result in answer.results] == [[]]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_replica_moves_nowhere(broker: Broker, ask: Any, version: int) -> None:
    await broker.topics.create("orders", 1, {})
    codes = {}
    for path in (str(broker.logs.directory), "/elsewhere", "relative"):
        asked = [
            AlterReplicaLogDirTopic(name="orders", partitions=[0, 9]),
            AlterReplicaLogDirTopic(name="missing", partitions=[0]),
        ]
        answer = await ask(
            AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=asked)]), version
        )
        codes[path] = {
            (topic.topic_name, part.partition_index): part.error_code
            for topic in answer.results
            for part in topic.partitions
        }
    assert codes.pop(str(broker.logs.directory)) == {
        ("orders", 0): ErrorCode.NONE,
        ("orders", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    for elsewhere in codes.values():
        assert set(elsewhere.values()) == {ErrorCode.LOG_DIR_NOT_FOUND}


async def test_a_volume_larger_than_a_long(broker: Broker, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some network file systems say it of themselves."""
    real = os.statvfs(broker.logs.directory)

    def endless(path: object) -> os.statvfs_result:
        return os.statvfs_result((4096, 4096, 2**64 - 1, 2**64 - 1, 2**64 - 1, *real[5:]))

    monkeypatch.setattr(os, "statvfs", endless)
    (directory,) = (await ask(DescribeLogDirsRequest(topics=None), 4)).results
    assert (directory.total_bytes, directory.usable_bytes) == (2**63 - 1, 2**63 - 1)
