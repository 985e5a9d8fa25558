"""Queries on a machine with other work: Spark gives a worker of a stream's source ten seconds to start, which no
setting changes, and fails the query then. What began it begins it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TOO_SLOW = "Python worker failed to connect back"
TRIES = 10


def patiently(run: Callable[[], T]) -> T:
    """What it returns. Raises what it raises, unless that is of a worker that came too late."""
    for left in reversed(range(TRIES)):
        try:
            return run()
        except Exception as error:
            if left == 0 or TOO_SLOW not in str(error):
                raise
    raise AssertionError("never reached")
