"""What a start finds: random turns into a real broker that is left between any two; damage; later versions; QoS 2
messages in Kafka topics."""

import logging
import tempfile
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import leafcuttr_mqtt
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Properties, Will
from leafcuttr_mqtt.session.types import Delivery, Subscription
from leafcuttr_mqtt.storage import checkpoint, formats
from leafcuttr_mqtt.storage.recovery import NUMBER_HEADER
from leafcuttr_mqtt.storage.state import (
    Bucket,
    Recovered,
    RecoveredSession,
    SessionRecord,
    StoredSession,
    record_number,
)
from leafcuttr_mqtt.storage.store import Store
from leafcuttr_mqtt.storage.topics import QUEUE, RETAINED, SESSIONS
from leafcuttr_sdk import Broker, NewBatch, TopicPartition
from leafcuttr_sdk.batches import BatchBuilder, encode_key
from leafcuttr_sdk.errors import PluginError, StorageError
from mqtt.storage.conftest import Start
from mqtt.storage.model import SessionModel, model_of
from support.live_broker import opening
from support.logs import HandClock

CLIENTS = ("one", "two", "three")
which = st.integers(0, 4)
events = st.one_of(
    st.tuples(
        st.just("queued"), st.lists(st.sampled_from(CLIENTS), min_size=1, unique=True), st.integers(1, 2)
    ),
    st.tuples(
        st.sampled_from(["delivered", "released", "finished", "received", "completed", "ended"]),
        st.sampled_from(CLIENTS),
        which,
    ),
    st.tuples(st.just("retained"), st.sampled_from(["r/1", "r/2"]), st.integers(0, 2)),
)
ends = st.sampled_from(["go on", "move", "move first", "fail", "crash", "restart"])
runs = st.lists(st.tuples(st.lists(events, max_size=8), ends), min_size=1, max_size=12)


class Run:
    """A store, and the model of what it has to have kept."""

    def __init__(self) -> None:
        self.models: dict[str, SessionModel] = {}
        self.retained: dict[str, bytes] = {}
        self.stored: dict[str, StoredSession] = {}
        self.deliveries: dict[str, dict[int, Delivery]] = {}
        self.payloads: dict[str, dict[int, bytes]] = {}
        self.count = 0
        self.store: Store

    async def open(self, broker: Broker) -> None:
        """What is found is what the model has."""
        self.broker = broker
        self.store = Store(broker)
        found = await self.store.open()
        sessions = {one.record.client_id: one for one in found.sessions}
        assert {name: model_of(one.stored, one.queue) for name, one in sessions.items()} == self.models
        assert {one.topic: one.payload for one in found.retained} == self.retained
        assert not found.damaged
        for name, one in sessions.items():
            assert one.record.subscriptions == (Subscription(f"{name}/#", 1),)
            self.stored[name] = one.stored
            self.deliveries[name] = {each.sequence: each for each in one.queue}
        await self.check()

    async def check(self) -> None:
        """Every message that waits can be read, and is counted."""
        offsets = {each.offset for one in self.deliveries.values() for each in one.values()}
        loaded = await self.store.load(offsets)
        for name, deliveries in self.deliveries.items():
            for sequence, each in deliveries.items():
                assert loaded[each.offset].payload == self.payloads[name][sequence]
        checkpoints = self.store._checkpoints
        assert checkpoints._needed == sum(len(one) for one in self.deliveries.values())
        assert sum(checkpoints._groups.values()) == checkpoints._needed

    def begin(self, name: str) -> None:
        stored = self.stored[name] = self.store.begin_session(name)
        self.store.note_session(
            SessionRecord(name, stored.number, 60, subscriptions=(Subscription(f"{name}/#", 1),))
        )
        self.models[name], self.deliveries[name], self.payloads[name] = SessionModel(), {}, {}

    def note(self, kind: str, whom: list[str] | str, number: int) -> None:
        store = self.store
        if kind == "retained":
            assert isinstance(whom, str)
            payload = b"%d" % number if number else b""
            store.note_retained(Message(whom, payload, 1, True))
            if payload:
                self.retained[whom] = payload
            else:
                self.retained.pop(whom, None)
            return
        names = whom if isinstance(whom, list) else [whom]
        for name in names:
            if name not in self.models:
                self.begin(name)
        if kind == "queued":
            self.count += 1
            message = Message("a", b"%d" % self.count, number, False, "", 1_700_000_000_000)
            receivers: list[tuple[StoredSession, Delivery]] = []
            for name in names:
                model = self.models[name]
                identifiers = (self.count,) if name == "three" else ()
                delivery = Delivery(message, number, False, identifiers, 10, -1, model.next_sequence)
                model.queued(delivery)
                self.deliveries[name][delivery.sequence] = delivery
                self.payloads[name][delivery.sequence] = message.payload
                receivers.append((self.stored[name], delivery))
            store.note_queued(message, receivers)
            return
        (name,) = names
        model, stored, deliveries = self.models[name], self.stored[name], self.deliveries[name]
        if kind == "ended":
            store.note_session_ended(stored, deliveries.values())
            del self.models[name], self.deliveries[name], self.payloads[name], self.stored[name]
        elif kind == "received":
            message_number = model.next_number | 0xFFFF
            message_number += 1 + number
            store.note_received(stored, message_number)
            model.receive(message_number)
        elif kind == "completed":
            found = sorted(model.received)[number : number + 1]
            for packet_id in found:
                model.complete(model.received[packet_id])
                store.note_completed(stored, packet_id)
        elif kind == "finished":
            for sequence in sorted(model.released)[number : number + 1]:
                model.delivered(sequence)
                store.note_delivered(stored, Delivery(None, 2, False, offset=-1, sequence=sequence))
        else:
            for sequence in sorted(deliveries)[number : number + 1]:
                delivery = deliveries.pop(sequence)
                if kind == "released":
                    model.release(sequence)
                    store.note_released(stored, delivery)
                else:
                    model.delivered(sequence)
                    store.note_delivered(stored, delivery)

    async def turn(self, *, fails: bool = False, moves: bool = False) -> None:
        if moves:
            await self.store._checkpoints.move_some(lambda: self.store._turn)
        if fails:
            batches = self.store.batches()
            failed = self.store.settle([StorageError("the disk is full")] * len(batches))
            assert failed is not bool(batches)
        while True:
            batches = self.store.batches()
            assert self.store.settle(await self.broker.append(batches))
            await self.store._checkpoints.delete_due()
            if not self.store.has_notes:
                return await self.check()


