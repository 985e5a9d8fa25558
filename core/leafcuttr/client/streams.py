"""The bytes of a connection on trio. A plain socket receives into the memory of a frame, and sends what lies in several
pieces without joining it; TLS copies."""

import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

import trio

from leafcuttr.client.errors import ClientError, ClientSettingError, TlsRefused, Unreachable
from leafcuttr.client.protocol import Piece
from leafcuttr.client.settings import ClientSettings, HostPort

if TYPE_CHECKING:
    from leafcuttr.client.tls import TlsContexts

_TLS_READ: Final = 256 << 10
_SMALL: Final = 16 << 10
"""A TLS record holds as much."""
_PIECES: Final = 512
"""Below IOV_MAX, which is 1024 on Linux."""


class ClientStream(Protocol):
    """One task receives while another sends. Raises OSError or trio.BrokenResourceError where the connection breaks."""

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
        at, sent = 0, 0
        if len(pieces) <= _PIECES:
            # Mostly all of it goes at once: views of the pieces are made for a rest only.
            sent = await self._socket.sendmsg(pieces)
            if sent == sum(map(len, pieces)):
                return
        left = [memoryview(piece).cast("B") for piece in pieces if len(piece)]
        while True:
            while at < len(left) and sent >= len(left[at]):
                sent -= len(left[at])
                at += 1
            if at == len(left):
                return
            if sent:
                left[at] = left[at][sent:]
            sent = await self._socket.sendmsg(left[at : at + _PIECES])

    def close(self) -> None:
        self._socket.close()


class TlsBytes:
    """A connection with TLS."""

    def __init__(self, stream: "trio.SSLStream[trio.SocketStream]") -> None:
        self._stream = stream

    async def receive_into(self, buffer: memoryview) -> int:
        data = await self._stream.receive_some(min(len(buffer), _TLS_READ))
        buffer[: len(data)] = data
        return len(data)

    async def send(self, pieces: Sequence[Piece]) -> None:
        for part in _joined(pieces):
            await self._stream.send_all(part)

    def close(self) -> None:
        self._stream.transport_stream.socket.close()


def broken(address: HostPort, error: BaseException) -> ClientError | None:
    """What an error of a connection with TLS means, if OpenSSL has raised it; None for one of the network."""
    import ssl

    cause = error.__cause__ if isinstance(error, trio.BrokenResourceError) else error
    if not isinstance(cause, ssl.SSLError):
        return None
    from leafcuttr.client.tls import words

    return words(str(address), cause)


async def open_stream(
    address: HostPort, settings: ClientSettings, contexts: "TlsContexts | None" = None
) -> ClientStream:
    """Connect, with TLS if there are `contexts`. Raises Unreachable, TlsRefused, NotKafka where no TLS is spoken."""
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
    return PlainBytes(stream.socket) if contexts is None else await _begin_tls(address, stream, contexts)


async def _begin_tls(address: HostPort, tcp: trio.SocketStream, contexts: "TlsContexts") -> TlsBytes:
    from leafcuttr.client.tls import words

    try:
        context = await trio.to_thread.run_sync(contexts.current)
        # Brokers close connections without the alert that TLS wants; frames say where they end.
        stream = trio.SSLStream(tcp, context, server_hostname=address.host, https_compatible=True)
        await stream.do_handshake()
    except ClientSettingError as error:
        tcp.socket.close()
        raise TlsRefused(str(error)) from None
    except (OSError, trio.BrokenResourceError) as error:
        tcp.socket.close()
        raise words(str(address), error.__cause__ or error) from None
    except BaseException:
        tcp.socket.close()
        raise
    return TlsBytes(stream)


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Small pieces together, so that each does not become a TLS record of its own; large ones as they are."""
    small = bytearray()
    for piece in pieces:
        if len(piece) < _SMALL:
            small += piece
            continue
        if small:
            yield bytes(small)
            small.clear()
        yield piece
    if small:
        yield bytes(small)


def _words(error: OSError | UnicodeError) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return ": the name is unknown"
    return ""
