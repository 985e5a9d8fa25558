"""The bytes of a connection on trio: a plain socket, which receives into the memory of a frame and sends what lies in
several pieces without joining it."""

import socket
from collections.abc import Sequence
from typing import Final, Protocol

import trio

from leafcuttr.client.errors import Unreachable
from leafcuttr.client.protocol import Piece
from leafcuttr.client.settings import ClientSettings, HostPort

_PIECES: Final = 512
"""Below IOV_MAX, which is 1024 on Linux."""


class ClientStream(Protocol):
    """One task receives while another sends. Broken connections are OSError or trio.BrokenResourceError."""

    async def receive_into(self, buffer: memoryview) -> int:
        """How many bytes have come; 0 at the end."""
        ...

    async def send(self, pieces: Sequence[Piece]) -> None:
        """All of it. Cancelled: an unknown part of it was sent, and nothing else can be."""
        ...

    def close(self) -> None:
        """At once, without a word to the peer."""
        ...


class PlainBytes:
    """A connected socket."""

    def __init__(self, sock: trio.socket.SocketType) -> None:
        self._socket = sock

    async def receive_into(self, buffer: memoryview) -> int:
        return await self._socket.recv_into(buffer)

    async def send(self, pieces: Sequence[Piece]) -> None:
        left = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        at = 0
        while at < len(left):
            sent = await self._socket.sendmsg(left[at : at + _PIECES])
            while at < len(left) and sent >= len(left[at]):
                sent -= len(left[at])
                at += 1
            if sent:
                left[at] = left[at][sent:]

    def close(self) -> None:
        self._socket.close()


async def open_stream(address: HostPort, settings: ClientSettings) -> ClientStream:
    """Connect. Raises Unreachable."""
    try:
        stream = await trio.open_tcp_stream(address.host, address.port)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"no broker answers at {address}{_words(error)}") from None
    for option, size in (
        (socket.SO_SNDBUF, settings.send_buffer_bytes),
        (socket.SO_RCVBUF, settings.receive_buffer_bytes),
    ):
        if size:
            stream.setsockopt(socket.SOL_SOCKET, option, size)
    return PlainBytes(stream.socket)


def _words(error: OSError | UnicodeError) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return ": the name is unknown"
    return ""
