"""The rows of a table for one key, each from a time on, so that a row of a stream sees the table as of its own time:
what Kafka Streams has as versioned state stores (KIP-889).

Times are milliseconds since 1970. A row of the table that is None says that the key was deleted.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

Row = TypeVar("Row")


class Version(NamedTuple, Generic[Row]):
    """What the table has for the key from this time on."""

    since: int
    row: Row | None


class Change(NamedTuple, Generic[Row]):
    """A record of the table's topic. Of two with the same time the one with the greater offset counts."""

    time: int
    offset: int
    row: Row | None


def changed(versions: Sequence[Version[Row]], changes: Iterable[Change[Row]]) -> list[Version[Row]]:
    """The versions, by time, with these changes, which may come in any order and be older than versions are."""
    found = list(versions)
    for change in sorted(changes, key=lambda one: (one.time, one.offset)):
        at = bisect_left(found, change.time, key=_since)
        same = at < len(found) and found[at].since == change.time
        found[at : at + same] = [Version(change.time, change.row)]
    return found


def as_of(versions: Sequence[Version[Row]], time: int) -> Row | None:
    """The row that the table had at this time; None where it had none."""
    at = bisect_right(versions, time, key=_since)
    return versions[at - 1].row if at else None


def remembered(versions: Sequence[Version[Row]], time: int) -> list[Version[Row]]:
    """Without what no row of this time or a later one can see. None are left of a key that was deleted before."""
    at = bisect_right(versions, time, key=_since)
    first = at - 1 if at and versions[at - 1].row is not None else at
    return list(versions[first:])


def _since(one: Version[Row]) -> int:
    return one.since
