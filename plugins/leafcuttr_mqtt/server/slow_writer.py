"""What waits for a client that does not take everything at once."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafcuttr_sdk.serving import ByteStream


class SlowWriter:
    """There is one only while a client is slow."""

    __slots__ = ("_waiting", "is_given_up", "size")

    def __init__(self, data: bytes) -> None:
        self._waiting = [data]
        self.size = len(data)
        """Bytes that the client has not taken."""
        self.is_given_up = False

    def add(self, data: bytes) -> None:
        """To be sent behind what waits."""
        self._waiting.append(data)
        self.size += len(data)

    def give_up(self) -> None:
        """The client has gone: what is not being sent will not be."""
        self.is_given_up = True

    async def run(self, stream: "ByteStream") -> None:
        """Send what waits, until nothing does. `send_all` has a limit for how long it takes. Raises what it raises."""
        while self._waiting and not self.is_given_up:
            waiting, self._waiting = self._waiting, []
            data = waiting[0] if len(waiting) == 1 else b"".join(waiting)
            await stream.send_all(data)
            self.size -= len(data)
