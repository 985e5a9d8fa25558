"""Events noted in turns, and read again: after each record the state is the one that the model had there."""

from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage import formats
from leafcuttr_mqtt.storage.formats import Event, Positions, Receiver, RecordFormatError, VersionError
from leafcuttr_mqtt.storage.replay import Replay
from leafcuttr_mqtt.storage.session_records import SessionRecords
from leafcuttr_mqtt.storage.state import StoredSession, Unfinished, record_number
from leafcuttr_mqtt.storage.turn import Turn
from leafcuttr_sdk.batches import batches_in
from mqtt.storage.model import SessionModel, model_of

CLIENTS: tuple[int, ...] = (1, 2, 3)
TIME = 1_700_000_000_000

queued = st.tuples(
    st.just("queued"), st.lists(st.sampled_from(CLIENTS), min_size=1, unique=True), st.integers(1, 2)
)
others = st.tuples(
    st.sampled_from(["delivered", "released", "received", "completed"]),
    st.sampled_from(CLIENTS),
    st.integers(0, 5),
)
turns = st.lists(st.lists(queued | others, max_size=8), max_size=8)

Step = Callable[[], None]


@given(turns)
def test_every_record_boundary(given_turns: list[list[tuple[str, list[int] | int, int]]]) -> None:
    models = {number: SessionModel() for number in CLIENTS}
    next_sequences = dict.fromkeys(CLIENTS, 0)
    counts = dict.fromkeys(CLIENTS, 0)
    states = [deepcopy(models)]
    records: list[tuple[bytes | None, bytes | None]] = []
    for events in given_turns:
        turn = Turn("queue", SessionRecords())
        # In the order in which a turn's records are: messages, what was received, events.
        received: list[Step] = []
        ended: list[Step] = []
        for kind, whom, which in events:
            if isinstance(whom, list):
                deliveries = [
                    (
                        number,
                        Delivery(
                            None, which, False, (7,) if number == 3 else (), 10, -1, next_sequences[number]
                        ),
                    )
                    for number in whom
                ]
                for number, _ in deliveries:
                    next_sequences[number] += 1
                receivers = [
                    Receiver(
                        number,
                        one.sequence,
                        formats.flags_of(one.qos, False, one.identifiers),
                        one.identifiers,
                    )
                    for number, one in deliveries
                ]
                turn.add_queued(formats.queued_key(10, receivers), b"", TIME, ())
                for number, one in deliveries:
                    models[number].queued(one)
                states.append(deepcopy(models))
            elif kind == "received":
                number = counts[whom] << 16 | which
                counts[whom] += 1
                turn.received.setdefault((), []).append(formats.pack_pair(whom, number))
                received.append(lambda model=models[whom], number=number: model.receive(number))
            else:
                sequence = max(next_sequences[whom] - 1 - which, 0)
                number = max(counts[whom] - 1, 0) << 16 | which
                event, value, step = {
                    "delivered": (Event.DELIVERED, sequence, models[whom].delivered),
                    "released": (Event.RELEASED, sequence, models[whom].release),
                    "completed": (Event.COMPLETED, number, models[whom].complete),
                }[kind]
                if kind == "released" and not next_sequences[whom]:
                    continue
                turn.events.append(formats.pack_event(event, whom, value))
                ended.append(lambda step=step, value=value: step(value))
        for steps in (received, ended):
            for step in steps:
                step()
            if steps:
                states.append(deepcopy(models))
        for part in turn.parts("sessions", "retained", TIME):
            for batch in batches_in(part.builder.finish()):
                for record in batch.records():
                    key, value = record.key, record.value
                    records.append(
                        (None if key is None else bytes(key), value if value is None else bytes(value))
                    )
    assert len(states) == len(records) + 1
    replay = Replay(StoredSession(f"c{number}", number) for number in CLIENTS)
    for offset, (key, value) in enumerate(records):
        assert {n: model_of(one.stored, one.queue) for n, one in replay.sessions.items()} == states[offset]
        replay.apply(offset, TIME, key, value)
    assert {n: model_of(one.stored, one.queue) for n, one in replay.sessions.items()} == states[-1]
    assert not replay.finish({})


def queued_record(number: int, sequence: int) -> tuple[bytes, bytes]:
    return formats.queued_key_of_one(number, sequence, 1, 10), b""


def test_sessions_that_are_over_mean_nothing() -> None:
    replay = Replay([StoredSession("c", 5)])
    replay.apply(0, TIME, *queued_record(3, 0))
    replay.apply(1, TIME, formats.EVENTS_KEY, formats.pack_event(Event.RELEASED, 4, 0))
    replay.apply(2, TIME, formats.received_key(()), formats.pack_pair(9, 1))
    (session,) = replay.sessions.values()
    assert model_of(session.stored, session.queue) == SessionModel()
    assert replay.highest_session == 9


@pytest.mark.parametrize(
    "record",
    [
        (formats.queued_key_of_one(77, 0, 1, 1), b""),
        (formats.queued_key(1, [Receiver(77, 0, 1), Receiver(2, 0, 1)]), b""),
        (formats.EVENTS_KEY, formats.pack_event(Event.NEXT, 77, 0)),
        (formats.received_key(()), formats.pack_pair(77, 0)),
        (formats.POSITIONS_KEY, formats.encode_positions(Positions({}, frozenset(), 78))),
    ],
)
def test_numbers_of_sessions_are_not_given_again(record: tuple[bytes, bytes]) -> None:
    replay = Replay([])
    replay.apply(0, TIME, *record)
    assert replay.highest_session == 77


