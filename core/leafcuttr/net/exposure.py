"""The warning for a listener that other machines reach without authentication."""

import logging
import socket
from collections.abc import Sequence

from leafcuttr.config.listeners import Listener


def warn_if_open(
    logger: logging.Logger, listener: Listener, sockets: Sequence[socket.socket], what: str, setting: str
) -> bool:
    """Warn that every client which reaches the listener may do `what`, and name the `setting` of its address. Returns
    whether it has warned.

    There is no warning for a listener that is bound to addresses of this machine only.
    """
    if all(_is_loopback(sock.getsockname()[0]) for sock in sockets):
        return False
    where = f"{listener.host or 'this machine'} port {listener.port}"
    logger.warning("every host that reaches %s may %s without authentication (%s)", where, what, setting)
    return True


def _is_loopback(address: str) -> bool:
    """As `getsockname` writes them. An IPv6 socket here takes no mapped IPv4 address."""
    return address.startswith("127.") or address == "::1"
