"""`queued.max.request.bytes`: how much of large requests may be under way at once, over all connections.

Only frames that do not fit the small buffer of a connection count. As in Kafka, a frame may begin while anything is
left, so that the limit can be passed by one frame and never deadlocks; until then the connection is not read from.
"""

import trio


class RequestMemory:
    """The account of all connections. A limit of -1 counts nothing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[object, int] = {}
        self._used = 0
        self.waits = 0  # how often a connection had to wait
        self._freed = trio.Event()

    @property
    def limited(self) -> bool:
        return self._limit >= 0

    def try_reserve(self, owner: object, size: int) -> bool:
        """Account `size` bytes to `owner` unless the limit is reached. Repeating it changes nothing."""
        if self._limit < 0 or owner in self._held:
            return True
        if self._used >= self._limit:
            return False
        self._held[owner] = size
        self._used += size
        return True

    async def reserve(self, owner: object, size: int) -> None:
        """`try_reserve`, waiting while the limit is reached."""
        self.waits += not self.try_reserve(owner, size)
        while not self.try_reserve(owner, size):
            await self._freed.wait()

    @property
    def used(self) -> int:
        """Bytes accounted now."""
        return self._used

    def holds(self, owner: object) -> bool:
        return owner in self._held

    def release(self, owner: object) -> None:
        size = self._held.pop(owner, 0)
        if size:
            self._used -= size
            self._freed.set()
            self._freed = trio.Event()
