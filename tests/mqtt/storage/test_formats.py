"""Records of the internal topics: there and back, of later versions, and damaged."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage import formats
from leafcuttr_mqtt.storage.formats import Event, Kind, Positions, Receiver, RecordFormatError, VersionError
from leafcuttr_mqtt.storage.state import Bucket, SessionRecord
from mqtt.storage import strategies

PLAIN = Message("a/b", b"payload", 1, True, "client", 1_700_000_000_000)
READERS: list[Callable[[bytes], Any]] = [
    formats.decode_message,
    lambda data: formats.decode_session(b"client", data),
    formats.decode_bucket,
    formats.decode_bucket_key,
    formats.decode_queued,
    formats.decode_received_key,
    formats.kind_of,
    formats.decode_positions,
    lambda data: list(formats.decode_events(data)),
    lambda data: list(formats.decode_pairs(data)),
]


@given(strategies.messages)
def test_messages(message: Message) -> None:
    assert formats.decode_message(formats.encode_message(message)) == message


@given(strategies.messages)
def test_messages_from_views(message: Message) -> None:
    found = formats.decode_message(memoryview(formats.encode_message(message)))
    assert found == message
    assert type(found.payload) is bytes
    assert type(found.correlation_data) in (bytes, type(None))


def test_a_message_as_bytes() -> None:
    """What is stored stays readable: these bytes may not change within a version."""
    assert formats.encode_message(PLAIN).hex(" ") == (
        "01 05 00 00 01 8b cf e5 68 00 00 03 00 06 61 2f 62 63 6c 69 65 6e 74 70 61 79 6c 6f 61 64"
    )
    full = replace(
        PLAIN,
        retain=False,
        expires_ms=1_700_000_005_000,
        payload_format=1,
        content_type="t",
        response_topic="r",
        correlation_data=b"c",
        user_properties=(("k", "v"),),
    )
    assert formats.encode_message(full).hex(" ") == (
        "01 19 00 00 01 8b cf e5 68 00 00 03 00 06 61 2f 62 63 6c 69 65 6e 74 00 00 01 8b cf e5 7b 88 1f 01 00 01 74"
        " 00 01 72 00 01 63 00 00 00 00 00 00 00 01 00 01 6b 00 01 76 70 61 79 6c 6f 61 64"
    )


@given(strategies.sessions, st.booleans())
def test_sessions(session: SessionRecord, without_will: bool) -> None:
    if without_will:
        session = replace(session, will=None, will_due_ms=None)
    key, value = session.client_id.encode(), formats.encode_session(session)
    assert formats.decode_session(key, value) == session
    assert json.loads(value)["version"] == 1


@given(strategies.sessions, st.integers(0, 255))
def test_buckets(session: SessionRecord, place: int) -> None:
    session = replace(session, client_id=session.client_id.replace("\0", ""))  # [MQTT-1.5.4-2]
    bucket = Bucket(session.number, session.subscriptions)
    assert formats.decode_bucket(formats.encode_bucket(bucket)) == bucket
    key = formats.bucket_key(session.client_id, place)
    assert formats.decode_bucket_key(key) == (session.client_id, place)
    assert formats.decode_bucket_key(session.client_id.encode()) is None
    divided = replace(session, divided=True)
    assert formats.decode_session(session.client_id.encode(), formats.encode_session(divided)) == divided


@given(st.integers(0, (1 << 32) - 1), st.lists(strategies.receivers, max_size=5))
def test_queued(size: int, receivers: list[Receiver]) -> None:
    key = formats.queued_key(size, receivers)
    assert formats.kind_of(key) is Kind.QUEUED
    assert formats.decode_queued(key) == (size, tuple(receivers))
    plain = formats.decode_plain_receivers(key)
    if any(one.identifiers for one in receivers):
        assert plain is None
    else:
        assert plain == (size, [one[:3] for one in receivers])


@given(strategies.numbers, strategies.sequences, st.integers(1, 2), st.integers(0, (1 << 32) - 1))
def test_queued_for_one(session: int, sequence: int, flags: int, size: int) -> None:
    key = formats.queued_key_of_one(session, sequence, flags, size)
    assert key == formats.queued_key(size, [Receiver(session, sequence, flags)])


@given(st.lists(strategies.texts, max_size=4))
def test_received(topics: list[str]) -> None:
    key = formats.received_key(topics)
    assert formats.kind_of(key) is Kind.RECEIVED
    assert formats.decode_received_key(key) == tuple(topics)


@given(st.lists(st.tuples(strategies.numbers, strategies.sequences)))
def test_pairs(pairs: list[tuple[int, int]]) -> None:
    assert list(formats.decode_pairs(b"".join(formats.pack_pair(*one) for one in pairs))) == pairs


@given(st.lists(st.tuples(st.sampled_from(Event), strategies.numbers, strategies.sequences)))
def test_events(events: list[tuple[Event, int, int]]) -> None:
    assert list(formats.decode_events(b"".join(formats.pack_event(*one) for one in events))) == events


@given(
    st.dictionaries(strategies.texts, st.lists(st.integers(0, 1 << 62), max_size=3).map(tuple)),
    st.frozensets(st.integers(0, 1 << 100)),
    strategies.numbers,
)
def test_positions(
    positions: dict[str, tuple[int, ...]], unfinished: frozenset[int], next_session: int
) -> None:
    given = Positions(positions, unfinished, next_session)
    assert formats.decode_positions(formats.encode_positions(given)) == given


@pytest.mark.one_in(2)
@pytest.mark.parametrize("read", READERS)
@given(st.data())
def test_damage(read: Callable[[bytes], Any], data: st.DataObject) -> None:
    """Whatever the bytes are: an answer or RecordFormatError, and nothing is allocated that they merely claim."""
    whole = data.draw(
        st.sampled_from(
            [
                formats.encode_message(replace(PLAIN, content_type="x", user_properties=(("a", "b"),))),
                formats.encode_session(SessionRecord("c", 1)),
                formats.encode_bucket(Bucket(1, (Subscription("a", 1),))),
                formats.bucket_key("c", 200),
                formats.queued_key(7, [Receiver(1, 2, 9, (3,)), Receiver(1, 2, 1)]),
                formats.received_key(["abc"]),
                formats.encode_positions(Positions({"t": (1, 2)}, frozenset((3,)), 4)),
                formats.pack_event(Event.DELIVERED, 1, 2),
            ]
        )
    )
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    with contextlib.suppress(RecordFormatError):
        read(bytes(damaged[:cut]))


@pytest.mark.parametrize("read", READERS)
@given(st.binary(max_size=60))
def test_any_bytes(read: Callable[[bytes], Any], data: bytes) -> None:
    with contextlib.suppress(RecordFormatError):
        read(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x01", formats.encode_message(PLAIN)[:20], b"\x01\x07" + formats.encode_message(PLAIN)[2:]],
)
def test_no_message(data: bytes) -> None:
    with pytest.raises(RecordFormatError):
        formats.decode_message(data)


def test_unknown_flags_are_damage() -> None:
    with pytest.raises(RecordFormatError, match="flags 0x81"):
        formats.decode_message(b"\x01\x81" + formats.encode_message(PLAIN)[2:])


@pytest.mark.parametrize("end", [-1, 1])
def test_receivers_and_identifiers_fill_the_key(end: int) -> None:
    key = formats.queued_key(7, [Receiver(1, 2, 9, (3, 4))])
    with pytest.raises(RecordFormatError):
        formats.decode_queued(key[:end] if end < 0 else key + b"x")
    key = formats.queued_key(7, [Receiver(1, 2, 1)])
    assert formats.decode_plain_receivers(key) is not None
    assert formats.decode_plain_receivers(key[:end] if end < 0 else key + b"x") is None
    assert formats.decode_plain_receivers(b"") is None


def test_claimed_receivers_are_not_made() -> None:
    with pytest.raises(RecordFormatError, match="4294967295 receivers are claimed in 27 bytes"):
        formats.decode_queued(b"\x01\x01" + b"\xff" * 4 + bytes(21))


def test_later_versions_are_named() -> None:
    later = b"\x02" + formats.encode_message(PLAIN)[1:]
    with pytest.raises(
        VersionError, match="format version 2; this LeafCuttr reads version 1, a later one wrote it"
    ):
        formats.decode_message(later)
    with pytest.raises(VersionError):
        formats.kind_of(b"\x02\x01")
    for read, name in (
        (formats.decode_positions, "positions"),
        (lambda data: formats.decode_session(b"", data), "session"),
        (formats.decode_bucket, "bucket"),
    ):
        with pytest.raises(VersionError, match=name):
            read(b'{"version": 2}')


def test_an_unknown_kind_is_damage() -> None:
    with pytest.raises(RecordFormatError, match="no kind 9"):
        formats.kind_of(b"\x01\x09")
    with pytest.raises(RecordFormatError):
        formats.kind_of(None)


def test_flags() -> None:
    assert formats.flags_of(2, True, (1,)) == 14
    assert formats.flags_of(1, False, ()) == 1
