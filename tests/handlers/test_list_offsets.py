"""ListOffsets: the special times, and which leader epochs a client may name."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from support.logs import NOW, append, append_marker, batch


def asking(timestamp: int, epoch: int = -1, partition: int = 0) -> ListOffsetsRequest:
    part = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[part])])


async def answered(send: Any, request: ListOffsetsRequest, version: int = 11) -> Any:
    (topic,) = (await send(request, version)).topics
    (part,) = topic.partitions
    return part


@pytest.fixture
async def log(broker: Broker) -> Any:
    """Offsets 2 to 5 at NOW + 2 to NOW + 5, but the largest timestamp is that of offset 4; leader epoch 5."""
    topic = await broker.topics.create("t", 1, {})
    log = topic.partitions[0].log
    log.leader_epoch = 5
    for number in range(6):
        append(log, batch(timestamp=NOW + (9 if number == 4 else number)), NOW)
    log.delete_records_before(2)
    return log


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (-1, 6, 5)),
        (-2, (-1, 2, 5)),
        (-3, (NOW + 9, 4, 5)),
        (-4, (-1, 2, 5)),
        (-5, (-1, -1, -1)),
        (-6, (-1, -1, -1)),
        (0, (NOW + 2, 2, 5)),
        (NOW + 3, (NOW + 3, 3, 5)),
        (NOW + 4, (NOW + 9, 4, 5)),
        (NOW + 9, (NOW + 9, 4, 5)),
        (NOW + 10, (-1, -1, -1)),
    ],
)
async def test_what_a_time_stands_for(
    send: Any, log: Any, timestamp: int, found: tuple[int, int, int]
) -> None:
    answer = await answered(send, asking(timestamp))
    assert (answer.error_code, (answer.timestamp, answer.offset, answer.leader_epoch)) == (0, found)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)])
async def test_a_special_time_is_refused_before_its_version(
    send: Any, log: Any, timestamp: int, since: int
) -> None:
    assert (await answered(send, asking(timestamp), since - 1)).error_code == ErrorCode.UNSUPPORTED_VERSION
    if since <= 11:
        assert (await answered(send, asking(timestamp), since)).error_code == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("timestamp", [-1, -2, -3, -4, -5, NOW])
@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, ErrorCode.NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_the_leader_epoch_that_a_client_knows(
    send: Any, log: Any, timestamp: int, epoch: int, error: ErrorCode
) -> None:
    answer = await answered(send, asking(timestamp, epoch))
    assert answer.error_code == error
    if error:
        assert (answer.timestamp, answer.offset, answer.leader_epoch) == (-1, -1, -1)


@pytest.mark.parametrize("timestamp", [-3, 0, NOW])
async def test_what_an_open_transaction_holds_is_no_answer(broker: Broker, send: Any, timestamp: int) -> None:
    """For a read_committed client, whatever it searches for; the largest timestamp is looked for in all of the log."""
    log = (await broker.topics.create("t", 1, {})).partitions[0].log
    append(log, batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True), NOW)
    plain = asking(timestamp)
    committed = ListOffsetsRequest(topics=plain.topics, isolation_level=1)
    assert (await answered(send, plain)).offset == 0
    answer = await answered(send, committed)
    assert (answer.error_code, answer.timestamp, answer.offset) == (0, -1, -1)
    append_marker(log, 1, 0, commit=True, coordinator_epoch=0)
    assert (await answered(send, committed)).offset == 0


async def test_a_partition_that_is_named_twice_is_refused_once(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 3, {})
    parts = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in (0, 1, 0, 2, 0)]
    other = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=2, timestamp=-2)])
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=parts), other])
    first, second = (await send(request, 11)).topics
    invalid = ErrorCode.INVALID_REQUEST
    found = [(part.partition_index, part.error_code) for part in first.partitions]
    assert found == [(0, invalid), (1, 0), (2, invalid)]
    assert [(part.partition_index, part.error_code) for part in second.partitions] == [(2, invalid)]


@pytest.mark.parametrize("timestamp", [-1, -2, -3, NOW])
async def test_an_offline_partition_says_nothing_of_its_offsets(send: Any, log: Any, timestamp: int) -> None:
    """What it knows of them may be old: a consumer would jump."""
    log.take_offline("a test")
    answer = await answered(send, asking(timestamp))
    assert (answer.error_code, answer.offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)


async def test_read_committed_offsets_end_at_the_last_stable_one(broker: Broker, send: Any) -> None:
    log = (await broker.topics.create("t", 1, {})).partitions[0].log
    append(log, batch())
    append(
        log, batch(timestamp=NOW + 1, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    )

    async def offset(timestamp: int, committed: int) -> int:
        part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=committed,
            topics=[ListOffsetsTopic(name="t", partitions=[part])],
        )
        found: int = (await send(request, 7)).topics[0].partitions[0].offset
        return found

    assert [await offset(-1, 0), await offset(-1, 1)] == [2, 1]
    assert [await offset(-2, 1), await offset(NOW, 1)] == [0, 0]
    assert await offset(NOW + 1, 0) == 1
    assert await offset(NOW + 1, 1) == -1, "what is not decided is not found"
    append_marker(log, 1, 0, commit=True, coordinator_epoch=0, now_ms=NOW)
    assert [await offset(-1, 1), await offset(NOW + 1, 1)] == [3, 1]
