"""Binding listeners, with errors for the person who reads them."""

import errno
import os
import socket
from collections.abc import Sequence

from leafcuttr.config.listeners import Listener
from leafcuttr.errors import StartError


def bind(listener: Listener, backlog: int) -> tuple[Listener, list[socket.socket]]:
    """Open every address of a listener, all on one port.

    Returns the listener with its real ports (port 0 takes a free one; an advertised port 0 follows it) and its
    non-blocking sockets. Raises StartError in one line when an address cannot be had.
    """
    addresses = _addresses(listener)
    sockets: list[socket.socket] = []
    port = listener.port
    try:
        for family, address in addresses:
            sock = _open(family, (address[0], port, *address[2:]), backlog, listener)
            sockets.append(sock)
            port = sock.getsockname()[1]
    except StartError:
        for sock in sockets:
            sock.close()
        raise
    return listener.bound(port), sockets


def _addresses(listener: Listener) -> Sequence[tuple[int, tuple[str, int] | tuple[str, int, int, int]]]:
    try:
        found = socket.getaddrinfo(
            listener.host or None, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise StartError(
            f"listener {listener.name}: the host {listener.host!r} is unknown: {error.strerror}"
        ) from None
    usable = {
        (family, address): None
        for family, _, _, _, address in found
        if family == socket.AF_INET or (family == socket.AF_INET6 and socket.has_ipv6)
    }
    return list(usable)  # type: ignore[arg-type]


def _open(family: int, address: tuple[object, ...], backlog: int, listener: Listener) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(backlog)
    except OSError as error:
        sock.close()
        raise StartError(_explain(listener, address, error)) from None
    return sock


def _explain(listener: Listener, address: tuple[object, ...], error: OSError) -> str:
    where = f"listener {listener.name} cannot open {address[0]} port {address[1]}"
    match error.errno:
        case errno.EADDRINUSE:
            return f"{where}: another program listens there (choose another port with -o listeners=...)"
        case errno.EACCES:
            return f"{where}: this user may not open ports below 1024"
        case errno.EADDRNOTAVAIL:
            return f"{where}: this machine has no such address"
        case _:
            return f"{where}: {os.strerror(error.errno or 0)}"
