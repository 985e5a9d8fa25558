"""Listeners that other machines reach and that let every client in: a warning, or with `lc.listeners.open=refuse` the
end of the start."""

import logging
import socket
from collections.abc import Sequence

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings


def warn_if_open(
    logger: logging.Logger,
    listener: Listener,
    sockets: Sequence[socket.socket],
    what: str,
    setting: str,
) -> bool:
    """Warn that every client which reaches the listener may do `what`, and name the `setting` of its address. Returns
    whether it has warned.

    There is no warning for a listener that is bound to addresses of this machine only.
    """
    if not _is_open(sockets):
        return False
    logger.warning("%s (%s)", _words(listener, what), setting)
    return True


def why_refused(
    settings: Settings, listener: Listener, sockets: Sequence[socket.socket], what: str, setting: str
) -> str | None:
    """The line with which `lc.listeners.open=refuse` refuses what `warn_if_open` would warn of; None: it is allowed."""
    if settings.text("lc.listeners.open") != "refuse" or not _is_open(sockets):
        return None
    return f"{_words(listener, what)} ({setting}), which lc.listeners.open=refuse forbids"


def _words(listener: Listener, what: str) -> str:
    where = f"{listener.host or 'this machine'} port {listener.port}"
    return f"every host that reaches {where} may {what} without authentication"


def _is_open(sockets: Sequence[socket.socket]) -> bool:
    return not all(_is_loopback(sock.getsockname()[0]) for sock in sockets)


def _is_loopback(address: str) -> bool:
    """As `getsockname` writes them. An IPv6 socket here takes no mapped IPv4 address."""
    return address.startswith("127.") or address == "::1"
