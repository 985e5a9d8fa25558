"""How much one Fetch gets, and which leader epochs it may name."""

from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.handlers import fetch
from leafcuttr.handlers.context import RequestContext
from leafcuttr.log.files import FileRegion
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from support.logs import NOW, batch

SIZE = len(batch(size=1000))
BATCHES = 5
MANY = 1 << 20


async def filled(broker: Broker, partitions: int = 3) -> None:
    """A topic whose partitions have five batches each, and an index that knows nothing of them."""
    topic = await broker.topics.create("t", partitions, {})
    for partition in topic.partitions:
        for _ in range(BATCHES):
            partition.log.append(batch(size=1000), NOW)


def asking(
    *offsets: int, partition_max_bytes: int = MANY, max_bytes: int = MANY, epoch: int = -1, **fields: Any
) -> FetchRequest:
    """Partition 0 from the first of these offsets on, partition 1 from the second, and so on."""
    parts = [
        FetchPartition(
            partition=number,
            fetch_offset=offset,
            partition_max_bytes=partition_max_bytes,
            current_leader_epoch=epoch,
        )
        for number, offset in enumerate(offsets)
    ]
    own = {"min_bytes": 1, "session_epoch": -1, "max_wait_ms": 0}
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=parts)], max_bytes=max_bytes, **own | fields)


def fetched(broker: Broker, request: FetchRequest, version: int = 12) -> FetchResponse:
    listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "broker.test", 19092)
    answer = fetch.handle(broker, RequestContext(listener, "127.0.0.1", 1, api_version=version), request)
    assert isinstance(answer, FetchResponse)
    return answer


def size(records: Any) -> int:
    return len(records.read()) if isinstance(records, FileRegion) else len(records)


def got(broker: Broker, request: FetchRequest) -> list[int]:
    """How many whole batches of each partition, in the order of the answer."""
    sizes = [size(each.records) for topic in fetched(broker, request).responses for each in topic.partitions]
    assert all(each % SIZE == 0 for each in sizes)
    return [each // SIZE for each in sizes]


@pytest.mark.parametrize(
    ("most", "batches"),
    [
        (3 * BATCHES * SIZE, [5, 5, 5]),
        (3 * BATCHES * SIZE - 1, [5, 5, 4]),
        (7 * SIZE, [5, 2, 0]),
        (5 * SIZE, [5, 0, 0]),
        (5 * SIZE - 1, [4, 0, 0]),
        (SIZE, [1, 0, 0]),
        (1, [1, 0, 0]),
        (0, [1, 0, 0]),
    ],
)
async def test_max_bytes_is_for_all_partitions_together(
    broker: Broker, most: int, batches: list[int]
) -> None:
    """But a consumer gets on in any case: the first partition with records gives at least one batch (KIP-74)."""
    await filled(broker)
    assert got(broker, asking(0, 0, 0, max_bytes=most)) == batches


@pytest.mark.parametrize(
    ("most", "batches"),
    [
        (BATCHES * SIZE, [5, 5, 5]),
        (BATCHES * SIZE - 1, [4, 4, 4]),
        (2 * SIZE, [2, 2, 2]),
        (SIZE - 1, [1, 0, 0]),
        (0, [1, 0, 0]),
    ],
)
async def test_partition_max_bytes_is_for_each_of_them(broker: Broker, most: int, batches: list[int]) -> None:
    await filled(broker)
    assert got(broker, asking(0, 0, 0, partition_max_bytes=most)) == batches


async def test_the_smaller_of_both_holds(broker: Broker) -> None:
    await filled(broker)
    assert got(broker, asking(0, 0, 0, partition_max_bytes=2 * SIZE, max_bytes=5 * SIZE)) == [2, 2, 1]
    assert got(broker, asking(0, 0, 0, partition_max_bytes=2 * SIZE, max_bytes=SIZE)) == [1, 0, 0]


async def test_a_partition_without_records_takes_nothing_from_the_others(broker: Broker) -> None:
    """The one that gives a batch in any case is the first that has any."""
    await filled(broker)
    assert got(broker, asking(BATCHES, 0, 0, max_bytes=1)) == [0, 1, 0]


async def test_the_brokers_limit_holds_too(open_test_broker: Callable[..., Broker]) -> None:
    broker = open_test_broker({"fetch.max.bytes": str(7 * SIZE)})
    await filled(broker)
    assert got(broker, asking(0, 0, 0)) == [5, 2, 0]


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (-1, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2**31 - 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
@pytest.mark.parametrize("at_the_end", [False, True])
async def test_the_leader_epoch_that_a_client_knows(
    broker: Broker, epoch: int, error: ErrorCode, at_the_end: bool
) -> None:
    """KIP-320. A client that has all there is hears of it too, and so does one of a session that has no news."""
    await filled(broker, 2)
    broker.topics.by_name["t"].partitions[0].log.leader_epoch = 5
    offset = BATCHES if at_the_end else 0
    (answer,) = fetched(broker, asking(offset, epoch=epoch)).responses[0].partitions
    assert answer.error_code == error
    assert bool(size(answer.records)) == (not error and not at_the_end)
    begun = fetched(broker, asking(BATCHES, epoch=5, session_epoch=0)).session_id
    assert begun
    changed = asking(offset, epoch=epoch, session_id=begun, session_epoch=1)
    answers = [part.error_code for topic in fetched(broker, changed).responses for part in topic.partitions]
    assert answers == ([] if at_the_end and not error else [error])
