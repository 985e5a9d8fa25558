"""Reading a body: never more of it than allowed, never for longer than allowed, decompressed on the way."""

import zlib
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from typing import Final

import trio

from leafcuttr_sdk.web.asgi import Receive
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.settings import WebLimits

_PIECE: Final = 64 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
_DISCARD_S: Final = 2.0
_DISCARD_BYTES: Final = 16 * 1024 * 1024
"""How much of what a client goes on sending is read after it got an error, and for how long. Closing at once could cost
it the answer: the kernel throws away what was sent to a peer that still sends."""


class Gone(Exception):
    """The client has left: no answer can be sent."""


class BodyMemory:
    """The memory for the bodies of all requests that are under way, as `<prefix>.max.buffered.bytes` bounds it."""

    def __init__(self, limits: WebLimits) -> None:
        self._size = limits.buffered_bytes
        self._setting = f"{limits.prefix}.max.buffered.bytes"
        self.taken = 0

    def take(self, size: int) -> None:
        """Raises ApiError 503 where there is none left: to wait for it, holding some, could be to wait for ever."""
        if self.taken + size > self._size:
            raise ApiError(
                503,
                f"The bodies of the requests under way are larger than {self._setting} allows.",
                (("retry-after", "1"),),
            )
        self.taken += size


class Body:
    """The body of one request. `length` is what Content-Length says, None for one in chunks; `setting` the name of what
    `limit` comes from."""

    def __init__(
        self,
        receive: Receive,
        *,
        length: int | None,
        encoding: str,
        limit: int,
        timeout_s: float,
        memory: BodyMemory | None,
        setting: str = "",
    ) -> None:
        self._receive = receive
        self._length = length
        self._limit = limit
        self._timeout_s = timeout_s
        self._memory = memory
        self._setting = setting
        self._taken = 0
        self._gunzip = _gunzip_for(encoding)
        self.complete = False
        """Whether its end has arrived."""

    async def read(self) -> bytes:
        """All of it. Raises ApiError, Gone."""
        if self._length is not None and self._length > self._limit:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        with _in_time(self._timeout_s):
            async for piece in self._pieces():
                size += len(piece)
                if size > self._limit:
                    raise self._too_large()
                if self._memory is not None:
                    self._memory.take(len(piece))
                    self._taken += len(piece)
                parts.append(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def release(self) -> None:
        """The request is answered: its body is no longer needed."""
        if self._memory is not None:
            self._memory.taken -= self._taken
            self._taken = 0

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Piece by piece, each within the time limit, however long it is in all. Raises ApiError, Gone."""
        pieces = self._pieces()
        while True:
            with _in_time(self._timeout_s):
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece

    async def discard(self) -> None:
        """Read on and throw away, for a moment and some megabytes at most."""
        left = _DISCARD_BYTES
        with trio.move_on_after(_DISCARD_S), suppress(Gone):
            while not self.complete and left > 0:
                left -= len(await self._next())

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        if self._gunzip is None:
            while not self.complete:
                piece = await self._next()
                if piece:
                    yield piece
            return
        gunzip = self._gunzip
        while not self.complete:
            data = await self._next()
            while data:
                if gunzip.eof:
                    # Another member behind the first: gzip allows that, and log shippers do it.
                    gunzip = zlib.decompressobj(_GZIP)
                try:
                    piece = gunzip.decompress(data, _PIECE)
                except zlib.error:
                    raise ApiError(400, "The body is not gzip, as its Content-Encoding says.") from None
                data = gunzip.unused_data if gunzip.eof else gunzip.unconsumed_tail
                if piece:
                    yield piece
                if data:
                    # A little gzip may be a lot of data: others get their turn.
                    await trio.lowlevel.checkpoint()
        if not gunzip.eof:
            raise ApiError(400, "The gzip data ends too early.")

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            raise Gone
        self.complete = not message.get("more_body", False)
        body: bytes = message.get("body", b"")
        return body

    def _too_large(self) -> ApiError:
        return ApiError(413, f"The body has more than {self._limit} bytes ({self._setting}).")


@contextmanager
def _in_time(seconds: float) -> Generator[None, None, None]:
    """Cancels what takes too long, and says so with 408."""
    with trio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise ApiError(408, f"The body did not arrive within {seconds:g} s.")


def _gunzip_for(encoding: str) -> "zlib._Decompress | None":  # pyright: ignore[reportPrivateUsage]
    named = encoding.strip().lower()
    if named in ("", "identity"):
        return None
    if named in ("gzip", "x-gzip"):
        return zlib.decompressobj(_GZIP)
    raise ApiError(
        415,
        f"Content-Encoding {encoding!r} is not read, only gzip.",
        (("accept-encoding", "gzip, identity"),),
    )