@pytest.mark.parametrize("truncate_bytes", [1, 1 << 40])
@settings(max_examples=15)
@given(runs)
def test_what_is_found_is_what_was_settled(
    truncate_bytes: int, run: list[tuple[list[tuple[str, list[str] | str, int]], str]]
) -> None:
    async def main(folder: Path) -> None:
        clock = HandClock()
        with opening(folder, clock) as opened:
            state = Run()
            await state.open(make_broker_view(opened(), leafcuttr_mqtt.PLUGIN))
            for notes, end in run:
                if end == "move first":
                    await state.store._checkpoints.move_some(lambda: state.store._turn)
                for note in notes:
                    state.note(*note)
                await state.turn(fails=end == "fail", moves=end == "move")
                clock.ms += 1000
                if end == "crash":
                    await state.open(state.broker)
                elif end == "restart":
                    await state.open(make_broker_view(opened(), leafcuttr_mqtt.PLUGIN))
            await state.open(state.broker)

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(checkpoint, "TRUNCATE_BYTES", truncate_bytes),
        mock.patch.object(checkpoint, "GROUP_BITS", 0 if truncate_bytes == 1 else 10),
    ):
        trio.run(main, Path(folder))


# Sessions that end with their connection, and wills


async def opened(broker: Broker, *mapped: str) -> tuple[Store, Recovered]:
    store = Store(broker, mapped=lambda: mapped)
    return store, await store.open()


async def turn(broker: Broker, store: Store) -> None:
    assert store.settle(await broker.append(store.batches()))


def only(found: Recovered) -> RecoveredSession:
    (session,) = found.sessions
    return session


async def test_wills_of_connections_that_were_open(start: Start) -> None:
    broker = start()
    store, _ = await opened(broker)
    will = Will("w", b"gone", 1, True, Properties(will_delay_interval=5, user_properties=(("a", "b"),)))
    for name, expiry_s, its_will in (("clean", 0, will), ("kept", 60, will), ("nothing", 0, None)):
        stored = store.begin_session(name)
        store.note_session(SessionRecord(name, stored.number, expiry_s, will=its_will))
    await turn(broker, store)
    store, found = await opened(broker)
    assert [(one.client_id, one.will) for one in found.wills] == [("clean", will)]
    assert only(found).record.will == will
    store.note_will_done("clean")
    await turn(broker, store)
    _, found = await opened(broker)
    assert not found.wills
    assert only(found).record.client_id == "kept"
    # The record that said nothing is gone.
    read = await broker.fetch({SESSIONS: 0})
    assert [one.key for one in read.records if one.value is None] == [b"nothing", b"clean"]