def test_offsets_and_what_proves_the_state() -> None:
    stored = StoredSession("c", 1)
    replay = Replay([stored])
    replay.apply(40, TIME, *queued_record(1, 0))
    replay.apply(41, TIME, *queued_record(1, 1))
    assert stored.proven_at == 40
    assert [(one.sequence, one.offset) for one in replay.sessions[1].queue] == [(0, 40), (1, 41)]
    replay.apply(42, TIME, *queued_record(1, 0))
    assert [(one.sequence, one.offset) for one in replay.sessions[1].queue] == [(0, 42), (1, 41)]


@pytest.mark.parametrize(
    "event", [Event.DELIVERED, Event.RELEASED, Event.NEXT, Event.NEXT_NUMBER, Event.COMPLETED]
)
def test_an_event_proves_too(event: Event) -> None:
    stored = StoredSession("c", 1)
    Replay([stored]).apply(7, TIME, formats.EVENTS_KEY, formats.pack_event(event, 1, 3))
    assert stored.proven_at == 7


def test_what_is_said_again() -> None:
    stored = StoredSession("c", 1)
    replay = Replay([stored])
    events = [(Event.NEXT, 8), (Event.RELEASED, 5), (Event.NEXT_NUMBER, 9)]
    for _ in range(2):
        replay.apply(0, TIME, formats.EVENTS_KEY, b"".join(formats.pack_event(e, 1, n) for e, n in events))
    assert (stored.next_sequence, stored.released, stored.next_number) == (8, {5}, 9)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x01", b""),
        (b"\x01\x63", b""),
        (formats.EVENTS_KEY, b"x"),
        (formats.EVENTS_KEY, None),
        (formats.EVENTS_KEY, formats.pack_event(Event.RELEASED, 1, 0) + formats.pack_event(99, 1, 0)),
        (formats.received_key(()), formats.pack_pair(1, 2) + b"x"),
        (formats.received_key(("a",))[:-1], formats.pack_pair(1, 2)),
        (formats.POSITIONS_KEY, b"{}"),
        (formats.queued_key_of_one(1, 0, 9, 1), b""),
    ],
)
def test_a_damaged_record_changes_nothing(key: bytes | None, value: bytes | None) -> None:
    stored = StoredSession("c", 1)
    replay = Replay([stored])
    with pytest.raises(RecordFormatError):
        replay.apply(0, TIME, key, value)
    assert model_of(stored, replay.sessions[1].queue) == SessionModel()
    assert replay.positions is None


def test_a_later_version() -> None:
    with pytest.raises(VersionError):
        Replay([]).apply(0, TIME, b"\x02\x01", b"")


# QoS 2 messages and Kafka topics


def received(replay: Replay, number: int, *topics: str) -> None:
    replay.apply(0, TIME, formats.received_key(topics), formats.pack_pair(1, number))


def positions(replay: Replay, *unfinished: int) -> None:
    numbers = frozenset(record_number(1, one) for one in unfinished)
    replay.apply(0, TIME, formats.POSITIONS_KEY, formats.encode_positions(Positions({}, numbers, 2)))


def test_a_message_that_is_in_all_its_topics_is_finished() -> None:
    replay = Replay([StoredSession("c", 1)])
    received(replay, 7, "a", "b")
    assert replay.finish({record_number(1, 7): {"a", "b"}}) == {}
    assert replay.sessions[1].stored.received == {7: 7}


def test_a_message_that_is_missing_somewhere_is_not() -> None:
    replay = Replay([StoredSession("c", 1)])
    received(replay, 7, "a", "b")
    both = frozenset(("a", "b"))
    assert replay.finish({record_number(1, 7): {"a"}}) == {1: {7: Unfinished(7, both, frozenset("a"), True)}}
    assert replay.sessions[1].stored.received == {}
    assert replay.sessions[1].stored.next_number == 8


def test_a_message_that_was_not_noted() -> None:
    replay = Replay([StoredSession("c", 1)])
    received(replay, 1 << 16 | 7)
    message = 2 << 16 | 7
    found = replay.finish({record_number(1, message): {"a"}, record_number(2, message): {"a"}, 5: {"a"}})
    assert found == {1: {7: Unfinished(message, frozenset("a"), frozenset("a"), False)}}
    assert replay.sessions[1].stored.next_number == message + 1


def test_a_message_that_is_over_is_not_found_again() -> None:
    replay = Replay([StoredSession("c", 1)])
    received(replay, 7)
    replay.apply(0, TIME, formats.EVENTS_KEY, formats.pack_event(Event.COMPLETED, 1, 7))
    assert replay.finish({record_number(1, 7): {"a"}}) == {}


def test_positions_say_what_is_finished() -> None:
    replay = Replay([StoredSession("c", 1)])
    received(replay, 7, "a")
    received(replay, 8, "a")
    positions(replay, 8)
    received(replay, 9, "a")
    found = replay.finish({})
    assert set(found[1]) == {8, 9}
    assert replay.sessions[1].stored.received == {7: 7}


def test_a_packet_identifier_is_used_again() -> None:
    replay = Replay([StoredSession("c", 1)])
    received(replay, 7, "a")
    received(replay, 1 << 16 | 7)
    replay.apply(0, TIME, formats.EVENTS_KEY, formats.pack_event(Event.COMPLETED, 1, 7))
    assert replay.finish({}) == {}
    assert replay.sessions[1].stored.received == {7: 1 << 16 | 7}


def test_a_message_that_is_completed_is_not_missing() -> None:
    replay = Replay([StoredSession("c", 1)])
    received(replay, 7, "a")
    replay.apply(0, TIME, formats.EVENTS_KEY, formats.pack_event(Event.COMPLETED, 1, 7))
    assert replay.finish({}) == {}
