"""Messages that few sessions need are stored once more, so that what is between them can be deleted."""

from collections.abc import Iterator
from unittest import mock

import pytest

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage import checkpoint
from leafcuttr_mqtt.storage.checkpoint import Checkpoints
from leafcuttr_mqtt.storage.moving import Moved, read_front
from leafcuttr_mqtt.storage.state import SessionRecord, StoredSession
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_sdk import Broker
from mqtt.storage.conftest import Start


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    with (
        mock.patch.object(checkpoint, "TRUNCATE_BYTES", 2_000),
        mock.patch.object(checkpoint, "MOVE_BYTES", 10_000),
        mock.patch.object(checkpoint, "GROUP_BITS", 0),
    ):
        yield


async def turn(broker: Broker, store: Store) -> None:
    assert store.settle(await broker.append(store.batches()))
    await store._checkpoints.step(lambda: store._turn)


def begun(store: Store, name: str) -> StoredSession:
    stored = store.begin_session(name)
    store.note_session(SessionRecord(name, stored.number, 60))
    return stored


def span(broker: Broker) -> int:
    info = broker.topics.get(QUEUE.topic)
    assert info is not None
    return info.partitions[0].high_watermark - info.partitions[0].log_start_offset


async def test_a_session_that_is_away_does_not_keep_the_log(start: Start) -> None:
    """One message waits for a session, and two for many; others are busy. All are there at the end, and after a
    restart, and the queue stays short."""
    broker = start()
    store = Store(broker)
    await store.open()
    away, away_too, busy = begun(store, "away"), begun(store, "away too"), begun(store, "busy")
    waiting = [Delivery(None, 1, True, (5,), 10, -1, 0), Delivery(None, 2, False, (), 10, -1, 0)]
    store.note_queued(Message("a", b"waits", 2), list(zip((away, away_too), waiting, strict=True)))
    alone = Delivery(None, 1, False, (), 10, -1, 1)
    store.note_queued(Message("b", b"alone", 1), [(away, alone)])
    longest = 0
    for sequence in range(600):
        delivery = Delivery(None, 1, False, (), 100, -1, sequence)
        store.note_queued(Message("c", bytes(100), 1), [(busy, delivery)])
        await turn(broker, store)
        store.note_delivered(busy, delivery)
        longest = max(longest, span(broker))
        if sequence == 400:  # one of two sessions comes back meanwhile
            found = await store.load([waiting[1].offset])
            assert found[waiting[1].offset].payload == b"waits"
            store.note_released(away_too, waiting[1])
    await turn(broker, store)
    assert longest < 200
    assert len(store._checkpoints.moved) < 10
    loaded = await store.load([waiting[0].offset, alone.offset])
    assert [loaded[each.offset].payload for each in (waiting[0], alone)] == [b"waits", b"alone"]
    assert store.place_of(alone.offset) > alone.offset
    assert store.place_of(10_000) == 10_000

    broker = start()
    store = Store(broker)
    found_after = {one.record.client_id: one for one in (await store.open()).sessions}
    assert not found_after["busy"].queue.count
    assert not found_after["away too"].queue.count
    first, second = found_after["away"].queue
    assert (first.sequence, first.qos, first.retain, first.identifiers) == (0, 1, True, (5,))
    loaded = await store.load([first.offset, second.offset])
    assert [loaded[each.offset].payload for each in (first, second)] == [b"waits", b"alone"]


async def test_what_is_needed_is_not_moved_about(start: Start) -> None:
    """A queue whose messages all wait stays as it is, however large."""
    broker = start()
    store = Store(broker)
    await store.open()
    stored = begun(store, "c")
    for sequence in range(300):
        delivery = Delivery(None, 1, False, (), 100, -1, sequence)
        store.note_queued(Message("c", bytes(100), 1), [(stored, delivery)])
        await turn(broker, store)
    assert not store._checkpoints.is_crowded
    assert not store._checkpoints.moved
    assert 300 <= span(broker) < 310


async def test_a_small_queue_is_left_alone(start: Start) -> None:
    broker = start()
    store = Store(broker)
    await store.open()
    stored = begun(store, "c")
    store.note_queued(Message("a", b"", 1), [(stored, Delivery(None, 1, False, (), 1, -1, 0))])
    for sequence in range(1, 20):
        delivery = Delivery(None, 1, False, (), 1, -1, sequence)
        store.note_queued(Message("a", b"", 1), [(stored, delivery)])
        store.note_delivered(stored, delivery)
        assert store.settle(await broker.append(store.batches()))
    assert not store._checkpoints.is_crowded


def test_where_messages_are() -> None:
    moved = Moved()
    assert not moved
    assert moved.find(3) == 3
    moved.put(3, 30)
    moved.put(4, 31)
    moved.put(30, 60)
    assert (moved.find(3), moved.find(4)) == (60, 31)
    assert [moved.was_left(each) for each in (3, 30, 60, 31)] == [True, True, False, False]
    moved.forget_before(40)
    assert (moved.find(3), moved.find(4)) == (60, 4)
    assert not moved.was_left(30)
    assert len(moved) == 1
    moved.leave(70)
    assert moved.was_left(70)


async def test_what_was_moved_is_not_moved_from_there_again(start: Start) -> None:
    """Its first place is in the log still, also for a start; it is counted at its second one."""
    broker = start()
    store = Store(broker)
    await store.open()
    stored = begun(store, "c")
    store.note_queued(Message("a", b"x", 1), [(stored, Delivery(None, 1, False, (), 7, -1, 0))])
    assert store.settle(await broker.append(store.batches()))
    for _ in range(2):
        checkpoints = store._checkpoints
        before = span(broker)
        for _ in range(3):
            checkpoints._moved_to = 0
            with mock.patch.object(Checkpoints, "first_needed", 0):
                await checkpoints.move_some(lambda: store._turn)  # noqa: B023
            assert store.settle(await broker.append(store.batches()))
        assert span(broker) <= before + 3
        assert checkpoints._needed == 1
        assert len(checkpoints._groups) == 1
        store = Store(broker)
        await store.open()


async def test_the_front(start: Start) -> None:
    broker = start()
    store = Store(broker)
    await store.open()
    stored = begun(store, "c")
    deliveries = [Delivery(None, 1, False, (), 7, -1, sequence) for sequence in range(3)]
    for each in deliveries:
        store.note_queued(Message("a", b"%d" % each.sequence, 1), [(stored, each)])
    store.note_received(stored, 1)
    assert store.settle(await broker.append(store.batches()))
    front, upto = await read_front(broker, deliveries[1].offset)
    assert [(each.offset, each.size, each.receivers[0].sequence) for each in front] == [
        (deliveries[1].offset, 7, 1),
        (deliveries[2].offset, 7, 2),
    ]
    assert upto == span(broker)
