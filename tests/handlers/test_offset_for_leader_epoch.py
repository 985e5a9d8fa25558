"""OffsetForLeaderEpoch: where an epoch ended, and which epoch of its own a client may name (KIP-320)."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.logs import NOW, append, batch


@pytest.fixture
async def log(broker: Broker) -> Any:
    """As Kafka leaves it after two elections: epochs 2, 4 and 5, of three offsets each; the log begins at 1."""
    topic = await broker.topics.create("t", 1, {})
    log = topic.partitions[0].log
    for epoch in (2, 4, 5):
        log.leader_epoch = epoch
        append(log, batch(3), NOW)
    (log.directory / LEADER_EPOCHS).write_text("0\n3\n2 0\n4 3\n5 6\n")
    log.delete_records_before(1)
    return log


async def answered(send: Any, epoch: int, current: int = -1, version: int = 4, partition: int = 0) -> Any:
    part = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[part])])
    (topic,) = (await send(request, version)).topics
    (answer,) = topic.partitions
    assert (topic.topic, answer.partition) == ("t", partition)
    return answer


@pytest.mark.one_in(2)
@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "found"),
    [
        (5, (5, 9)),
        (4, (4, 6)),
        (3, (2, 3)),
        (2, (2, 3)),
        (1, (1, 1)),  # before all that is known: where the log begins
        (6, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
async def test_where_an_epoch_ends(
    send: Any, log: Any, epoch: int, found: tuple[int, int], version: int
) -> None:
    answer = await answered(send, epoch, version=version)
    assert (answer.error_code, (answer.leader_epoch, answer.end_offset)) == (0, found)


@pytest.mark.parametrize(
    ("current", "error"),
    [
        (-1, ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_the_leader_epoch_that_a_client_knows(
    send: Any, log: Any, current: int, error: ErrorCode
) -> None:
    answer = await answered(send, 4, current)
    assert answer.error_code == error
    assert (answer.leader_epoch, answer.end_offset) == ((-1, -1) if error else (4, 6))


async def test_a_partition_that_is_not_there(send: Any, log: Any) -> None:
    answer = await answered(send, 4, partition=1)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
