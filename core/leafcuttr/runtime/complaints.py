"""One line for what lasts, however often it occurs: a full disk refuses every write of every client.

- `Complaints` of the SDK: one line until it has not occurred for a minute.
- `Repeats`: a line at once and then one a minute, each with how often it has occurred since the one before.

The caller chooses the key by which lines are counted as the same: usually the reason, not the partition.
"""

import time
from collections.abc import Hashable
from math import inf
from typing import Final

from leafcuttr_sdk.trouble import Complaints

__all__ = ["Complaints", "Repeats"]

_QUIET_S: Final = 60.0
_MOST: Final = 256


class Repeats:
    """Counts what occurs again and again. Any thread."""

    def __init__(self) -> None:
        self._said: dict[Hashable, tuple[float, int]] = {}

    def count(self, key: Hashable) -> str | None:
        """It has occurred. The end of its line, which may be empty, if there is to be one; else None."""
        now = time.monotonic()
        said_at, since = self._said.get(key, (-inf, 0))
        if now - said_at < _QUIET_S:
            self._said[key] = said_at, since + 1
            return None
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said[key] = now, 0
        return f" ({since} more since the last line)" if since else ""
