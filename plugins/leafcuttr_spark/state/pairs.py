"""Two tables joined by their key, for one key: each change of either gives the joined row, or says that it is gone, as
Kafka Streams joins a KTable with a KTable."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, TypeVar

Left = TypeVar("Left")
Right = TypeVar("Right")


@dataclass(frozen=True)
class Pair(Generic[Left, Right]):
    """What both tables have for the key now."""

    left: Left | None = None
    right: Right | None = None


class Change(NamedTuple, Generic[Left, Right]):
    """A record of one of the tables; without a row it deletes. Changes count in the order of times, then offsets."""

    time: int
    offset: int
    is_right: bool
    row: Left | Right | None


class Given(NamedTuple, Generic[Left, Right]):
    """A record of the joined table. With `is_gone` it has no row any more."""

    time: int
    left: Left | None
    right: Right | None
    is_gone: bool


def joined(
    pair: Pair[Left, Right], changes: Iterable[Change[Left, Right]], kind: Literal["inner", "left"]
) -> tuple[Pair[Left, Right], list[Given[Left, Right]]]:
    """What the tables have after these changes, and a record for each change that shows."""
    given: list[Given[Left, Right]] = []
    for change in sorted(changes, key=lambda one: (one.time, one.offset)):
        if change.row is None and (pair.right if change.is_right else pair.left) is None:
            # Nothing was there to delete.
            continue
        before = _shows(pair, kind)
        pair = Pair(pair.left, change.row) if change.is_right else Pair(change.row, pair.right)  # type: ignore[arg-type]
        now = _shows(pair, kind)
        if now:
            given.append(Given(change.time, pair.left, pair.right, False))
        elif before:
            given.append(Given(change.time, None, None, True))
    return pair, given


def _shows(pair: Pair[Left, Right], kind: Literal["inner", "left"]) -> bool:
    return pair.left is not None and (kind == "left" or pair.right is not None)
