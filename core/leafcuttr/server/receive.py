"""The bytes that a connection has received and not yet handled: one buffer, reused, that grows with what arrives.

A frame's claimed size never allocates: the buffer at most doubles, and only when it is full of received bytes.
Frames are handed out as positions in the buffer; views of it are valid until the next `free_space()`.

A large buffer is an anonymous mapping: it grows without a copy, its pages cost memory only once bytes have arrived in
them, and all of it goes back to the system at once. So a request costs its own size and no more.
"""

import mmap
from typing import Final

from leafcuttr.wire.errors import WireError

SMALL_FRAME: Final = 4096
"""What the buffer of every connection holds."""
# Up to this size a full buffer grows although its frames fit: more of them wait, and what is left of one that was cut
# off would cut off the next, and so on. Kafka's producer sends five of 16 KB before it waits.
_GATHERED: Final = 1 << 17
# Past this size a buffer grows only for a frame that needs it, not for the sake of fewer calls.
_COMFORTABLE: Final = 1 << 22
# Past this size a buffer does not wait for another frame that needs it.
_LARGE: Final = 1 << 24
# So many times in a row a larger buffer may be of no use before it goes.
_PATIENCE: Final = 64


class FrameTooLarge(WireError):
    """A size that no request may have: negative, or above `socket.request.max.bytes`."""


def _looks_like(size: bytes) -> str:
    """A hint for people, if what should be a size begins another protocol."""
    if size[:2] == b"\x16\x03":
        return "; it looks like TLS"
    if size in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"PRI "):
        return "; it looks like HTTP"
    return ""


class ReceiveBuffer:
    """A byte buffer with a window of unhandled bytes [`start`, `end`) of its `view`."""

    __slots__ = ("_data", "_max_frame", "_useless", "end", "start", "view")

    def __init__(self, max_frame: int) -> None:
        self._max_frame = max_frame
        self._data: bytearray | mmap.mmap = bytearray(SMALL_FRAME)
        self.view = memoryview(self._data)
        self.start = 0
        self.end = 0
        self._useless = 0

    @property
    def capacity(self) -> int:
        return len(self._data)

    @property
    def pending(self) -> int:
        """Bytes received and not handed out."""
        return self.end - self.start

    def free_space(self) -> memoryview:
        """Space to receive into; views handed out before are invalid from here on."""
        start, end, capacity = self.start, self.end, len(self._data)
        if start and end == capacity < _GATHERED:
            self._resize(2 * capacity)
            return self.view[self.end :]
        if start == end:
            self.start = self.end = 0
            if capacity > _COMFORTABLE:
                self._useless = self._useless + 1 if end < capacity // 4 else 0
                if self._useless > _PATIENCE:
                    self._resize(_COMFORTABLE)
            return self.view
        if end < capacity and self._frame_size_at(start) <= capacity - start:
            return self.view[end:]
        if start:
            # The memoryview's own assignment copies overlapping ranges correctly (memmove).
            self.view[: end - start] = self.view[start:end]
            self.start, self.end = 0, end - start
        elif end == capacity:
            self._resize(min(2 * capacity, max(self._frame_size_at(0), _COMFORTABLE)))
        return self.view[self.end :]

    def received(self, count: int) -> None:
        """`count` bytes have been written to the beginning of `free_space()`."""
        self.end += count

    def frame_size(self) -> int:
        """The claimed size of the frame that has begun to arrive, 0 if not even its size has. Raises FrameTooLarge."""
        if self.end - self.start < 4:
            return 0
        size = int.from_bytes(self.view[self.start : self.start + 4], "big", signed=True)
        if size < 0 or size > self._max_frame:
            raise FrameTooLarge(
                f"a request of {size} bytes, allowed are 0 to {self._max_frame} (socket.request.max.bytes)"
                f"{_looks_like(bytes(self.view[self.start : self.start + 4]))}"
            )
        return size

    @property
    def has_frame(self) -> bool:
        """Whether a whole frame has arrived, the claim of whose size is not checked."""
        return self.pending >= self._frame_size_at(self.start)

    def next_frame(self) -> tuple[int, int] | None:
        """Where the next complete frame's body lies in `view`, as (at, end), or None. Raises FrameTooLarge."""
        start, have = self.start, self.end - self.start
        if have < 4:
            return None
        size = int.from_bytes(self.view[start : start + 4], "big", signed=True)
        if size < 0 or size > self._max_frame:
            self.frame_size()
        if have - 4 < size:
            return None
        self.start = start + 4 + size
        return start + 4, self.start

    def shrink(self) -> None:
        """Give the memory of an idle connection back."""
        if not self.pending and len(self._data) > SMALL_FRAME:
            self._resize(SMALL_FRAME)

    def give_back(self) -> None:
        """Nothing of what was handed out is needed any more: let go of what only a large frame needed."""
        if len(self._data) > _LARGE and self.pending <= SMALL_FRAME:
            self._resize(SMALL_FRAME)

    def _frame_size_at(self, start: int) -> int:
        if self.end - start < 4:
            return 4
        return 4 + int.from_bytes(self.view[start : start + 4], "big")

    def _resize(self, capacity: int) -> None:
        data, count = self._data, self.pending
        if isinstance(data, mmap.mmap) and capacity > len(data) and not self.start:
            self.view.release()
            try:
                data.resize(capacity)
            except BufferError:  # a view of it is held still
                self.view = memoryview(data)
            else:
                self.view = memoryview(data)
                return
        if capacity > _COMFORTABLE:
            fresh: bytearray | mmap.mmap = mmap.mmap(-1, capacity, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        else:
            fresh = bytearray(capacity)
        view = memoryview(fresh)
        view[:count] = self.view[self.start : self.end]
        self.start, self.end = 0, count
        self._data, self.view = fresh, view
