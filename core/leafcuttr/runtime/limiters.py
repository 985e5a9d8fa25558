"""The worker threads that take batches apart, bounded apart from those that everything else uses; and those in which
plugins' filters do, apart from these: one that never ends holds up nobody but filtered topics.

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
