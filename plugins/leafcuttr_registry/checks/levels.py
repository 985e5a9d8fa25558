"""Compatibility levels: which of the versions before a new schema is compared with, and in which direction.

BACKWARD: who reads by the new schema can read what the last version wrote, so consumers upgrade first. FORWARD: who
reads by the last version can read what the new schema writes, so producers upgrade first. FULL is both. A transitive
level asks for all versions.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Directions(NamedTuple):
    """What a level asks for."""

    backward: bool
    """The new schema reads the old one's data."""
    forward: bool
    """The old schema reads the new one's data."""
    all: bool
    """Of all versions, not of the last one only."""


def directions(level: str) -> Directions:
    """Of one of `config.LEVELS`."""
    kind, _, transitive = level.partition("_")
    return Directions(kind in ("BACKWARD", "FULL"), kind in ("FORWARD", "FULL"), bool(transitive))


def asked_for(level: str, versions: Sequence[T]) -> Sequence[T]:
    """Of the versions, ascending, those that the level asks for; the last one first."""
    if level == "NONE" or not versions:
        return ()
    return tuple(reversed(versions)) if directions(level).all else versions[-1:]
