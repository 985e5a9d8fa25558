"""How many worker threads may take batches apart at once, and how many may run the filters of plugins.

Both have limiters of their own, apart from trio's: a filter that never ends holds up filtered topics and nothing else.

The bounds are those of one event loop: in a process with several brokers each has its own.
"""

from typing import Final

import trio

DECODERS: Final = 2  # each may hold a batch of 100 MB, decompressed

_decoders: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("leafcuttr decoders")
_filters: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("leafcuttr filters")


def decode_limiter() -> trio.CapacityLimiter:
    """How many batches may be taken apart at once."""
    return _of_this_loop(_decoders)


def filter_limiter() -> trio.CapacityLimiter:
    """How many batches may be filtered at once."""
    return _of_this_loop(_filters)


def _of_this_loop(variable: "trio.lowlevel.RunVar[trio.CapacityLimiter]") -> trio.CapacityLimiter:
    try:
        return variable.get()
    except LookupError:
        limiter = trio.CapacityLimiter(DECODERS)
        variable.set(limiter)
        return limiter
