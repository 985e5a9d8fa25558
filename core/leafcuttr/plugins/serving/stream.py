"""One connection over TCP or a Unix socket, as the handler of a plugin has it.

There may be ten thousand that are idle: a connection is this object, its socket, its cancel scope and its task.
"""

import fcntl
import socket
import termios
from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio
from trio.abc import HalfCloseableStream

from leafcuttr.plugins.serving.ends import ConnectionEnd
from leafcuttr.plugins.serving.limits import Limits
from leafcuttr_sdk.serving import ByteStream, Peer

if TYPE_CHECKING:
    import ssl

PIECE: Final = 64 * 1024
_MOST_DRAINED: Final = 16
_INT: Final = Struct("=i")


class ServedBy(Protocol):
    """What a connection has to know of the server that it belongs to."""

    @property
    def prefix(self) -> str: ...
    @property
    def unix_path(self) -> str: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def stopping(self) -> bool:
        """Handlers are cancelled when they next wait for their clients."""
        ...


class SocketByteStream(ByteStream, HalfCloseableStream):
    """See `leafcuttr_sdk.ByteStream`. `scope` is what its handler runs in, `waits` whether that waits for bytes,
    `moved` when bytes have come or gone last, or when the handler has said last that it is not busy, `end` how the
    connection ends, if not as it should."""

    __slots__ = (
        "_address",
        "_busy",
        "_eof",
        "_sends",
        "_server",
        "_socket",
        "end",
        "moved",
        "scope",
        "waits",
    )

    def __init__(self, server: ServedBy, sock: socket.socket, address: object) -> None:
        """`sock` does not block; `address` is what `accept` gave."""
        self._server = server
        self._socket = sock
        self._address = address
        self._sends = False
        self._eof = False
        self._busy: bool | None = None  # the handler says nothing of it
        self.scope: Final = trio.CancelScope()
        self.moved = trio.current_time()
        self.waits = False
        self.end: ConnectionEnd | None = None

    @property
    def peer(self) -> Peer:
        if isinstance(self._address, tuple):
            return Peer(str(self._address[0]), int(self._address[1]))
        return Peer(f"unix:{self._server.unix_path}", 0)

    @property
    def listener(self) -> str:
        return self._server.prefix

    @property
    def peer_certificate(self) -> Mapping[str, Any] | None:
        return None

    @property
    def peer_certificate_der(self) -> bytes | None:
        return None

    @property
    def tls(self) -> "ssl.SSLObject | None":
        return None

    @property
    def busy(self) -> bool:
        return self._busy is True

    @busy.setter
    def busy(self, busy: bool) -> None:
        self._busy = busy
        if not busy:
            self.moved = trio.current_time()
            if self._server.stopping and self.waits:
                self.scope.cancel()

    @property
    def rests(self) -> bool:
        """Whether the handler waits for its client, with no request under way."""
        return self.waits and self._busy is not True

    @property
    def is_local(self) -> bool:
        """Whether it is a Unix socket's."""
        return not isinstance(self._address, tuple)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if max_bytes is not None and max_bytes < 1:
            raise ValueError("max_bytes must be >= 1")
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.waits:
            raise trio.BusyResourceError("another task is receiving from this connection")
        while True:
            try:
                data = self._open_socket().recv(max_bytes or PIECE)
            except BlockingIOError:
                await self._wait_readable()
            except OSError as error:
                raise self._broken(error) from error
            else:
                if self._busy is None:
                    self.moved = trio.current_time()
                await trio.lowlevel.cancel_shielded_checkpoint()
                return data

    async def _wait_readable(self) -> None:
        if self._server.stopping and self._busy is not True:
            self.scope.cancel()  # between two requests, as far as can be told
        self.waits = True
        try:
            await trio.lowlevel.wait_readable(self._socket)
        finally:
            self.waits = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        with _Sending(self), memoryview(data).cast("B") as view:
            self._open_socket()  # also where nothing is to be sent
            if self._eof:
                raise trio.ClosedResourceError("nothing can be sent after the end")
            sent = 0
            while sent < len(view):
                try:
                    sent += self._open_socket().send(view[sent : sent + PIECE])
                except BlockingIOError:
                    await self._wait_writable()
                except OSError as error:
                    raise self._broken(error) from error
                else:
                    if self._busy is None:
                        self.moved = trio.current_time()
                    if sent < len(view):
                        await trio.lowlevel.checkpoint()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def send_now(self, data: bytes | bytearray | memoryview) -> int:
        sock = self._open_socket()
        if self._eof:
            raise trio.ClosedResourceError("nothing can be sent after the end")
        if self._sends or not data:
            return 0
        try:
            sent = sock.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._broken(error) from error
        if self._busy is None:
            self.moved = trio.current_time()
        return sent

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        self._open_socket()
        with _Sending(self):
            await trio.lowlevel.wait_writable(self._socket)

    async def _wait_writable(self) -> None:
        send_s = self._server.limits.send_s
        waiting = self._not_taken()
        while True:
            with trio.move_on_after(send_s) as patience:
                await trio.lowlevel.wait_writable(self._socket)
            if not patience.cancelled_caught:
                return
            # The kernel wakes nobody for a few bytes that the client has taken.
            before, waiting = waiting, self._not_taken()
            if waiting >= before:
                self.end = ConnectionEnd.SLOW
                self.abort()
                raise trio.BrokenResourceError(f"the client has taken nothing for {send_s:g} s")

    def _not_taken(self) -> int:
        """Bytes that were sent, and that the client's system has not taken."""
        try:
            (count,) = _INT.unpack(fcntl.ioctl(self._socket, termios.TIOCOUTQ, bytes(_INT.size)))
        except OSError:
            return 0
        return int(count)

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        with _Sending(self):
            try:
                if not self._eof:
                    self._open_socket().shutdown(socket.SHUT_WR)
            except OSError as error:
                raise self._broken(error) from error
            self._eof = True
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def aclose(self) -> None:
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Give the descriptor back; tasks that wait on it get `trio.ClosedResourceError`."""
        if self._socket.fileno() < 0:
            return
        self._drain()
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

    def _drain(self) -> None:
        """What has arrived and nobody has read would make the kernel take back what was sent last."""
        try:
            for _ in range(_MOST_DRAINED):
                if not self._socket.recv(PIECE):
                    return
        except OSError:
            return

    def abort(self) -> None:
        """End both directions: whatever waits for it returns."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:  # the client has gone, or it is closed
            return

    def _open_socket(self) -> socket.socket:
        if self._socket.fileno() < 0:
            raise trio.ClosedResourceError("this connection was closed")
        return self._socket

    def _broken(self, error: OSError) -> trio.BrokenResourceError:
        return trio.BrokenResourceError(f"the client has gone: {error.strerror or error}")


class _Sending:
    """One task at a time."""

    __slots__ = ("_stream",)

    def __init__(self, stream: SocketByteStream) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        if self._stream._sends:
            raise trio.BusyResourceError("another task is sending to this connection")
        self._stream._sends = True

    def __exit__(self, *_: object) -> None:
        self._stream._sends = False
