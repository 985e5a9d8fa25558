"""`queued.max.requests`: how many requests may have been received and not yet begun, over all connections.

A connection has one request in work at a time and begins it as soon as it is there, so only two kinds ever wait: long
ones that are read in turns, and those whose connection has used up its turn. While there are too many of them the
reactor looks for no new ones. What waits after it has begun (a long poll, a rebalance, the disk) does not count, as in
Kafka: it must not keep others from what it may be waiting for.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class RequestQueue:
    """The count of all connections. `free` is how many more may be received."""

    __slots__ = ("_freed", "free")

    def __init__(self, limit: int) -> None:
        self.free = limit
        self._freed = trio.Event()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A request that waits for its turn."""
        self.free -= 1
        try:
            yield
        finally:
            self.free += 1
            if self.free == 1:
                self._freed.set()
                self._freed = trio.Event()

    async def freed(self) -> None:
        """Wait until one of them has begun."""
        while self.free <= 0:
            await self._freed.wait()
