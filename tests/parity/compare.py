"""Two runs of a scenario, compared field by field.

First what can never be equal is named alike (ids made by the broker, its address), then the items of lists are matched
by their key, so that one that is missing does not make all others differ; what is left and differs is a `Difference`.
The order of a list is one of its own, with `(order)` behind its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from parity.codec import ZERO_UUID
from parity.side import CONCURRENT_TRANSACTIONS, Exchange, Side

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Both are started from the same settings, except for ports and the data directory.
OTHER_PORT = re.compile(r"127\.0\.0\.1:\d+")
DATA = re.compile(r"^/[^,:\s]*/data$")
# The bounds of a timestamp that a message tells depend on the moment of the request.
TIME_RANGE = re.compile(r"within \[-?\d+, \d+\]")
# What tells the items of a list apart, in order of preference.
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


ORDER = " (order)"
ASKED_AGAIN = "asked again"
# How many of these answers ours may give in one scenario. What is not here it never gives: where Kafka says "not yet",
# LeafCuttr has done it. CONCURRENT_TRANSACTIONS comes while markers wait for the disk: with pauses that double, this
# many take more than two seconds.
MOST_ASKED_AGAIN = {CONCURRENT_TRANSACTIONS: 8}


@dataclass(frozen=True)
class Difference:
    """`as_asked`: of an order, whether ours is the order in which the request names the items."""

    api: str
    version: int
    case: str
    path: str
    kafka: object
    ours: object
    as_asked: bool = False

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
        for prefix, read in (("", _answer), ("(header)", _header)):
            pair = read(left, name_kafka), read(right, name_ours)
            for path, one, other in _walk(prefix, *pair):
                asked = (
                    path.endswith(ORDER)
                    and right is not None
                    and _is_asked(name_ours.plain(right.request), other)
                )
                found.append(
                    Difference(where.api, where.version, where.case, path or "(answer)", one, other, asked)
                )
    return found + _unready(kafka, ours)


def _unready(kafka: Side, ours: Side) -> list[Difference]:
    """The answers by which ours said too often that it is not ready. Kafka's number depends on its machine's speed."""
    return [
        Difference(api, -1, ASKED_AGAIN, f"answers with error {code}", kafka.asked_again[api, code], count)
        for (api, code), count in ours.asked_again.items()
        if count > MOST_ASKED_AGAIN.get(code, 0)
    ]


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


def _header(exchange: Exchange | None, namer: Namer) -> Any:
    return None if exchange is None else exchange.header


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
        common = [key for key in left if key in right], [key for key in right if key in left]
        if common[0] != common[1]:
            yield f"{path}{ORDER}", *common
        return
    for at in range(max(len(kafka), len(ours))):
        one = kafka[at] if at < len(kafka) else "absent"
        other = ours[at] if at < len(ours) else "absent"
        yield from _walk(f"{path}[{at}]", one, other)


def _is_asked(request: Any, keys: list[str]) -> bool:
    """Whether some list of a request names all these items in this order."""
    if isinstance(request, dict):
        return any(_is_asked(inner, keys) for inner in request.values())
    if not isinstance(request, list | tuple):
        return False
    named: dict[str, int] = {}
    for at, item in enumerate(request):
        values = item.values() if isinstance(item, dict) else (item,)
        for value in values:
            named.setdefault(str(value), at)
    places = [named.get(key, -1) for key in keys]
    if -1 not in places and places == sorted(set(places)):
        return True
    return any(_is_asked(item, keys) for item in request)


def _keyed(kafka: list[Any], ours: list[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    items = [*kafka, *ours]
    if all(isinstance(item, int | str) for item in items):
        left, right = ({str(item): item for item in side} for side in (kafka, ours))
        return (left, right) if len(left) == len(kafka) and len(right) == len(ours) else None
    if not all(isinstance(item, dict) for item in items):
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
