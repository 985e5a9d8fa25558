"""The records of the internal topics as bytes. No I/O. One module, because they are one format: what one version of it
writes the next one reads.

`__mqtt_sessions`: the key is the client identifier; the value is JSON, an object with `version`. Null: there is none.
Of a session with many subscriptions these are in buckets: the key is the client identifier, U+0000, which is in none
([MQTT-1.5.4-2]), and the number of the bucket as decimal digits.
`__mqtt_retained`: the key is the topic name; the value is a message. Null: there is none.
`__mqtt_queue`: the key says what the record is; numbers are big-endian:

    version 1 | kind | ...
    QUEUED     key: receivers u32 | size u32 | each: session u64, sequence u64, flags u8
                    | of those that have identifiers: count u16, each u32
               value: the message
    RECEIVED   key: names of Kafka topics, each behind its length u16
               value: each: session u64, number u64
    EVENTS     value: each: event u8, session u64, sequence or number u64
    POSITIONS  value: JSON

A message:

    version 1 | flags u8 | arrived i64 (ms) | topic length u16 | client id length u16 | topic | client id
    | if EXPIRES: i64 (ms) | if PROPERTIES: which u8, each: length u16 or one byte, bytes | payload

Whatever begins with another version was written by a later LeafCuttr: `VersionError`. All else that cannot be read is
damaged: `RecordFormatError`; a start leaves it out and counts it.

Longer than most modules because the writing and the reading of each format stand beside one another.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from struct import Struct, error
from typing import Any, Final, NamedTuple

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Properties, Will
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage.state import Bucket, History, SessionRecord

VERSION: Final = 1

Bytes = bytes | memoryview


class RecordFormatError(Exception):
    """The bytes are no record of this kind."""


class VersionError(RecordFormatError):
    """A later version of LeafCuttr has written this."""

    def __init__(self, what: str, version: object) -> None:
        super().__init__(
            f"{what} has the format version {version}; this LeafCuttr reads version {VERSION}, a later one wrote it"
        )


# Messages

_HEAD: Final = Struct(">BBqHH")
_LONG: Final = Struct(">q")
_SHORT: Final = Struct(">H")
_QOS: Final = 3
_RETAIN: Final = 4
_EXPIRES: Final = 8
_PROPERTIES: Final = 16
_FORMAT, _CONTENT_TYPE, _RESPONSE_TOPIC, _CORRELATION, _USER = 1, 2, 4, 8, 16


def encode_message(message: Message) -> bytes:
    """The message as it is stored."""
    topic, client_id = message.topic.encode(), message.client_id.encode()
    flags = message.qos | _RETAIN if message.retain else message.qos
    if not message.has_properties:
        head = _HEAD.pack(VERSION, flags, message.arrived_ms, len(topic), len(client_id))
        return b"".join((head, topic, client_id, message.payload))
    parts = [b"", topic, client_id]
    if message.expires_ms is not None:
        flags |= _EXPIRES
        parts.append(_LONG.pack(message.expires_ms))
    properties = _encode_properties(message)
    if properties:
        flags |= _PROPERTIES
        parts.append(properties)
    parts[0] = _HEAD.pack(VERSION, flags, message.arrived_ms, len(topic), len(client_id))
    parts.append(message.payload)
    return b"".join(parts)


def _encode_properties(message: Message) -> bytes:
    which, parts = 0, [b""]
    if message.payload_format is not None:
        which |= _FORMAT
        parts.append(bytes((message.payload_format,)))
    for bit, text in ((_CONTENT_TYPE, message.content_type), (_RESPONSE_TOPIC, message.response_topic)):
        if text is not None:
            which |= bit
            parts.append(_sized(text.encode()))
    if message.correlation_data is not None:
        which |= _CORRELATION
        parts.append(_sized(message.correlation_data))
    if message.user_properties:
        which |= _USER
        parts.append(_LONG.pack(len(message.user_properties)))
        for name, value in message.user_properties:
            parts += (_sized(name.encode()), _sized(value.encode()))
    parts[0] = bytes((which,))
    return b"".join(parts) if which else b""


def _sized(data: bytes) -> bytes:
    return _SHORT.pack(len(data)) + data


def decode_message(data: Bytes) -> Message:
    """Raises RecordFormatError, VersionError."""
    try:
        return _decode_message(data)
    except (error, IndexError, UnicodeDecodeError) as wrong:
        raise RecordFormatError(f"no message: {wrong}") from None


def _decode_message(data: Bytes) -> Message:
    if data[0] != VERSION:
        raise VersionError("a message", data[0])
    _, flags, arrived_ms, topic_size, client_size = _HEAD.unpack_from(data)
    client_at = _HEAD.size + topic_size
    at = client_at + client_size
    if at > len(data) or flags & ~(_QOS | _RETAIN | _EXPIRES | _PROPERTIES) or flags & _QOS == _QOS:
        raise RecordFormatError(f"no message: {len(data)} bytes, flags {flags:#x}")
    message = Message(
        str(data[_HEAD.size : client_at], "utf-8"), b"", flags & _QOS, bool(flags & _RETAIN),
        str(data[client_at:at], "utf-8"), arrived_ms,
    )  # fmt: skip
    if flags & _EXPIRES:
        (message.expires_ms,) = _LONG.unpack_from(data, at)
        at += 8
    if flags & _PROPERTIES:
        at = _decode_properties(message, data, at)
    message.payload = bytes(data[at:])
    return message


def _decode_properties(message: Message, data: Bytes, at: int) -> int:
    which = data[at]
    at += 1
    if which & _FORMAT:
        message.payload_format = data[at]
        at += 1
    if which & _CONTENT_TYPE:
        message.content_type, at = _text(data, at)
    if which & _RESPONSE_TOPIC:
        message.response_topic, at = _text(data, at)
    if which & _CORRELATION:
        correlation, at = _part(data, at)
        message.correlation_data = bytes(correlation)
    if which & _USER:
        (count,) = _LONG.unpack_from(data, at)
        at += 8
        pairs: list[tuple[str, str]] = []
        for _ in range(count):
            name, at = _text(data, at)
            value, at = _text(data, at)
            pairs.append((name, value))
        message.user_properties = tuple(pairs)
    return at


def _part(data: Bytes, at: int) -> tuple[Bytes, int]:
    (size,) = _SHORT.unpack_from(data, at)
    end = at + 2 + size
    if end > len(data):
        raise RecordFormatError(f"{size} bytes are claimed at {at}, {len(data) - at - 2} are left")
    return data[at + 2 : end], end


def _text(data: Bytes, at: int) -> tuple[str, int]:
    part, at = _part(data, at)
    return str(part, "utf-8"), at


# Sessions

_PROPERTY_NAMES: Final = (
    "payload_format_indicator", "message_expiry_interval", "content_type", "response_topic",
    "correlation_data", "will_delay_interval", "user_properties",
)  # fmt: skip
"""Those that a will has (3.1.3.2)."""


def encode_session(session: SessionRecord) -> bytes:
    """The value; the key is the client identifier."""
    fields: dict[str, Any] = {
        "version": VERSION,
        "number": session.number,
        "expiry_s": session.expiry_s,
        "connected_ms": session.connected_ms,
        "disconnected_ms": session.disconnected_ms,
        "subscriptions": [one._asdict() for one in session.subscriptions],
        "user_name": session.user_name,
        "sent": session.sent,
    }
    if session.who is not None:
        fields["who"] = session.who
    if session.will is not None:
        fields["will"] = _encode_will(session.will)
        fields["will_due_ms"] = session.will_due_ms
    if session.retained:
        fields["retained"] = session.retained
    if session.histories:
        fields["histories"] = [_encode_history(one) for one in session.histories]
    if session.divided:
        fields["divided"] = True
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _encode_will(will: Will) -> dict[str, Any]:
    found = {name: getattr(will.properties, name) for name in _PROPERTY_NAMES}
    properties = {name: value for name, value in found.items() if value is not None and value != ()}
    if "correlation_data" in properties:
        properties["correlation_data"] = base64.b64encode(properties["correlation_data"]).decode()
    return {
        "topic": will.topic,
        "payload": base64.b64encode(will.payload).decode(),
        "qos": will.qos,
        "retain": will.retain,
        "properties": properties,
    }


def decode_session(key: Bytes, value: Bytes) -> SessionRecord:
    """Raises RecordFormatError, VersionError."""
    try:
        fields = json.loads(bytes(value))
        version = fields["version"]
        if version != VERSION:
            raise VersionError("a session", version)
        will = fields.get("will")
        return SessionRecord(
            client_id=str(key, "utf-8"),
            number=int(fields["number"]),
            expiry_s=int(fields["expiry_s"]),
            connected_ms=int(fields["connected_ms"]),
            disconnected_ms=fields["disconnected_ms"],
            subscriptions=tuple(Subscription(**one) for one in fields["subscriptions"]),
            will=None if will is None else _decode_will(will),
            will_due_ms=fields.get("will_due_ms"),
            user_name=fields["user_name"],
            who=_decode_who(fields.get("who")),
            sent=int(fields["sent"]),
            retained=tuple(str(one) for one in fields.get("retained", ())),
            histories=tuple(_decode_history(one) for one in fields.get("histories", ())),
            divided=bool(fields.get("divided", False)),
        )
    except RecordFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise RecordFormatError(f"no session: {wrong!r}") from None


def _decode_who(who: Any) -> tuple[str, str, str] | None:
    if who is None:
        return None
    kind, name, host = who
    return str(kind), str(name), str(host)


def bucket_key(client_id: str, place: int) -> bytes:
    """The key of a bucket of this session."""
    return f"{client_id}\0{place}".encode()


def decode_bucket_key(key: Bytes) -> tuple[str, int] | None:
    """Client identifier, and number of the bucket; None: it is the key of a session. Raises RecordFormatError."""
    client_id, separator, place = bytes(key).partition(b"\0")
    if not separator:
        return None
    try:
        return client_id.decode(), int(place)
    except ValueError as wrong:
        raise RecordFormatError(f"no key of a bucket: {wrong}") from None


def encode_bucket(bucket: Bucket) -> bytes:
    fields = {
        "version": VERSION,
        "session": bucket.session,
        "subscriptions": [one._asdict() for one in bucket.subscriptions],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def decode_bucket(value: Bytes) -> Bucket:
    """Raises RecordFormatError, VersionError."""
    try:
        fields = json.loads(bytes(value))
        if fields["version"] != VERSION:
            raise VersionError("a bucket of a session", fields["version"])
        return Bucket(int(fields["session"]), tuple(Subscription(**one) for one in fields["subscriptions"]))
    except RecordFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise RecordFormatError(f"no bucket of a session: {wrong!r}") from None


def _encode_history(history: History) -> dict[str, Any]:
    fields = history._asdict()
    for name in ("positions", "reached"):
        fields[name] = [[topic, number, offset] for (topic, number), offset in fields[name].items()]
    return fields


def _decode_history(fields: Mapping[str, Any]) -> History:
    positions, reached = (
        {(str(topic), int(number)): int(offset) for topic, number, offset in fields[name]}
        for name in ("positions", "reached")
    )
    since_ms = fields["since_ms"]
    return History(
        str(fields["filter"]),
        None if since_ms is None else int(since_ms),
        int(fields["offset"]),
        positions,
        reached,
        int(fields["sequence"]),
    )


def _decode_will(fields: Mapping[str, Any]) -> Will:
    properties = dict(fields["properties"])
    if "correlation_data" in properties:
        properties["correlation_data"] = base64.b64decode(properties["correlation_data"])
    if "user_properties" in properties:
        properties["user_properties"] = tuple((name, value) for name, value in properties["user_properties"])
    return Will(
        fields["topic"],
        base64.b64decode(fields["payload"]),
        fields["qos"],
        fields["retain"],
        Properties(**properties),
    )


# The queue


class Kind(IntEnum):
    """Of a record of the queue."""

    QUEUED = 1
    RECEIVED = 2
    EVENTS = 3
    POSITIONS = 4


class Event(IntEnum):
    """Of an entry of EVENTS. Its last field is a sequence, or the number of a message."""

    DELIVERED = 1
    """The delivery is over: PUBACK or PUBCOMP came, or it was dropped."""
    RELEASED = 2
    """PUBREC came: the message is not needed any more, PUBREL goes out until PUBCOMP comes."""
    COMPLETED = 3
    """PUBREL came for the message of this number."""
    NEXT = 4
    """The session's next sequence is this one: said at checkpoints."""
    NEXT_NUMBER = 5
    """And this is above the numbers of what came."""


