"""Batches of a turn: their order, their limit."""

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.storage import formats
from leafcuttr_mqtt.storage.formats import Event, Kind, Positions
from leafcuttr_mqtt.storage.session_records import SessionRecords
from leafcuttr_mqtt.storage.state import SessionRecord
from leafcuttr_mqtt.storage.turn import BATCH_BYTES, Part, Turn
from leafcuttr_sdk.batches import batches_in

NOW = 1_700_000_000_000


def records(part: Part) -> list[tuple[bytes | None, bytes | None, int]]:
    (batch,) = batches_in(part.builder.finish())
    batch.check()
    return [
        (
            None if one.key is None else bytes(one.key),
            None if one.value is None else bytes(one.value),
            one.timestamp,
        )
        for one in batch.records()
    ]


def test_nothing_was_noted() -> None:
    turn = Turn("q", SessionRecords())
    assert not turn
    assert turn.parts("s", "r", NOW) == []


def test_order() -> None:
    """Sessions first, then retained messages; of the queue messages, what was received, events, positions."""
    turn = Turn("q", SessionRecords())
    turn.positions = Positions({}, frozenset(), 1)
    turn.events.append(formats.pack_event(Event.DELIVERED, 1, 0))
    turn.received[("k",)] = [formats.pack_pair(1, 2)]
    turn.add_queued(formats.queued_key_of_one(1, 0, 1, 1), b"value", 5, ())
    turn.retained["t"] = Message("t", b"x")
    turn.retained["u"] = None
    turn.sessions["c"] = SessionRecord("c", 1)
    turn.sessions["d"] = None
    assert turn
    sessions, retained, queue = turn.parts("s", "r", NOW)
    assert (sessions.topic, retained.topic, queue.topic) == ("s", "r", "q")
    assert [(key, value is None, time) for key, value, time in records(sessions)] == [
        (b"c", False, NOW),
        (b"d", True, NOW),
    ]
    assert [(key, value is None) for key, value, _ in records(retained)] == [(b"t", False), (b"u", True)]
    found = records(queue)
    assert [formats.kind_of(key) for key, _, _ in found] == [
        Kind.QUEUED,
        Kind.RECEIVED,
        Kind.EVENTS,
        Kind.POSITIONS,
    ]
    assert found[0][1:] == (b"value", 5)
    assert [time for _, _, time in found[1:]] == [NOW] * 3


def test_the_last_record_of_a_turn_counts() -> None:
    turn = Turn("q", SessionRecords())
    turn.sessions["c"] = SessionRecord("c", 1)
    turn.sessions["c"] = SessionRecord("c", 2)
    turn.retained["t"] = Message("t", b"1")
    turn.retained["t"] = Message("t", b"2")
    sessions, retained = turn.parts("s", "r", NOW)
    ((_, value, _),) = records(sessions)
    assert value is not None
    assert formats.decode_session(b"c", value).number == 2
    ((_, value, _),) = records(retained)
    assert value is not None
    assert formats.decode_message(value).payload == b"2"


def test_limit() -> None:
    """Batches do not grow without end; a record that is larger by itself is a batch."""
    turn = Turn("q", SessionRecords())
    sizes = [BATCH_BYTES // 2 - 1000, BATCH_BYTES // 2 - 1000, 100_000, 2 * BATCH_BYTES, 1]
    for number, size in enumerate(sizes):
        turn.add_queued(formats.queued_key_of_one(1, number, 1, 1), bytes(size), NOW, ())
        turn.retained[str(number)] = Message(str(number), bytes(size))
    turn.events.append(formats.pack_event(Event.DELIVERED, 1, 0))
    parts = turn.parts("s", "r", NOW)
    retained = [part for part in parts if part.topic == "r"]
    queue = [part for part in parts if part.topic == "q"]
    assert [len(records(part)) for part in retained] == [2, 1, 1, 1]
    assert [len(records(part)) for part in queue] == [2, 1, 1, 2]
    assert [len(part.deliveries) for part in queue] == [2, 1, 1, 1]


def test_batches_are_made_again_as_they_were() -> None:
    turn = Turn("q", SessionRecords())
    turn.add_queued(formats.queued_key_of_one(1, 0, 1, 1), b"value", NOW, ())
    (part,) = turn.parts("s", "r", NOW)
    first = part.builder.finish()
    kept = bytes(first)
    first[:] = bytes(len(first))  # the broker writes its own fields
    assert part.builder.finish() == kept
