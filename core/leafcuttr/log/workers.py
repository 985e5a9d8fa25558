"""The worker threads that write for logs, bounded apart from those that everything else uses."""

from functools import lru_cache
from typing import Final

import trio

WRITERS: Final = 8


@lru_cache(maxsize=1)
def write_limiter() -> trio.CapacityLimiter:
    """How many logs may write off the loop at once."""
    return trio.CapacityLimiter(WRITERS)
