"""Produce: records that are not what the header of their batch says, whose CRC is right."""

from __future__ import annotations

from typing import Any

from parity.batches import NOW, batch, headers, record, varint
from parity.scenario import scenario
from parity.scenarios.produce import produce
from parity.side import Side

TEN_YEARS = 3650 * 86_400_000
GOOD = record(0, b"k", b"v")


def sized(body: bytes) -> bytes:
    """A record of these bytes, behind their length."""
    return varint(len(body)) + body


def fields(*, time: bytes = b"\0", offset: bytes = b"\0", rest: bytes = b"\2k\2v\0") -> bytes:
    """A record that may be wrong inside; its length is right. The rest: key, value and headers."""
    return sized(b"\0" + time + offset + rest)


ENDS: dict[str, dict[str, Any]] = {
    "ones": {"body": b"\xff" * 40},
    "zeros": {"body": bytes(40)},
    "a length of six bytes": {"body": b"\x80\x80\x80\x80\x80\1" + bytes(20)},
    "a length whose fifth byte is too large": {"body": b"\x80\x80\x80\x80\x70" + bytes(20)},
    "a length of five bytes": {"body": b"\x8e\x80\x80\x80\0" + GOOD[1:]},
    "a negative length": {"body": varint(-9) + GOOD[1:]},
    "a length of more than is left": {"body": varint(900) + GOOD[1:]},
    "a length that is cut short": {"body": GOOD + b"\x8e", "count": 2, "last_delta": 1},
    "junk behind the last": {"body": GOOD + b"junk behind"},
    "one byte behind the last": {"body": GOOD + b"\0"},
    "a record too many": {"body": GOOD + record(1, b"k", b"w")},
    "a record too few": {"body": GOOD, "count": 2, "last_delta": 1},
    "ten records too few": {"body": GOOD * 3, "count": 13, "last_delta": 12},
    "ones behind a good one": {"body": GOOD + b"\xff" * 40, "count": 2, "last_delta": 1},
}
"""What `lc.records.check=ends` finds, where it is not compressed."""

INSIDE: dict[str, dict[str, Any]] = {
    "a key of more than the record": {"body": fields(rest=varint(99) + b"k\2v\0")},
    "a value of more than the record": {"body": fields(rest=b"\2k" + varint(99) + b"v\0")},
    "a key of minus five bytes": {"body": fields(rest=varint(-5) + b"\2v\0")},
    "a key of many bytes": {"body": fields(rest=varint(1 << 30) + b"k\2v\0")},
    "a record longer than its fields": {"body": fields(rest=b"\2k\2v\0more")},
    "a record shorter than its fields": {"body": varint(5) + GOOD[1:]},
    "a time delta without end": {"body": fields(time=b"\xff" * 11)},
    "an offset delta without end": {"body": fields(offset=b"\xff" * 6)},
    "an offset delta of five": {"body": fields(offset=varint(5))},
    "minus one headers": {"body": fields(rest=b"\2k\2v" + varint(-1))},
    "more headers than bytes": {"body": fields(rest=b"\2k\2v" + varint(99))},
    "a header without a key": {"body": fields(rest=b"\2k\2v\2" + varint(-1) + b"\2h")},
    "a header of more than the record": {"body": fields(rest=b"\2k\2v\2\2h" + varint(99) + b"x")},
    "a header's value of minus five bytes": {"body": fields(rest=b"\2k\2v\2\2h" + varint(-5))},
    "an empty record": {"body": sized(b"")},
    "a record of one byte": {"body": sized(b"\0")},
    "ten years ahead of its header": {"body": fields(time=varint(TEN_YEARS)), "max_time": NOW},
    "far behind its header": {"body": GOOD, "max_time": NOW + 50},
    "a little ahead of its header": {"body": fields(time=varint(30)), "max_time": NOW},
    "before 1970": {"body": fields(time=varint(-2 * NOW))},
}
"""What only `lc.records.check=full` finds."""

LENIENT = (
    "a length of five bytes",
    "far behind its header",
    "a little ahead of its header",
    "before 1970",
)
"""Those of both that are no mistake, or one that is put right: they are stored."""


@scenario("produce")
def ends(side: Side, version: int) -> None:
    """One bad producer must not stop all consumers: what they could not step over is refused."""
    refused(side, version, ENDS, "none")


@scenario("produce")
def inside(side: Side, version: int) -> None:
    refused(side, version, INSIDE, "none")


@scenario("produce", versions=(7, 13))
def compressed(side: Side, version: int) -> None:
    for codec in ("gzip", "lz4", "zstd"):
        refused(side, version, ENDS | INSIDE, codec)


def refused(side: Side, version: int, wrong: dict[str, dict[str, Any]], codec: str) -> None:
    topic = side.create(f"topic-{codec}")
    for case, parts in wrong.items():
        records = batch(["x"], codec=codec, **parts)
        case = case if codec == "none" else f"{case}, {codec}"
        side.ask("produce", version, produce(side, topic, records), case)
    side.ask("produce", version, produce(side, topic, batch(["good"])), f"a good one, {codec}")
    stored = side.quiet(
        "fetch",
        11,
        {
            "replica_id": -1,
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [
                {
                    "topic": topic,
                    "partitions": [
                        {
                            "partition": 0,
                            "current_leader_epoch": -1,
                            "fetch_offset": 0,
                            "last_fetched_epoch": -1,
                            "log_start_offset": -1,
                            "partition_max_bytes": 1 << 20,
                        }
                    ],
                }
            ],
            "forgotten_topics_data": [],
            "rack_id": "",
        },
    )
    data = stored["responses"][0]["partitions"][0]["records"]
    for at, one in enumerate(headers(data)):
        side.note("fetch", 11, f"batch {at}, {codec}", dict(one))
