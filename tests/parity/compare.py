"""Two runs of a scenario, compared field by field.

First what can never be equal is named alike (ids made by the broker, its address), then lists that Kafka gives
in no fixed order are matched by their key, and what is left and differs is a `Difference`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parity.codec import ZERO_UUID
from parity.side import Exchange, Side

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Both are started from the same settings, except for ports and the data directory.
OTHER_PORT = re.compile(r"127\.0\.0\.1:\d+")
DATA = re.compile(r"^/[^,:\s]*/data$")
# The bounds of a timestamp that a message tells depend on the moment of the request.
TIME_RANGE = re.compile(r"within \[-?\d+, \d+\]")
# What tells the items of a list apart, in order of preference; a list whose items have one of them is a set.
KEYS = (
    ("resource_type", "resource_name"),
    ("type", "name"),
    ("name",),
    ("topic",),
    ("topic_name",),
    ("topic_id",),
    ("group_id",),
    ("key",),
    ("member_id",),
    ("api_key",),
    ("partition_index",),
    ("partition",),
    ("index",),
    ("broker_id",),
    ("node_id",),
    ("replica_id",),
    ("producer_id",),
    ("log_dir",),
    ("resource_name",),
)


@dataclass(frozen=True)
class Difference:
    api: str
    version: int
    case: str
    path: str
    kafka: object
    ours: object

    @property
    def place(self) -> str:
        """The path without positions and keys, as the allowed differences name it."""
        return re.sub(r"\[[^\]]*\]", "[]", self.path)


class Namer:
    """Replaces what one side's broker made up by names that are the same on both sides."""

    def __init__(self, side: Side) -> None:
        self.names = dict(side.labels)
        self.names[str(side.port)] = "<port>"
        self.address = (side.host, side.port)

    def plain(self, value: Any, field: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self.plain(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.plain(inner, field) for inner in value]
        if isinstance(value, str):
            value = value.replace(f":{self.address[1]}", ":<port>")
            value = OTHER_PORT.sub("127.0.0.1:<other port>", DATA.sub("<data>", value))
            value = TIME_RANGE.sub("within [<time>, <time>]", value)
            return UUID.sub(self._uuid, value)
        if field == "port" and value == self.address[1]:
            return "<port>"
        return value

    def _uuid(self, match: re.Match[str]) -> str:
        found = match.group()
        if found == ZERO_UUID:
            return found
        return self.names.setdefault(found, f"<uuid {len(self.names)}>")


def differences(kafka: Side, ours: Side) -> list[Difference]:
    """What differs between the two runs, in order."""
    found: list[Difference] = []
    name_kafka, name_ours = Namer(kafka), Namer(ours)
    theirs, mine = _by_case(kafka), _by_case(ours)
    for key in [*theirs, *(key for key in mine if key not in theirs)]:
        left, right = theirs.get(key), mine.get(key)
        where = left or right
        assert where is not None
        pair = (_answer(left, name_kafka), _answer(right, name_ours))
        for path, one, other in _walk("", *pair):
            found.append(Difference(where.api, where.version, where.case, path or "(answer)", one, other))
    return found


def _by_case(side: Side) -> dict[tuple[str, str, int, int], Exchange]:
    """The exchanges by api, case, version and how often these were there before."""
    found: dict[tuple[str, str, int, int], Exchange] = {}
    for one in side.exchanges:
        times = sum(
            1 for api, case, version, _ in found if (api, case, version) == (one.api, one.case, one.version)
        )
        found[one.api, one.case, one.version, times] = one
    return found


def _answer(exchange: Exchange | None, namer: Namer) -> Any:
    return "never asked" if exchange is None else namer.plain(exchange.answer)


def _walk(path: str, kafka: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in [*kafka, *(key for key in ours if key not in kafka)]:
            yield from _walk(f"{path}.{key}".lstrip("."), kafka.get(key, "absent"), ours.get(key, "absent"))
    elif isinstance(kafka, list) and isinstance(ours, list):
        yield from _walk_lists(path, kafka, ours)
    elif kafka != ours:
        yield path, kafka, ours


def _walk_lists(path: str, kafka: list[Any], ours: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    by_key = _keyed(kafka, ours)
    if by_key is not None:
        left, right = by_key
        for key in [*left, *(key for key in right if key not in left)]:
            yield from _walk(f"{path}[{key}]", left.get(key, "absent"), right.get(key, "absent"))
        return
    for at in range(max(len(kafka), len(ours))):
        one = kafka[at] if at < len(kafka) else "absent"
        other = ours[at] if at < len(ours) else "absent"
        yield from _walk(f"{path}[{at}]", one, other)


def _keyed(kafka: list[Any], ours: list[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    items = [*kafka, *ours]
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    for key in KEYS:
        if all(part in item for item in items for part in key):
            left, right = (
                {" ".join(str(item[part]) for part in key): item for item in side} for side in (kafka, ours)
            )
            if len(left) == len(kafka) and len(right) == len(ours):
                return left, right
    return None


def table(rows: list[Difference]) -> str:
    """The differences as text: api, version, case, field, Kafka's value, ours. Equal ones of versions together."""
    grouped: dict[tuple[str, str, str, str, str], list[int]] = {}
    for row in rows:
        key = (row.api, row.case, row.path, _short(row.kafka), _short(row.ours))
        grouped.setdefault(key, []).append(row.version)
    lines = []
    for (api, case, path, kafka, ours), versions in grouped.items():
        span = ",".join(map(str, sorted(set(versions))))
        lines.append(f"{api} v{span} | {case} | {path} | kafka: {kafka} | ours: {ours}")
    return "\n".join(lines)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}..."
