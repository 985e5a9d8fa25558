"""DescribeLogDirs: one data directory, and what is in it."""

import os
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from leafcuttr.wire.records import Record, encode_batch
from support.logs import append


@pytest.mark.parametrize("version", range(1, 6))
async def test_every_version_tells_sizes(broker: Broker, send: Any, version: int) -> None:
    topic = await broker.topics.create("orders", 2, {})
    await broker.topics.create("events", 1, {})
    now = broker.clock.now_ms()
    batch = encode_batch([Record(0, now, b"k", b"v" * 1000)])
    append(topic.partitions[1].log, batch, now)

    answer = await send(DescribeLogDirsRequest(topics=None), version)

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


async def test_only_requested_partitions_that_exist(broker: Broker, send: Any) -> None:
    await broker.topics.create("orders", 2, {})
    requested = [
        DescribableLogDirTopic(topic="orders", partitions=[1, 9, -1, 1]),
        DescribableLogDirTopic(topic="missing", partitions=[0]),
        DescribableLogDirTopic(topic="orders", partitions=[1]),
    ]
    answer = await send(DescribeLogDirsRequest(topics=requested), 4)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in answer.results[0].topics] == [
        ("orders", [1])
    ]
    for none in ([], [DescribableLogDirTopic(topic="orders")]):
        answer = await send(DescribeLogDirsRequest(topics=none), 4)
        assert [list(result.topics) for result in answer.results] == [[]]


async def test_a_volume_larger_than_a_long(
    broker: Broker, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some network file systems say it of themselves."""
    real = os.statvfs(broker.logs.directory)

    def endless(path: object) -> os.statvfs_result:
        return os.statvfs_result((4096, 4096, 2**64 - 1, 2**64 - 1, 2**64 - 1, *real[5:]))

    monkeypatch.setattr(os, "statvfs", endless)
    (directory,) = (await send(DescribeLogDirsRequest(topics=None), 4)).results
    assert (directory.total_bytes, directory.usable_bytes) == (2**63 - 1, 2**63 - 1)
