"""Records that a filter or a validator will meet sooner or later: what clients send, not what one expects of them."""

from typing import Final, NamedTuple

from leafcuttr_sdk.records import Record

NOW_MS: Final = 1_700_000_000_000
"""When the samples were made, if their time is not the point; what the clock of the checks says too."""
BIG: Final = 1_000_000
"""Bytes of a big value: a little less than what `message.max.bytes` allows by default."""
DEPTH: Final = 100_000
"""Of nested JSON: `json.loads` raises RecursionError, which is no ValueError."""


class Sample(NamedTuple):
    what: str
    """For messages: `a tombstone (a key without a value)`."""
    record: Record


def sample_records() -> list[Sample]:
    """The records that the checks try, each with a time, as every record that a filter gets."""
    return [
        Sample(what, record if record.timestamp is not None else record._replace(timestamp=NOW_MS))
        for what, record in _samples()
    ]


def _samples() -> list[tuple[str, Record]]:
    text = b"21.5 degrees"
    deep = b"[" * DEPTH + b"]" * DEPTH
    return [
        ("a plain record", Record(text, b"sensor-1")),
        ("a record without a key", Record(text)),
        ("a tombstone (a key without a value)", Record(None, b"sensor-1")),
        ("a record without key and value", Record(None)),
        ("an empty value", Record(b"", b"sensor-1")),
        ("an empty key", Record(text, b"")),
        ("a value that is no UTF-8", Record(b"\x00\xff\xfe\x80", b"sensor-1")),
        ("a key that is no UTF-8", Record(text, b"\xc3\x28")),
        ("a value of JSON", Record(b'{"temperature": 21.5, "unit": "C"}', b"sensor-1")),
        ("a value of JSON that is no object", Record(b"[1, null]", b"sensor-1")),
        ("a value that is nearly JSON", Record(b'{"temperature": ', b"sensor-1")),
        ("an empty object of JSON", Record(b"{}", b"sensor-1")),
        ("a value of JSON with NaN", Record(b'{"temperature": NaN, "unit": "C"}', b"sensor-1")),
        ("a value of JSON with an infinite number", Record(b'{"temperature": -1e999}', b"sensor-1")),
        (
            "a value of JSON with a number of 5,000 digits",
            Record(b'{"temperature": %s}' % (b"7" * 5000), b"sensor-1"),
        ),
        # RFC 8259, 8.2: allowed, and no text that can be encoded.
        (
            "a value of JSON with half of a surrogate pair",
            Record(b'{"temperature": "\\ud83d", "\\udd25": "C"}', b"sensor-1"),
        ),
        (
            "a value of JSON with a member twice",
            Record(b'{"temperature": 21.5, "temperature": null}', b"sensor-1"),
        ),
        ("a value of JSON that is nested 100,000 deep", Record(deep, b"sensor-1")),
        ("a key of JSON that is nested 100,000 deep", Record(text, deep)),
        (
            "a value of JSON of 1,000,000 bytes",
            Record(b'{"temperature": 21.5, "text": "%s"}' % (b"x" * (BIG - 33)), b"sensor-1"),
        ),
        (
            "a value of a schema registry (magic byte 0)",
            Record(b"\x00\x00\x00\x00\x01\x02\x06abc", b"sensor-1"),
        ),
        ("a value of spaces", Record(b"  \n", b"sensor-1")),
        ("a value of 1,000,000 bytes", Record(b"x" * BIG, b"sensor-1")),
        ("headers", Record(text, b"sensor-1", (("source", b"test"), ("trace", b"\x01\x02")))),
        ("a header twice", Record(text, b"sensor-1", (("source", b"first"), ("source", b"second")))),
        ("a header without a value", Record(text, b"sensor-1", (("source", None),))),
        ("a header with an empty value", Record(text, b"sensor-1", (("source", b""),))),
        ("a header with an empty name", Record(text, b"sensor-1", (("", b"test"),))),
        ("a header whose name is no ASCII", Record(text, b"sensor-1", (("größe", b"1"),))),
        ("a record of 1970", Record(text, b"sensor-1", timestamp=0)),
        ("a record of tomorrow", Record(text, b"sensor-1", timestamp=NOW_MS + 86_400_000)),
        ("the same record again", Record(text, b"sensor-1")),
    ]
