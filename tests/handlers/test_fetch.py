"""How much one Fetch gets, when it need not wait, which leader epochs it may name, and what a session leaves out."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import ErrorCode
from leafcuttr.handlers import fetch
from leafcuttr.handlers.context import RequestContext, context_of
from leafcuttr.log.files.region import FileRegion
from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from support.logs import NOW, append, batch

SIZE = len(batch(size=1000))
BATCHES = 5
MANY = 1 << 20


async def filled(broker: Broker, partitions: int = 3) -> None:
    """A topic whose partitions have five batches each, and an index that knows nothing of them."""
    topic = await broker.topics.create("t", partitions, {})
    for partition in topic.partitions:
        for _ in range(BATCHES):
            append(partition.log, batch(size=1000), NOW)


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


def context(version: int) -> RequestContext:
    listener = Listener("PLAINTEXT", "127.0.0.1", 9092, "broker.test", 19092)
    found = context_of(listener, "127.0.0.1", 50_000, 1)
    found.api_version = version
    return found


def fetched(broker: Broker, request: FetchRequest, version: int = 12) -> FetchResponse:
    answer = fetch.handle(broker, context(version), request)
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


def long(*offsets: int, **fields: Any) -> FetchRequest:
    """One that may wait: `fetched` refuses it if it does."""
    return asking(*offsets, **{"max_wait_ms": 10_000, **fields})


async def test_min_bytes_are_enough(broker: Broker) -> None:
    await filled(broker, 2)
    assert got(broker, long(4, 3, min_bytes=3 * SIZE)) == [1, 2]
    waiting = fetch.handle(broker, context(12), long(4, 3, min_bytes=3 * SIZE + 1))
    assert not isinstance(waiting, FetchResponse)
    with trio.move_on_after(0) as none:
        none.cancel()
        await waiting


async def test_an_error_of_one_partition_ends_the_wait(broker: Broker) -> None:
    await filled(broker, 2)
    answer = fetched(broker, long(BATCHES, BATCHES, BATCHES))
    assert [part.error_code for part in answer.responses[0].partitions] == [
        *(ErrorCode.NONE, ErrorCode.NONE),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    unknown = answer.responses[0].partitions[2]
    assert (unknown.high_watermark, unknown.aborted_transactions, unknown.records) == (-1, (), b"")


async def test_a_fetch_of_no_partition_does_not_wait(broker: Broker) -> None:
    await filled(broker)
    assert fetched(broker, long()).responses == []


@pytest.mark.parametrize(
    ("version", "follower"), [(12, {"replica_id": 0}), (15, {"replica_state": ReplicaState(replica_id=0)})]
)
async def test_a_fetch_of_a_follower_is_refused(
    broker: Broker, version: int, follower: dict[str, Any]
) -> None:
    await filled(broker, 1)
    topic = broker.topics.by_name["t"]
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MANY)
    requested = [FetchTopic(topic="t", topic_id=topic.id, partitions=[part])]
    request = FetchRequest(topics=requested, max_bytes=MANY, max_wait_ms=0, session_epoch=-1, **follower)
    (answer,) = fetched(broker, request, version).responses[0].partitions
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not answer.records


async def test_of_a_partition_that_is_named_twice_the_last_one_counts(broker: Broker) -> None:
    await filled(broker, 1)
    parts = [
        FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=MANY) for offset in (0, 1, 3)
    ]
    request = FetchRequest(
        topics=[FetchTopic(topic="t", partitions=parts)], max_bytes=MANY, max_wait_ms=0, session_epoch=-1
    )
    assert got(broker, request) == [2]


async def test_what_is_read_is_counted(broker: Broker) -> None:
    await filled(broker, 2)
    first, second = broker.topics.by_name["t"].partitions
    got(broker, asking(1, 3, partition_max_bytes=2 * SIZE))
    assert [(part.log.records_out, part.log.bytes_out) for part in (first, second)] == [(2, 2 * SIZE)] * 2


async def in_session(broker: Broker) -> Callable[..., list[Any]]:
    """A session of two partitions whose client has all there is; how to send for news."""
    await filled(broker, 2)
    begun = fetched(broker, asking(BATCHES, BATCHES, session_epoch=0))
    epoch = 0

    def news(**fields: Any) -> list[Any]:
        nonlocal epoch
        epoch += 1
        session = {"session_id": begun.session_id, "session_epoch": epoch, "max_wait_ms": 0}
        answer = fetched(broker, FetchRequest(max_bytes=MANY, min_bytes=1, **session, **fields))
        assert answer.error_code == 0
        return [part for topic in answer.responses for part in topic.partitions]

    return news


async def test_a_session_tells_only_what_is_new(broker: Broker) -> None:
    news = await in_session(broker)
    first, second = (part.log for part in broker.topics.by_name["t"].partitions)
    assert news() == []
    first.delete_records_before(2)
    assert [(part.partition_index, part.log_start_offset) for part in news()] == [(0, 2)]
    assert news() == []
    append(second, batch(size=1000), NOW)
    assert [(part.partition_index, part.high_watermark, size(part.records)) for part in news()] == [
        (1, BATCHES + 1, SIZE)
    ]
    second.take_offline("a test")
    assert [(part.partition_index, part.error_code) for part in news()] == [
        (1, ErrorCode.KAFKA_STORAGE_ERROR)
    ]


async def test_a_session_tells_of_a_high_watermark_that_its_client_does_not_read(broker: Broker) -> None:
    """A read_committed client behind an open transaction stands still, and what is written behind it is news."""
    news = await in_session(broker)
    log = broker.topics.by_name["t"].partitions[0].log
    open_transaction = batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    append(log, open_transaction, NOW)
    assert [part.high_watermark for part in news(isolation_level=1)] == [BATCHES + 1]
    assert news(isolation_level=1) == []
    append(log, batch(), NOW)
    assert [part.high_watermark for part in news(isolation_level=1)] == [BATCHES + 2]


@pytest.mark.parametrize(
    ("last", "offset", "diverging"),
    [
        (5, BATCHES, (-1, -1)),
        (-1, BATCHES, (-1, -1)),
        (3, 2, (2, 3)),  # an epoch that there never was: where the one before it ended
        (2, 3, (-1, -1)),
        (2, 4, (2, 3)),  # the client has more of that epoch than there is
        (6, BATCHES, None),
    ],
)
@pytest.mark.parametrize("by_session", [False, True])
async def test_a_diverging_epoch_ends_the_wait(
    broker: Broker, last: int, offset: int, diverging: tuple[int, int] | None, by_session: bool
) -> None:
    """KIP-595; the log is as Kafka leaves it after an election: epoch 2 up to offset 3, then epoch 5."""
    await filled(broker, 1)
    log = broker.topics.by_name["t"].partitions[0].log
    log.leader_epoch = 5
    (log.directory / LEADER_EPOCHS).write_text("0\n2\n2 0\n5 3\n")
    session: dict[str, Any] = {}
    if by_session:
        begun = fetched(broker, asking(BATCHES, session_epoch=0))
        session = {"session_id": begun.session_id, "session_epoch": 1}
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=MANY, last_fetched_epoch=last)
    topics = [FetchTopic(topic="t", partitions=[part])]
    parts = diverging not in (None, (-1, -1))
    wait_ms = 10_000 if parts or diverging is None else 0
    request = FetchRequest(
        topics=topics, max_bytes=MANY, min_bytes=1, max_wait_ms=wait_ms, **{"session_epoch": -1, **session}
    )
    answers = [part for topic in fetched(broker, request).responses for part in topic.partitions]
    if diverging is None:
        assert [part.error_code for part in answers] == [ErrorCode.OFFSET_OUT_OF_RANGE]
    elif parts:
        (answer,) = answers
        assert (answer.error_code, size(answer.records)) == (0, 0)
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == diverging
    else:
        assert all(part.diverging_epoch.epoch == -1 for part in answers)
        assert sum(size(part.records) for part in answers) == (BATCHES - offset) * SIZE


async def test_answers_hold_a_bounded_number_of_files(broker: Broker) -> None:
    """However many partitions are asked for, and however many answers wait for their peers. Each answer has records of
    one partition at least, so every reader gets on."""
    await filled(broker, 6)
    broker.logs._pool.limit = 2
    for _ in range(2):
        while broker.logs._pool.release_one():
            pass
        held = [fetched(broker, asking(*[0] * 6)) for _ in range(3)]
        records = [[bool(size(part.records)) for part in one.responses[0].partitions] for one in held]
        # Two files are kept open, and two others may be.
        assert records == [[True] * 4 + [False] * 2, [True] + [False] * 5, [True] + [False] * 5]
        assert broker.logs.holds_many_files
        assert {part.error_code for one in held for part in one.responses[0].partitions} == {0}
        assert got(broker, asking(MANY, 0)) == [0, BATCHES], "the first that has any"
        held.clear()
        assert not broker.logs.holds_many_files