class Receiver(NamedTuple):
    """For whom a queued message is."""

    session: int
    sequence: int
    flags: int
    identifiers: tuple[int, ...] = ()


class Queued(NamedTuple):
    size: int
    receivers: tuple[Receiver, ...]


class Positions(NamedTuple):
    """Up to where nobody has to look for QoS 2 messages in Kafka topics."""

    positions: Mapping[str, tuple[int, ...]]
    """By topic, for each partition: all messages with a record at a lower offset are finished."""
    unfinished: frozenset[int]
    """Record numbers of the messages that were received before this record and are not finished."""
    next_session: int


_QUEUED_HEAD: Final = Struct(">BBII")
_RECEIVER: Final = Struct(">QQB")
_PAIR: Final = Struct(">QQ")
_EVENT: Final = Struct(">BQQ")
_IDENTIFIER: Final = Struct(">I")
HAS_IDENTIFIERS: Final = 8
EVENTS_KEY: Final = bytes((VERSION, Kind.EVENTS))
POSITIONS_KEY: Final = bytes((VERSION, Kind.POSITIONS))

_ONE_RECEIVER: Final = Struct(">BBIIQQB")
pack_event: Final = _EVENT.pack
pack_pair: Final = _PAIR.pack


def flags_of(qos: int, retain: bool, identifiers: tuple[int, ...]) -> int:
    """Bits 0 and 1: QoS; 2: retain; 3: there are subscription identifiers."""
    return qos | (4 if retain else 0) | (HAS_IDENTIFIERS if identifiers else 0)


