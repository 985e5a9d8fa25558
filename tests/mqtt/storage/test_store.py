"""Turns of events into a real broker, and back after a restart."""

import logging

import pytest
import trio
import trio.testing

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Properties, Will
from leafcuttr_mqtt.session.types import Delivery, Subscription
from leafcuttr_mqtt.storage.state import SessionRecord, StoredSession
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_mqtt.storage.topics import CONFIGS
from leafcuttr_sdk import Appended, Broker
from leafcuttr_sdk.errors import BrokerError, StorageError
from mqtt.storage.conftest import Start
from support.waiting import eventually


async def turn(broker: Broker, store: Store) -> bool:
    return store.settle(await broker.append(store.batches()))


def message(topic: str = "a/b", payload: bytes = b"x", qos: int = 1) -> Message:
    return Message(topic, payload, qos, False, "publisher", 1_700_000_000_000)


def delivery(sequence: int, qos: int = 1) -> Delivery:
    return Delivery(None, qos, False, (), 10, -1, sequence)


def begun(store: Store, client_id: str, expiry_s: int = 100) -> StoredSession:
    stored = store.begin_session(client_id)
    store.note_session(
        SessionRecord(client_id, stored.number, expiry_s, subscriptions=(Subscription("a/#", 2),))
    )
    return stored


async def test_a_queued_message_is_there_after_a_restart(start: Start) -> None:
    broker = start()
    store = Store(broker)
    found = await store.open()
    assert not found.sessions
    stored = begun(store, "c")
    first, second = delivery(0), delivery(1)
    store.note_queued(message(payload=b"one"), [(stored, first)])
    store.note_queued(message(payload=b"two"), [(stored, second)])
    assert await turn(broker, store)
    assert second.offset == first.offset + 1 >= 0
    store.note_delivered(stored, first)
    assert await turn(broker, store)

    broker = start()
    store = Store(broker)
    found = await store.open()
    (session,) = found.sessions
    assert session.record.client_id == "c"
    assert session.record.subscriptions == (Subscription("a/#", 2),)
    assert [each.sequence for each in session.queue] == [1]
    assert session.stored.next_sequence == 2
    offset = next(iter(session.queue)).offset
    assert (await store.load([offset]))[offset] == message(payload=b"two")


async def test_qos_2_state(start: Start) -> None:
    broker = start()
    store = Store(broker)
    await store.open()
    stored = begun(store, "c")
    one = delivery(0, 2)
    store.note_queued(message(qos=2), [(stored, one)])
    store.note_received(stored, 7)
    store.note_received(stored, 1 << 16 | 8)
    assert await turn(broker, store)
    store.note_released(stored, one)
    store.note_completed(stored, 8)
    assert await turn(broker, store)
    broker = start()
    (session,) = (await Store(broker).open()).sessions
    assert session.stored.released == {0}
    assert session.stored.received == {7: 7}
    assert session.stored.next_number == (1 << 16) + 9
    assert not session.queue.count


async def test_wills_and_retained(start: Start) -> None:
    broker = start()
    store = Store(broker)
    await store.open()
    will = Will("w", b"gone", 1, True, Properties(will_delay_interval=5, user_properties=(("a", "b"),)))
    stored = store.begin_session("clean")
    store.note_session(SessionRecord("clean", stored.number, 0, will=will))
    store.note_retained(message("r/1", b"kept"))
    store.note_retained(message("r/2", b"kept"))
    store.note_retained(message("r/2", b""))
    assert await turn(broker, store)
    found = await Store(start()).open()
    (record,) = found.wills
    assert record.will == will
    assert [each.topic for each in found.retained] == ["r/1"]


def synced(broker: Broker) -> list[bool]:
    return [broker.topics.configs(name)["lc.log.sync.always"] == "true" for name in CONFIGS]


async def test_in_sync_mode_where_a_mapped_topic_is(start: Start) -> None:
    broker = start()
    await broker.topics.create("k", configs={"lc.log.sync.always": "true"})
    await Store(broker, mapped=lambda: ("other", "k")).open()
    assert all(synced(broker))


async def test_in_sync_mode_once_a_mapped_topic_is(start: Start) -> None:
    broker = start()
    await broker.topics.create("k")
    store = Store(broker, mapped=lambda: ("k", "l"))
    await store.open()
    assert not any(synced(broker))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await trio.testing.wait_all_tasks_blocked()
        await broker.topics.create("m", configs={"lc.log.sync.always": "true"})
        await trio.testing.wait_all_tasks_blocked()
        assert not any(synced(broker))
        await broker.topics.create("l", configs={"lc.log.sync.always": "true"})
        await eventually(lambda: all(synced(broker)), "sync mode")
        nursery.cancel_scope.cancel()


