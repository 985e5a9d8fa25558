"""Handlers of `Broker.serve` that use `ByteStream.send_now`, on a stream that takes less at once than a system does:
whether the rest is sent next."""

from collections.abc import Awaitable
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr_sdk._stream_over import StreamOver
from leafcuttr_sdk.serving import ByteStream, Handler
from leafcuttr_sdk.testing.report import Notes

if TYPE_CHECKING:
    from leafcuttr.state.plugged import ServedListener

CHECK: Final = "sends now"
PROMISE: Final = "what send_now has not taken is sent next, and before its handler ends"
_Bytes = bytes | bytearray | memoryview


class SendingTrial:
    """Watches what a served listener sends. `used` says whether its handler has called send_now."""

    def __init__(self, notes: Notes, served: "ServedListener") -> None:
        self._notes = notes
        self.used = False
        self._last: _Watched | None = None
        # As much as each call takes, in eighths: none of it, all of it, and what is between.
        self._takes = cycle((0, 4, 8, 1, 7))
        behind: Any = served
        self._handler: Handler = behind._handler
        behind._handler = self._handle

    def takes(self, count: int) -> int:
        """How many of so many bytes are taken at once."""
        self.used = True
        return count * next(self._takes) // 8

    def other_bytes(self, rest: int, asked: int) -> None:
        self._notes.add(
            CHECK,
            f"send_now had taken all but {rest} of {asked} bytes, and other bytes were sent next: keep the rest, and "
            "give it to send_all before anything else",
        )

    def ended(self) -> None:
        """The handler of the last connection has ended, whose client had read all that it was sent."""
        rest = b"" if self._last is None else self._last.rest
        if rest:
            self._notes.add(
                CHECK,
                f"its handler ended with {len(rest)} bytes in hand that send_now had not taken, while its client "
                "waited for them: give them to send_all",
            )

    def _handle(self, stream: ByteStream) -> Awaitable[None]:
        # No coroutine of its own, which would stand in the place of the handler where that fails.
        self._last = _Watched(stream, self)
        return self._handler(self._last)


class _Watched(StreamOver, trio.abc.HalfCloseableStream):
    """The stream of a connection. Everything but what is sent is the stream's own."""

    def __init__(self, stream: ByteStream, trial: SendingTrial) -> None:
        self._stream = stream
        self._trial = trial
        self._asked = 0
        self.rest = b""
        """What send_now has not taken, as far as it was not sent since."""

    def _goes_on(self, data: _Bytes) -> None:
        """Whether this begins with the rest, or is a part of it."""
        common = min(len(data), len(self.rest))
        if bytes(memoryview(data).cast("B")[:common]) != self.rest[:common]:
            self._trial.other_bytes(len(self.rest), self._asked)
            self.rest = b""

    def send_now(self, data: _Bytes) -> int:
        view = memoryview(data).cast("B")
        if len(view) == 0:
            return self._stream.send_now(data)
        self._goes_on(view)
        sent = self._stream.send_now(view[: self._trial.takes(len(view))])
        # One that gives less than the rest has the end of it still in hand.
        self.rest = bytes(view[sent:]) + self.rest[len(view) :]
        self._asked = len(view)
        return sent

    async def send_all(self, data: _Bytes) -> None:
        self._goes_on(data)
        await self._stream.send_all(data)
        self.rest = self.rest[len(data) :]

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()
