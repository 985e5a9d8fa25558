"""How many worker threads may take batches apart at once, and how many may run the filters of plugins.

Both have limiters of their own, apart from trio's: a filter that never ends holds up filtered topics and nothing else,
and those that have nothing of it for `PATIENCE_S` only.

The bounds are those of one event loop: in a process with several brokers each has its own.
"""

from typing import Final

import trio

DECODERS: Final = 2  # each may hold a batch of 100 MB, decompressed

OVERDUE: Final = 32  # more, while filters of that many topics do not end
PATIENCE_S: Final = 1.0

_decoders: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("leafcuttr decoders")
_filters: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("leafcuttr filters")
_overdue: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("leafcuttr overdue filters")


def decode_limiter() -> trio.CapacityLimiter:
    """How many batches may be taken apart at once."""
    return _of_this_loop(_decoders)


async def filter_limiter() -> trio.CapacityLimiter:
    """How many batches may be filtered at once. Where it has had none to spare for `PATIENCE_S`, another one: filters
    of other topics hang, or are slow."""
    limiter = _of_this_loop(_filters)
    if limiter.available_tokens < 1:
        with trio.move_on_after(PATIENCE_S) as waiting:
            async with limiter:
                pass
        if waiting.cancelled_caught:
            return _of_this_loop(_overdue, OVERDUE)
    return limiter


def _of_this_loop(
    variable: "trio.lowlevel.RunVar[trio.CapacityLimiter]", most: int = DECODERS
) -> trio.CapacityLimiter:
    try:
        return variable.get()
    except LookupError:
        limiter = trio.CapacityLimiter(most)
        variable.set(limiter)
        return limiter