def queued_key_of_one(session: int, sequence: int, flags: int, size: int) -> bytes:
    """The key of a message for one session, without identifiers."""
    return _ONE_RECEIVER.pack(VERSION, 1, 1, size, session, sequence, flags)


def queued_key(size: int, receivers: Iterable[Receiver]) -> bytes:
    """The key of a queued message."""
    parts = [b""]
    ends: list[bytes] = []
    for session, sequence, flags, identifiers in receivers:
        parts.append(_RECEIVER.pack(session, sequence, flags))
        if identifiers:
            ends.append(_SHORT.pack(len(identifiers)))
            ends += [_IDENTIFIER.pack(one) for one in identifiers]
    parts[0] = _QUEUED_HEAD.pack(VERSION, Kind.QUEUED, len(parts) - 1, size)
    return b"".join(parts + ends)


def kind_of(key: Bytes | None) -> Kind:
    """What a record of the queue is. Raises RecordFormatError, VersionError."""
    if key is None or len(key) < 2:
        raise RecordFormatError("a record without a kind")
    if key[0] != VERSION:
        raise VersionError("a record", key[0])
    try:
        return Kind(key[1])
    except ValueError:
        raise RecordFormatError(f"there is no kind {key[1]}") from None


def decode_queued(key: Bytes) -> Queued:
    """Raises RecordFormatError."""
    try:
        _, _, count, size = _QUEUED_HEAD.unpack_from(key)
        end = _QUEUED_HEAD.size + count * _RECEIVER.size
        if end > len(key):
            raise RecordFormatError(f"{count} receivers are claimed in {len(key)} bytes")
        receivers = [Receiver(*one) for one in _RECEIVER.iter_unpack(key[_QUEUED_HEAD.size : end])]
        at = end
        for index, one in enumerate(receivers):
            if one.flags & HAS_IDENTIFIERS:
                start = at + _SHORT.size
                stop = start + _SHORT.unpack_from(key, at)[0] * _IDENTIFIER.size
                if stop > len(key):
                    raise RecordFormatError("identifiers are missing")
                numbers = tuple(number for (number,) in _IDENTIFIER.iter_unpack(key[start:stop]))
                receivers[index] = one._replace(identifiers=numbers)
                at = stop
    except (error, IndexError) as wrong:
        raise RecordFormatError(f"no queued message: {wrong}") from None
    if at != len(key):
        raise RecordFormatError(f"{len(key) - at} bytes follow the receivers")
    return Queued(size, tuple(receivers))