async def test_sessions_get_numbers_of_their_own(start: Start) -> None:
    broker = start()
    store, _ = await opened(broker)
    first = store.begin_session("c")
    store.note_session(SessionRecord("c", first.number, 60))
    store.note_queued(Message("a", b""), [(first, Delivery(None, 1, False, sequence=0))])
    await turn(broker, store)
    store.note_session_ended(first)
    await turn(broker, store)
    store, found = await opened(broker)
    assert not found.sessions
    second = store.begin_session("c")
    assert second.number > first.number
    store.note_session(SessionRecord("c", second.number, 60))
    await turn(broker, store)
    _, found = await opened(broker)
    assert not only(found).queue.count


async def test_a_session_with_many_subscriptions(start: Start) -> None:
    """One subscription more costs little, and a start finds them all; of the session's end nothing is left."""
    broker = start()
    store, _ = await opened(broker)
    stored = store.begin_session("c")
    subscriptions = tuple(Subscription(f"devices/{number}", 1) for number in range(5_000))
    store.note_session(SessionRecord("c", stored.number, 60, subscriptions=subscriptions[:-1]))
    await turn(broker, store)
    store.note_session(SessionRecord("c", stored.number, 60, subscriptions=subscriptions))
    (batch,) = store.batches()
    assert len(batch.batch) < 10_000
    assert store.settle(await broker.append([batch]))

    store, found = await opened(broker)
    assert set(only(found).record.subscriptions) == set(subscriptions)
    assert not only(found).record.divided
    store.note_session_ended(only(found).stored)
    await turn(broker, store)
    values: dict[bytes | None, bytes | None] = {}
    position = 0
    while read := (await broker.fetch({SESSIONS: position})).records:
        values.update((one.key, one.value) for one in read)
        position = read[-1].offset + 1
    assert len(values) > 100
    assert set(values.values()) == {None}


async def test_a_session_that_had_many_subscriptions(start: Start) -> None:
    broker = start()
    store, _ = await opened(broker)
    stored = store.begin_session("c")
    subscriptions = tuple(Subscription(f"devices/{number}", 1) for number in range(1_000))
    for each in (subscriptions, subscriptions[:10]):
        store.note_session(SessionRecord("c", stored.number, 60, subscriptions=each))
        await turn(broker, store)
    _, found = await opened(broker)
    assert set(only(found).record.subscriptions) == set(subscriptions[:10])


async def test_the_topic_of_sessions_was_deleted(start: Start) -> None:
    broker = start()
    store, _ = await opened(broker)
    stored = store.begin_session("c")
    subscriptions = tuple(Subscription(f"devices/{number}", 1) for number in range(1_000))
    record = SessionRecord("c", stored.number, 60, subscriptions=subscriptions)
    store.note_session(record)
    await turn(broker, store)
    await broker.topics.delete(SESSIONS.topic)
    store.note_session(record)
    assert not store.settle(await broker.append(store.batches()))
    assert await store.create_again() == {SESSIONS.topic}
    store.note_session(record)
    await turn(broker, store)
    _, found = await opened(broker)
    assert set(only(found).record.subscriptions) == set(subscriptions)


async def test_buckets_without_a_session_are_deleted(start: Start) -> None:
    broker = start()
    await opened(broker)
    bucket = Bucket(7, (Subscription("a", 1),))
    await append(broker, SESSIONS, (formats.bucket_key("gone", 3), formats.encode_bucket(bucket)))
    _, found = await opened(broker)
    assert not found.sessions
    read = await broker.fetch({SESSIONS: 0})
    assert [one.key for one in read.records if one.value is None] == [b"gone\x003", b"gone"]


# Damage, and later versions


async def append(broker: Broker, partition: TopicPartition, *records: tuple[bytes, bytes | None]) -> None:
    builder = BatchBuilder()
    for key, value in records:
        builder.add(value, 1_700_000_000_000, encode_key(key))
    (answer,) = await broker.append([NewBatch(partition, builder.finish())])
    assert not isinstance(answer, Exception)


