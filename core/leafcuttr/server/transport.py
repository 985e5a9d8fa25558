"""What lies between a connection and its peer: bytes in, bytes and ranges of files out.

This module alone calls the sockets of connections. A `Transport` never waits, but in `wait_writable`: what cannot be
done now raises BlockingIOError, and a peer that has gone any other OSError.
"""

import socket
from collections.abc import Callable
from struct import Struct
from typing import Final, Protocol

import trio

from leafcuttr.log.log import FileRegion

Sendable = bytes | bytearray | memoryview

# States of a TCP connection (linux/tcp_states.h) whose peer has gone: TCP_CLOSE and TCP_CLOSE_WAIT.
_PEER_GONE: Final = (7, 8)
# `tcpi_bytes_acked` in the kernel's struct tcp_info (linux/tcp.h); others, and older ones, may have less of it.
_BYTES_ACKED: Final = Struct("=120xQ")


class Transport(Protocol):
    """One accepted connection, as the code above sees it."""

    @property
    def descriptor(self) -> int:
        """Readable when there may be something to receive."""
        ...

    @property
    def buffered(self) -> int:
        """Bytes that have been taken from the descriptor (and decrypted) and not yet received by `receive_into`. The
        descriptor does not become readable because of them, so code that waits for it has to look here first."""
        ...

    @property
    def can_send_files(self) -> bool:
        """Whether `send_file` may be called; if not, the bytes of the file have to be sent."""
        ...

    def receive_into(self, buffer: memoryview, /) -> int:
        """Receive what has arrived, as far as it fits; how many bytes. 0 is the end of the stream."""
        ...

    def send(self, data: Sendable, /) -> int:
        """Send what can be sent now; how many bytes. After BlockingIOError the same bytes have to come again, with
        or without others behind them."""
        ...

    def send_file(self, region: FileRegion) -> int:
        """Send what can be sent of it now; how many bytes. 0 if the file ends before the region."""
        ...

    async def wait_writable(self) -> None:
        """Wait until `send` or `send_file` may be tried again."""

    @property
    def acknowledged(self) -> int:
        """Bytes that the peer's system has acknowledged; 0 where the kernel does not tell."""
        ...

    @property
    def peer_gone(self) -> bool:
        """Whether the peer has closed its side, or the connection is broken, without receiving to find out."""
        ...

    def half_close(self) -> None:
        """Tell the peer that nothing more will be sent. Raises nothing."""

    def abort(self) -> None:
        """End both directions: whatever waits on the transport returns. Raises nothing."""

    def close(self) -> None:
        """Give the descriptor back. Tasks that wait on it are woken."""


MakeTransport = Callable[[socket.socket], Transport]


def accept(listening: socket.socket, make_transport: MakeTransport) -> tuple[Transport, str, int]:
    """Accept a connection; its transport, and the address and port of the peer. Raises BlockingIOError if no connection
    waits, and any other OSError if it cannot be used, in which case it is closed."""
    sock, address = listening.accept()
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return make_transport(sock), str(address[0]), address[1]
    except OSError:
        sock.close()
        raise


class PlainTransport:
    """A TCP socket and nothing between."""

    __slots__ = ("_socket", "descriptor", "receive_into", "send")

    buffered = 0
    can_send_files = True

    def __init__(self, sock: socket.socket) -> None:
        """`sock` does not block."""
        self._socket = sock
        self.descriptor = sock.fileno()
        # The socket's own methods: they are called for every request, and a method around them would show.
        self.receive_into = sock.recv_into
        self.send = sock.send

    def send_file(self, region: FileRegion) -> int:
        return region.send_to(self.descriptor)

    async def wait_writable(self) -> None:
        await trio.lowlevel.wait_writable(self._socket)

    @property
    def acknowledged(self) -> int:
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.size)
        except OSError:
            return 0
        return _BYTES_ACKED.unpack(info)[0] if len(info) == _BYTES_ACKED.size else 0

    @property
    def peer_gone(self) -> bool:
        return self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _PEER_GONE

    def half_close(self) -> None:
        self._shut_down(socket.SHUT_WR)

    def abort(self) -> None:
        self._shut_down(socket.SHUT_RDWR)

    def _shut_down(self, how: int) -> None:
        try:
            self._socket.shutdown(how)
        except OSError:  # the peer has gone
            return

    def close(self) -> None:
        trio.lowlevel.notify_closing(self._socket)
        self.descriptor = -1  # the number may soon be another connection's
        self._socket.close()