def decode_plain_receivers(key: Bytes) -> tuple[int, list[tuple[int, int, int]]] | None:
    """Size, and session, sequence and flags of each receiver, where none has identifiers: quicker than `decode_queued`,
    which reads all others. None: it is one of those, or damaged."""
    if len(key) < _QUEUED_HEAD.size:
        return None
    _, _, count, size = _QUEUED_HEAD.unpack_from(key)
    if len(key) != _QUEUED_HEAD.size + count * _RECEIVER.size:
        return None
    receivers = list(_RECEIVER.iter_unpack(key[_QUEUED_HEAD.size :]))
    for _, _, flags in receivers:
        if flags & HAS_IDENTIFIERS:
            return None
    return size, receivers


def received_key(topics: Iterable[str]) -> bytes:
    """The key of messages that are for these Kafka topics."""
    return bytes((VERSION, Kind.RECEIVED)) + b"".join(_sized(name.encode()) for name in topics)


def decode_received_key(key: Bytes) -> tuple[str, ...]:
    """Raises RecordFormatError."""
    names: list[str] = []
    at = 2
    try:
        while at < len(key):
            name, at = _text(key, at)
            names.append(name)
    except (error, UnicodeDecodeError) as wrong:
        raise RecordFormatError(f"no names: {wrong}") from None
    return tuple(names)


