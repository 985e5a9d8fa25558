"""Produce: records that are not what the header of their batch says, whose CRC is right."""

from __future__ import annotations

from typing import Any

from parity.batches import NOW, batch, headers, record, varint
from parity.scenario import scenario
from parity.scenarios.fetch import fetch, part
from parity.scenarios.produce import CHECKS, produce
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
    "a length of five bytes": {"body": b"\x90\x80\x80\x80\0" + GOOD[1:]},
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


CODECS = ("gzip", "lz4", "zstd")


@scenario("produce", also_with=CHECKS)
def ends(side: Side, version: int) -> None:
    """One bad producer must not stop all consumers: what they could not step over is refused."""
    ask(side, version, {f"ends: {case}": batch(["x"], **parts) for case, parts in ENDS.items()})


@scenario("produce", also_with=CHECKS)
def inside(side: Side, version: int) -> None:
    ask(side, version, {f"inside: {case}": batch(["x"], **parts) for case, parts in INSIDE.items()})


@scenario("produce", versions=(7, 13), also_with=CHECKS)
def compressed(side: Side, version: int) -> None:
    asks = {
        f"compressed: {case}, {codec}": batch(["x"], codec=codec, **parts)
        for codec in CODECS
        for case, parts in (ENDS | INSIDE).items()
    }
    for number, name in enumerate(("gzip", "snappy", "lz4", "zstd"), 1):
        asks[f"compressed: no {name} at all"] = batch(attributes=number, body=b"\xff" * 40)
        asks[f"compressed: nothing, {name}"] = batch(attributes=number, body=b"")
    ask(side, version, asks)


def ask(side: Side, version: int, asks: dict[str, bytes]) -> None:
    """Each batch to a partition of its own, what its header says once it is stored, and whether it is good for more."""
    topic = side.create(partitions=len(asks))
    for at, (case, records) in enumerate(asks.items()):
        side.ask("produce", version, produce(side, topic, records, at), case)
        side.ask("produce", version, produce(side, topic, batch(["good"]), at), f"{case}; then a good one")
    parts = [part(at, 0) for at in range(len(asks))]
    answer = side.quiet("fetch", 11, fetch(side, {topic: parts}, max_bytes=1 << 24))
    found = {one["partition_index"]: one["records"] for one in answer["responses"][0]["partitions"]}
    for at, case in enumerate(asks):
        stored = [{"max_time": one["max_time"], "count": one["count"]} for one in headers(found[at])]
        side.note("fetch", 11, f"{case}; stored", {"batches": stored})
