"""Files that are out of use and removed later."""

from typing import NamedTuple


class PendingDelete(NamedTuple):
    """Renamed files, and when they may be removed, in ms of the monotonic clock: the time of day may be set."""

    paths: list[str]
    at_ms: int
