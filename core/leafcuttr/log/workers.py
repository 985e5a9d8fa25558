"""The worker threads that take batches apart, bounded apart from those that everything else uses."""

from functools import lru_cache
from typing import Final

import trio

DECODERS: Final = 2  # each may hold a batch of 100 MB, decompressed


@lru_cache(maxsize=1)
def decode_limiter() -> trio.CapacityLimiter:
    """How many batches may be taken apart at once."""
    return trio.CapacityLimiter(DECODERS)