async def test_damaged_records_are_left_out(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    broker = start()
    store, _ = await opened(broker)
    stored = store.begin_session("c")
    store.note_session(SessionRecord("c", stored.number, 60))
    store.note_retained(Message("r", b"1"))
    store.note_queued(Message("a", b""), [(stored, Delivery(None, 1, False, sequence=0))])
    await turn(broker, store)
    await append(broker, SESSIONS, (b"d", b"{"))
    await append(broker, RETAINED, (b"s", b""), (b"t", b"\x01\xff"))
    await append(broker, QUEUE, (b"\x01\x01", b""))
    store.note_queued(Message("a", b""), [(stored, Delivery(None, 1, False, sequence=1))])
    await turn(broker, store)
    with caplog.at_level(logging.ERROR):
        _, found = await opened(broker)
    assert found.damaged == {"__mqtt_sessions": 1, "__mqtt_retained": 2, "__mqtt_queue": 1}
    assert only(found).queue.count == 2
    assert [one.topic for one in found.retained] == ["r"]
    assert sorted(record.getMessage() for record in caplog.records) == [
        "__mqtt_queue: 1 damaged record is left out",
        "__mqtt_retained: 2 damaged records are left out",
        "__mqtt_sessions: 1 damaged record is left out",
    ]


async def test_damaged_batches_are_left_out(start: Start, tmp_path: Path) -> None:
    """A byte on the disk has changed: what the batch says is not believed, the others are."""
    broker = start()
    store, _ = await opened(broker)
    for names in (("1", "2"), ("3",)):
        for name in names:
            store.note_retained(Message(f"r/{name}", b"payload-%s" % name.encode()))
        await turn(broker, store)
    start()  # closes the files
    (path,) = (tmp_path / "data" / "__mqtt_retained-0").glob("*.log")
    data = path.read_bytes()
    assert data.count(b"payload-2") == 1
    broker = start()
    path.write_bytes(data.replace(b"payload-2", b"payload-9"))
    _, found = await opened(broker)
    assert [one.topic for one in found.retained] == ["r/3"]
    assert found.damaged == {"__mqtt_retained": 2}


@pytest.mark.parametrize(
    ("partition", "record"),
    [
        (SESSIONS, (b"d", b'{"version": 2}')),
        (RETAINED, (b"s", b"\x02")),
        (QUEUE, (b"\x02\x01", b"")),
        (QUEUE, (formats.POSITIONS_KEY, b'{"version": 2}')),
    ],
)
async def test_a_later_version_is_refused(
    start: Start, partition: TopicPartition, record: tuple[bytes, bytes]
) -> None:
    broker = start()
    await opened(broker)
    await append(broker, partition, record)
    with pytest.raises(PluginError) as raised:
        await opened(broker)
    assert str(raised.value).startswith(f"{partition.topic}, offset ")
    assert str(raised.value).endswith(
        "format version 2; this LeafCuttr reads version 1, a later one wrote it"
    )
    assert "\n" not in str(raised.value)


# QoS 2 messages in Kafka topics


async def mapped(broker: Broker, topic: str, *numbers: int | None) -> None:
    """Records in a Kafka topic, with these numbers."""
    builder = BatchBuilder()
    for number in numbers:
        headers: tuple[tuple[str, bytes | None], ...] = (("mqtt.topic", b"a"),)
        if number is not None:
            headers += ((NUMBER_HEADER, b"%d" % number),)
        builder.extend_records([(b"value", b"a", headers, broker.clock.now_ms())])
    await append_all(broker, topic, [builder])


async def append_all(broker: Broker, topic: str, builders: Iterable[BatchBuilder]) -> None:
    for answer in await broker.append(
        [NewBatch(TopicPartition(topic, 0), each.finish()) for each in builders]
    ):
        assert not isinstance(answer, Exception)


async def begun(broker: Broker, store: Store, name: str = "c") -> StoredSession:
    stored = store.begin_session(name)
    store.note_session(SessionRecord(name, stored.number, 60))
    await turn(broker, store)
    return stored


@pytest.mark.parametrize("codec", ["producer", "zstd"])
async def test_a_message_that_was_appended_and_not_noted(start: Start, codec: str) -> None:
    broker = start()
    await broker.topics.create("k", partitions=1, configs={"compression.type": codec})
    await broker.topics.create("l", partitions=1)
    store, _ = await opened(broker, "k", "l")
    stored = await begun(broker, store)
    number = store.begin_number(stored, 7)
    await mapped(broker, "k", None, number, None)
    for _ in range(2):  # as long as nobody has sent it again
        store, found = await opened(broker, "k", "l")
        session = only(found)
        (unfinished,) = session.unfinished.values()
        assert (unfinished.number, unfinished.stored_in, unfinished.queued) == (7, {"k"}, False)
        assert session.unfinished == {7: unfinished}
        assert session.stored.next_number == 8
    # It comes again, and is noted.
    await mapped(broker, "l", record_number(session.stored.number, 7))
    store.note_received(session.stored, 7)
    await turn(broker, store)
    await turn(broker, store)
    _, found = await opened(broker, "k", "l")
    assert not only(found).unfinished
    assert only(found).stored.received == {7: 7}


async def test_an_unfinished_message_may_be_given_up(start: Start) -> None:
    broker = start()
    await broker.topics.create("k", partitions=1)
    store, _ = await opened(broker, "k")
    stored = await begun(broker, store)
    await mapped(broker, "k", store.begin_number(stored, 7))
    store, found = await opened(broker, "k")
    store.number_refused(only(found).stored, 7)
    store.note_received(only(found).stored, 8)
    await turn(broker, store)
    _, found = await opened(broker, "k")
    assert not only(found).unfinished


async def test_messages_that_were_noted_are_not_looked_for(start: Start, clock: HandClock) -> None:
    """The positions of the last checkpoint: what is before them is not read."""
    broker = start()
    await broker.topics.create("k", partitions=1)
    store, _ = await opened(broker, "k")
    stored = await begun(broker, store)
    for number in range(3):
        await mapped(broker, "k", store.begin_number(stored, number << 16))
        store.note_received(stored, number << 16)
        await turn(broker, store)
        clock.ms += checkpoint.POSITIONS_MS
    # One that began before the positions are taken, and is noted later.
    await mapped(broker, "k", store.begin_number(stored, 5 << 16 | 5))
    await mapped(broker, "k", *[None] * 5)
    while store.has_notes:
        await turn(broker, store)
    reads: list[int] = []
    read_batches = broker.read_batches

    async def counted(partition: TopicPartition, offset: int, **more: object) -> object:
        if partition[0] == "k":  # type: ignore[index]
            reads.append(offset)
        return await read_batches(partition, offset, **more)  # type: ignore[arg-type]

    with mock.patch.object(broker, "read_batches", counted):
        _, found = await opened(broker, "k")
    assert only(found).unfinished[5].stored_in == {"k"}
    assert reads[0] == 3


async def test_a_topic_that_was_created_since(start: Start) -> None:
    broker = start()
    store, _ = await opened(broker, "k")
    stored = await begun(broker, store)
    await broker.topics.create("k", partitions=1)
    await mapped(broker, "k", store.begin_number(stored, 7))
    _, found = await opened(broker, "k")
    assert set(only(found).unfinished) == {7}


async def test_other_headers_are_no_numbers(start: Start) -> None:
    broker = start()
    await broker.topics.create("k", partitions=1)
    store, _ = await opened(broker, "k")
    stored = await begun(broker, store)
    builder = BatchBuilder()
    values = (None, b"", b"-1", b"x", b"9" * 5000, b"%d" % record_number(stored.number + 1, 7))
    builder.extend_records((b"", b"", ((NUMBER_HEADER, value),), broker.clock.now_ms()) for value in values)
    builder.extend_records(
        [(NUMBER_HEADER.encode(), b"", ((f"x{NUMBER_HEADER}", b"7"),), broker.clock.now_ms())]
    )
    await append_all(broker, "k", [builder])
    _, found = await opened(broker, "k")
    assert not only(found).unfinished


async def test_a_message_for_topics_that_may_not_have_it(start: Start) -> None:
    """Noted with its topics before these have it: those that are missing are found."""
    broker = start()
    for name in ("k", "l"):
        await broker.topics.create(name, partitions=1)
    store, _ = await opened(broker, "k", "l")
    stored = await begun(broker, store)
    store.note_received(stored, 7, ("k", "l"))
    store.note_received(stored, 8, ("k",))
    await turn(broker, store)
    await mapped(broker, "k", record_number(stored.number, 7), record_number(stored.number, 8))
    _, found = await opened(broker, "k", "l")
    session = only(found)
    (unfinished,) = session.unfinished.values()
    assert (unfinished.number, unfinished.stored_in, unfinished.queued) == (7, {"k"}, True)
    assert session.stored.received == {8: 8}
    store.number_done(stored, 7)
    store.number_done(stored, 8)
    await turn(broker, store)
