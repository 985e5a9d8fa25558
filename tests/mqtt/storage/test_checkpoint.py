"""What is deleted from the queue and when; what is said again before; positions in Kafka topics."""

import logging
from collections.abc import Iterator
from unittest import mock

import pytest
import trio

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage import checkpoint
from leafcuttr_mqtt.storage.formats import Kind, decode_positions, kind_of
from leafcuttr_mqtt.storage.state import SessionRecord, StoredSession, record_number
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_sdk import Broker
from leafcuttr_sdk.errors import StorageError
from mqtt.storage.conftest import Start
from support.logs import HandClock
from support.waiting import eventually


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    """Whatever can be deleted is deleted, offset by offset."""
    with mock.patch.object(checkpoint, "TRUNCATE_BYTES", 1), mock.patch.object(checkpoint, "GROUP_BITS", 0):
        yield


async def opened(broker: Broker, *mapped: str) -> Store:
    store = Store(broker, mapped=lambda: mapped)
    await store.open()
    return store


async def turn(broker: Broker, store: Store) -> None:
    assert store.settle(await broker.append(store.batches()))
    await store._checkpoints.delete_due()


def begun(store: Store, name: str) -> StoredSession:
    stored = store.begin_session(name)
    store.note_session(SessionRecord(name, stored.number, 60))
    return stored


def queued(store: Store, sequence: int, *sessions: StoredSession, qos: int = 1) -> list[Delivery]:
    deliveries = [Delivery(None, qos, False, sequence=sequence) for _ in sessions]
    store.note_queued(Message("a", b"x", qos), list(zip(sessions, deliveries, strict=True)))
    return deliveries


def log_start(broker: Broker) -> int:
    info = broker.topics.get(QUEUE.topic)
    assert info is not None
    return info.partitions[0].log_start_offset


async def test_the_first_message_that_a_session_needs_stays(start: Start) -> None:
    broker = start()
    store = await opened(broker)
    one, two = begun(store, "one"), begun(store, "two")
    (first,) = queued(store, 0, one)
    second, third = queued(store, 1, one, two)
    await turn(broker, store)
    assert second.offset == third.offset == first.offset + 1
    store.note_delivered(one, first)
    await turn(broker, store)
    await turn(broker, store)
    assert log_start(broker) == second.offset
    store.note_delivered(one, second)
    await turn(broker, store)
    queued(store, 2, one)
    await turn(broker, store)
    assert log_start(broker) == third.offset
    store.note_released(two, third)
    await turn(broker, store)
    await turn(broker, store)
    assert log_start(broker) > third.offset


async def test_a_session_that_ends_needs_nothing(start: Start) -> None:
    broker = start()
    store = await opened(broker)
    one, two = begun(store, "one"), begun(store, "two")
    first = queued(store, 0, one)
    (second,) = queued(store, 0, two)
    await turn(broker, store)
    store.note_session_ended(one, first)
    await turn(broker, store)
    await turn(broker, store)
    assert log_start(broker) == second.offset


async def test_one_that_was_dropped_before_it_was_stored(start: Start) -> None:
    broker = start()
    store = await opened(broker)
    one = begun(store, "one")
    (first,) = queued(store, 0, one)
    store.note_delivered(one, first)
    await turn(broker, store)
    (second,) = queued(store, 1, one)
    await turn(broker, store)
    assert first.offset < 0 <= second.offset
    await turn(broker, store)
    queued(store, 2, one)
    await turn(broker, store)
    assert log_start(broker) == second.offset


async def test_nothing_is_deleted_before_it_is_worth_it(start: Start) -> None:
    broker = start()
    with mock.patch.object(checkpoint, "TRUNCATE_BYTES", 5_000):
        store = await opened(broker)
        one = begun(store, "one")
        for sequence in range(20):
            store.note_delivered(one, queued(store, sequence, one)[0])
            await turn(broker, store)
        assert log_start(broker) == 0
        for sequence in range(20, 100):
            store.note_delivered(one, queued(store, sequence, one)[0])
            await turn(broker, store)
        assert log_start(broker) > 30


async def test_the_state_is_said_again(start: Start) -> None:
    """Long after their records are deleted: sequences, what was released and what was received."""
    broker = start()
    store = await opened(broker)
    one, two = begun(store, "one"), begun(store, "two")
    (first,) = queued(store, 0, one, qos=2)
    store.note_received(one, 3 << 16 | 7)
    store.note_received(one, 4 << 16 | 8)
    await turn(broker, store)
    store.note_released(one, first)
    store.note_completed(one, 8)
    await turn(broker, store)
    before = log_start(broker)
    for sequence in range(5):
        store.note_delivered(two, queued(store, sequence, two)[0])
        await turn(broker, store)
    assert log_start(broker) > before + 5
    found = await Store(broker).open()
    session = next(each for each in found.sessions if each.record.client_id == "one")
    assert session.stored.released == {0}
    assert session.stored.received == {7: 3 << 16 | 7}
    assert session.stored.next_sequence == 1
    assert session.stored.next_number == (4 << 16 | 8) + 1


async def test_the_kafka_topics_of_a_message_are_said_again(start: Start) -> None:
    broker = start()
    store = await opened(broker, "k")
    one, two = begun(store, "one"), begun(store, "two")
    store.note_received(one, 7, ("k",))
    await turn(broker, store)
    for sequence in range(5):
        store.note_delivered(two, queued(store, sequence, two)[0])
        await turn(broker, store)
    found = await Store(broker).open()
    session = next(each for each in found.sessions if each.record.client_id == "one")
    assert session.unfinished[7].topics == {"k"}
    assert log_start(broker) > 3


