"""One line for a trouble that lasts, however often it is met: a full disk refuses every write of every client.

What is told apart is the caller's choice of key: usually the reason, not the partition that met it.
"""

import logging
import time
from typing import Final

_QUIET_S: Final = 60.0
_MOST: Final = 256


class Complaints:
    """What one part of the broker has complained about. A complaint is repeated in the log once it has not been made
    for a minute: then it is a new trouble. Any thread may complain."""

    __slots__ = ("_logger", "_made")

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._made: dict[str, float] = {}

    def __call__(self, key: str, message: str, *arguments: object, level: int = logging.ERROR) -> None:
        """Log the message, unless `key` has been complained about within the last minute."""
        now = time.monotonic()
        before = self._made.get(key)
        if before is None and len(self._made) >= _MOST:
            self._made.clear()
        self._made[key] = now
        if before is None or now - before > _QUIET_S:
            self._logger.log(level, message, *arguments)