async def test_a_turn_that_cannot_be_written(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of it is settled, one line says so, and the next turn has it all, in order."""
    broker = start()
    store = Store(broker)
    await store.open()
    stored = begun(store, "c")
    first, second = delivery(0), delivery(1)
    store.note_queued(message(payload=b"one"), [(stored, first)])
    for _ in range(2):
        failed = StorageError("the disk is full")
        assert not store.settle([failed for _ in store.batches()])
        assert store.has_notes
    assert first.offset == -1
    store.note_queued(message(payload=b"two"), [(stored, second)])
    assert await turn(broker, store)
    assert not store.has_notes
    assert 0 <= first.offset < second.offset
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.INFO] == [
        "__mqtt_sessions cannot be written, so nothing is acknowledged that needs it: the disk is full",
        "The internal topics are written again",
    ]


async def test_what_is_behind_a_missing_part_is_written_again(start: Start) -> None:
    """Of one topic the records keep their order: a later session does not come before an earlier one."""
    broker = start()
    store = Store(broker)
    await store.open()
    old = begun(store, "c", 1)
    one = delivery(0)
    store.note_queued(message(), [(old, one)])
    assert not store.settle([StorageError("full") for _ in store.batches()])
    store.note_session(SessionRecord("c", old.number, 2))
    two = delivery(1)
    store.note_queued(message(payload=b"two"), [(old, two)])
    batches = store.batches()
    assert len(batches) == 4
    # The first ones fail once more, those behind them do not.
    answers: list[Appended | BrokerError] = [StorageError("full"), StorageError("full")]
    answers += await broker.append(batches[2:])
    assert not store.settle(answers)
    assert await turn(broker, store)
    assert not store.has_notes
    assert store._checkpoints._needed == 2
    (session,) = (await Store(broker).open()).sessions
    assert session.record.expiry_s == 2
    assert [each.offset for each in session.queue] == [one.offset, two.offset]
    assert one.offset < two.offset


async def test_batches_are_settled_before_the_next(start: Start) -> None:
    broker = start()
    store = Store(broker)
    await store.open()
    store.note_retained(message())
    batches = store.batches()
    with pytest.raises(RuntimeError, match="not settled"):
        store.batches()
    store.note_retained(message("other"))  # of the next turn
    assert store.settle(await broker.append(batches))
    assert len(store.batches()) == 1


async def test_one_message_for_many_is_stored_once(start: Start) -> None:
    broker = start()
    store = Store(broker)
    await store.open()
    sessions = [begun(store, f"c{number}") for number in range(50)]
    deliveries = [
        Delivery(None, 1, number % 2 == 0, (number,) if number % 3 else (), 10, -1, 0) for number in range(50)
    ]
    store.note_queued(message(), list(zip(sessions, deliveries, strict=True)))
    store.note_queued(message(), [])
    assert await turn(broker, store)
    assert {each.offset for each in deliveries} == {deliveries[0].offset}
    found = (await Store(broker).open()).sessions
    assert [next(iter(each.queue)) for each in found] == deliveries


async def test_a_queue_that_was_deleted_begins_anew(start: Start) -> None:
    broker = start()
    store = Store(broker)
    await store.open()
    stored = begun(store, "c")
    deliveries = [delivery(number) for number in range(5)]
    for number, each in enumerate(deliveries):
        store.note_queued(message(payload=b"%d" % number), [(stored, each)])
    assert await turn(broker, store)
    assert set(await store.load([each.offset for each in deliveries])) == {each.offset for each in deliveries}
    old = deliveries[0].offset

    await broker.topics.delete("__mqtt_queue")
    late = delivery(5)
    store.note_queued(message(payload=b"late"), [(stored, late)])
    assert not await turn(broker, store)  # nothing is acknowledged that is not there
    assert store.is_gone and store.has_notes
    assert not await store.load([old])
    generation = store.generation
    assert await store.create_again() == {"__mqtt_queue"}
    assert store.generation == generation + 1 and not store.is_gone
    deliveries[2].offset = -1
    store.keep_only([(stored, [2])])
    store.note_queued_again(message(payload=b"again"), [(stored, deliveries[2])])
    assert [number for number in range(7) if stored.needs(number)] == [2, 5]
    assert await turn(broker, store)
    assert old in {late.offset, deliveries[2].offset}  # what was read from there is forgotten
    found = await store.load([late.offset, deliveries[2].offset])
    assert (found[late.offset].payload, found[deliveries[2].offset].payload) == (b"late", b"again")
    store.note_delivered(stored, late)
    assert await turn(broker, store)

    (session,) = (await Store(start()).open()).sessions
    assert [each.sequence for each in session.queue] == [2]
    assert session.stored.next_sequence == 6