async def test_run(start: Start) -> None:
    broker = start()
    store = await opened(broker)
    one = begun(store, "one")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        for sequence in range(3):
            (delivery,) = queued(store, sequence, one)
            assert store.settle(await broker.append(store.batches()))
            offset = delivery.offset
            store.note_delivered(one, delivery)
            assert store.settle(await broker.append(store.batches()))
            assert store.settle(await broker.append(store.batches()))
            await eventually(lambda at=offset: log_start(broker) > at, "the queue is shortened")
        nursery.cancel_scope.cancel()


async def test_a_deletion_that_fails(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """It is tried again after a later turn; nothing else is harmed."""
    broker = start()
    store = await opened(broker)
    one = begun(store, "one")
    (delivery,) = queued(store, 0, one)
    await turn(broker, store)
    offset = delivery.offset
    store.note_delivered(one, delivery)
    with mock.patch.object(broker.topics, "delete_records", side_effect=StorageError("the disk is full")):
        await turn(broker, store)
    assert log_start(broker) <= offset
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == [
        "__mqtt_queue cannot be shortened for now: the disk is full"
    ]
    await turn(broker, store)
    assert log_start(broker) > offset


# Retention


async def test_overtaken_by_retention(start: Start, clock: HandClock) -> None:
    broker = start()
    store = await opened(broker)
    one = begun(store, "one")
    deliveries = [queued(store, sequence, one)[0] for sequence in range(4)]
    await turn(broker, store)
    assert store.overtaken() is None
    await broker.topics.delete_records(QUEUE.topic, 0, deliveries[2].offset)
    clock.ms += checkpoint.START_MS
    await turn(broker, store)
    assert store.overtaken() == deliveries[2].offset
    assert store.overtaken() is None
    for delivery in deliveries[:2]:
        store.note_delivered(one, delivery)
    await turn(broker, store)
    clock.ms += checkpoint.START_MS
    await turn(broker, store)
    assert store.overtaken() is None


async def test_its_own_deletions_overtake_nobody(start: Start, clock: HandClock) -> None:
    broker = start()
    store = await opened(broker)
    one = begun(store, "one")
    for sequence in range(5):
        store.note_delivered(one, queued(store, sequence, one)[0])
        clock.ms += checkpoint.START_MS
        await turn(broker, store)
    assert log_start(broker) > 0
    assert store.overtaken() is None


# Positions


async def positions(broker: Broker) -> list[tuple[dict[str, tuple[int, ...]], frozenset[int]]]:
    read = await broker.fetch({QUEUE: log_start(broker)})
    found = [decode_positions(one.value) for one in read.records if kind_of(one.key) is Kind.POSITIONS]
    return [(dict(one.positions), one.unfinished) for one in found]


async def mapped(broker: Broker, count: int = 1) -> None:
    for _ in range(count):
        await broker.produce("k", b"", b"")


async def test_positions_wait_for_what_has_begun(start: Start, clock: HandClock) -> None:
    """A message whose record may be below the ends that were taken is done before these are noted."""
    broker = start()
    await broker.topics.create("k", partitions=1)
    with mock.patch.object(checkpoint, "TRUNCATE_BYTES", 1 << 40):
        store = await opened(broker, "k")
        one = begun(store, "one")
        await turn(broker, store)
        assert (await positions(broker))[-1] == ({"k": (0,)}, frozenset())
        slow, quick = store.begin_number(one, 1), store.begin_number(one, 2)
        await mapped(broker, 2)
        clock.ms += checkpoint.POSITIONS_MS
        assert store.has_notes
        store.note_received(one, 2)
        await turn(broker, store)  # takes the ends, 2
        third = store.begin_number(one, 3)
        await mapped(broker)
        clock.ms += checkpoint.POSITIONS_MS
        await turn(broker, store)
        assert (await positions(broker))[-1][0] == {"k": (0,)}
        assert slow != quick
        store.note_received(one, 1)
        await turn(broker, store)
        assert store.has_notes
        await turn(broker, store)
        assert (await positions(broker))[-1] == ({"k": (2,)}, frozenset((third,)))
        assert third == record_number(one.number, 3)
        store.number_refused(one, 3)
        assert store.has_notes
        await turn(broker, store)
        await turn(broker, store)
        assert (await positions(broker))[-1] == ({"k": (3,)}, frozenset())
        clock.ms += checkpoint.POSITIONS_MS
        assert not store.has_notes


async def test_a_start_notes_positions(start: Start) -> None:
    broker = start()
    await opened(broker, "k")
    await broker.topics.create("k", partitions=2)
    await broker.produce("k", b"", partition=1)
    await opened(broker, "k")
    assert await positions(broker) == [({}, frozenset()), ({"k": (0, 1)}, frozenset())]


async def test_a_session_that_ends_lets_positions_go_on(start: Start, clock: HandClock) -> None:
    broker = start()
    await broker.topics.create("k", partitions=1)
    store = await opened(broker, "k")
    one = begun(store, "one")
    store.begin_number(one, 1)
    await mapped(broker)
    clock.ms += checkpoint.POSITIONS_MS
    await turn(broker, store)
    store.note_session_ended(one)
    await turn(broker, store)
    await turn(broker, store)
    assert (await positions(broker))[-1] == ({"k": (1,)}, frozenset())
