"""Binding listeners, with errors that say what to do."""

import errno
import os
import socket
from collections.abc import Sequence
from typing import Final

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings, Source
from leafcuttr.errors import AddressTaken, StartError

# Another address of the same listener may have taken a port that the kernel chose for the first.
_TRIES: Final = 5
_BACKLOG: Final = 1024
_RECEIVE_BUFFER: Final = "socket.receive.buffer.bytes"
_NO_SUCH_ADDRESS: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

BufferSizes = Sequence[tuple[int, int]]
"""Socket options and their values."""

_Address = tuple[int, tuple[str, int] | tuple[str, int, int, int]]


def listen_backlog(settings: Settings) -> int:
    """`socket.listen.backlog.size` where it is set.

    Kafka's default of 50 suits a thread that does nothing but accept: a client that the kernel refuses waits a second,
    so a thousand clients that come at once would need many.
    """
    name = "socket.listen.backlog.size"
    return settings.int(name) if _is_set(settings, name) else _BACKLOG


def _is_set(settings: Settings, name: str) -> bool:
    return settings.source(name) is not Source.DEFAULT_CONFIG


def requested_buffer_sizes(settings: Settings) -> BufferSizes:
    """`socket.receive.buffer.bytes` and `socket.send.buffer.bytes`, where they are set.

    Kafka's default of 100 KiB would switch the kernel's own sizing off and cost much throughput. See
    `size_for_local_tls` for the exception.
    """
    options = (
        (_RECEIVE_BUFFER, socket.SO_RCVBUF),
        ("socket.send.buffer.bytes", socket.SO_SNDBUF),
    )
    return [
        (option, settings.int(name))
        for name, option in options
        if _is_set(settings, name) and settings.int(name) > 0
    ]


def receive_buffer_for_local_tls(settings: Settings) -> int:
    """Bytes for `size_for_local_tls`: the default of `socket.receive.buffer.bytes`, or 0 where that is set."""
    return 0 if _is_set(settings, _RECEIVE_BUFFER) else settings.int(_RECEIVE_BUFFER)


def size_for_local_tls(connection: socket.socket, size: int) -> None:
    """Give a connection from this machine a receive buffer of this size; one from elsewhere keeps the kernel's.

    Clients write records of TLS of a few KiB. While the receive window is open, each of them goes over the loopback
    device as a segment of its own; a window that is full makes the kernel join them, which costs both sides a fifth
    less. Between machines the network card does that, and a window as small as this would be too small for a distant
    peer.
    """
    try:
        if connection.getpeername()[0] == connection.getsockname()[0]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    except OSError:  # it has gone already, which its handshake finds
        return


def bind(
    listener: Listener, backlog: int, buffer_sizes: BufferSizes = (), *, setting: str = "listeners"
) -> tuple[Listener, list[socket.socket]]:
    """Open every address of a listener, all on one port.

    Returns the listener with its real ports (port 0 takes a free one; an advertised port 0 follows it) and its
    non-blocking sockets; connections inherit the buffer sizes. Raises StartError in one line, with the `setting` of the
    port, when an address cannot be had, and AddressTaken when another program listens there. Of a host with several
    addresses those that this machine does not have are left out, if one is left.
    """
    addresses = _addresses(listener, setting)
    for attempt in range(_TRIES):
        try:
            sockets = _open_all(addresses, backlog, buffer_sizes)
        except OSError as error:
            if listener.port == 0 and error.errno == errno.EADDRINUSE and attempt < _TRIES - 1:
                continue
            kind = AddressTaken if error.errno == errno.EADDRINUSE else StartError
            raise kind(_explain(listener, error, setting)) from None
        return listener.bound(sockets[0].getsockname()[1]), sockets
    raise AssertionError("the last attempt returns or raises")


def _addresses(listener: Listener, setting: str) -> Sequence[_Address]:
    host = listener.host
    try:
        found = socket.getaddrinfo(
            # A text is encoded by a codec of Python's, which is imported for it.
            (host.encode() if host.isascii() else host) or None,
            listener.port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StartError(
            f"listener {listener.name}: the host {host!r} is unknown: {reason} "
            f"({setting.removesuffix('.port') + '.host' if setting.endswith('.port') else setting})"
        ) from None
    usable = {
        (family, address): None
        for family, _, _, _, address in found
        if family == socket.AF_INET or (family == socket.AF_INET6 and socket.has_ipv6)
    }
    return list(usable)  # type: ignore[arg-type]


def _open_all(addresses: Sequence[_Address], backlog: int, sizes: BufferSizes) -> list[socket.socket]:
    """Raises OSError with the failing `host port N` as its file name."""
    opened: list[socket.socket] = []
    missing: OSError | None = None
    port = addresses[0][1][1]
    try:
        for family, address in addresses:
            try:
                opened.append(_open(family, (address[0], port, *address[2:]), backlog, sizes))
            except OSError as error:
                error.filename = f"{address[0]} port {port}"
                if error.errno not in _NO_SUCH_ADDRESS:
                    raise
                missing = error
                continue
            port = opened[0].getsockname()[1]
        if not opened:
            assert missing is not None
            raise missing
    except OSError:
        for sock in opened:
            sock.close()
        raise
    return opened


def _open(family: int, address: tuple[object, ...], backlog: int, sizes: BufferSizes) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for option, size in sizes:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def _explain(listener: Listener, error: OSError, setting: str) -> str:
    where = f"listener {listener.name} cannot open {error.filename}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{where}: another program listens there (choose another port with -o {setting}=...)"
        case errno.EACCES:
            return f"{where}: this user may not open ports below 1024"
        case errno.EADDRNOTAVAIL | errno.EAFNOSUPPORT:
            return f"{where}: this machine has no such address"
        case _:
            return f"{where}: {os.strerror(error.errno or 0)}"