def decode_pairs(value: Bytes | None) -> Iterator[tuple[int, int]]:
    """Session, and number of the message, of each. Raises RecordFormatError."""
    if value is None or len(value) % _PAIR.size:
        raise RecordFormatError("no pairs")
    return _PAIR.iter_unpack(value)


def decode_events(value: Bytes | None) -> Iterator[tuple[int, int, int]]:
    """Event, session, and sequence or number, of each. Raises RecordFormatError."""
    if value is None or len(value) % _EVENT.size:
        raise RecordFormatError("no events")
    return _EVENT.iter_unpack(value)


def encode_positions(positions: Positions) -> bytes:
    fields = {
        "version": VERSION,
        "positions": {topic: list(offsets) for topic, offsets in positions.positions.items()},
        "unfinished": sorted(positions.unfinished),
        "next_session": positions.next_session,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_positions(value: Bytes | None) -> Positions:
    """Raises RecordFormatError, VersionError."""
    try:
        fields = json.loads(bytes(value or b""))
        if fields["version"] != VERSION:
            raise VersionError("a record of positions", fields["version"])
        return Positions(
            {
                str(topic): tuple(int(one) for one in offsets)
                for topic, offsets in fields["positions"].items()
            },
            frozenset(int(one) for one in fields["unfinished"]),
            int(fields["next_session"]),
        )
    except RecordFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
        raise RecordFormatError(f"no positions: {wrong!r}") from None
