"""`Broker.listen`: the address and the TLS of a plugin's listener, from the settings that `listener_settings` declares.

Sockets are bound by the same code as the broker's own. While one is open it stands in `plugged.listeners`, for the
ready file and for `/health`; a Unix socket stands there with `.unix` behind its prefix.
"""

import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.config.listeners import WILDCARDS, Listener, host_name
from leafcuttr.errors import AddressTaken, PluginError, StartError
from leafcuttr.net.binding import bind
from leafcuttr.net.exposure import warn_if_open, why_refused
from leafcuttr.net.tls import server_context
from leafcuttr.net.tls_files import TlsError, TlsFiles, files_of_prefix
from leafcuttr.net.unix import UnixSocket
from leafcuttr.runtime.connection_budget import most_of_plugins, share_of_plugins
from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk.errors import AddressTakenError
from leafcuttr_sdk.settings import Settings

if TYPE_CHECKING:
    import ssl

    from leafcuttr.net.live_certificates import LiveCertificates

logger = logging.getLogger(__name__)

NOT_OPENED: Final = -1
_BACKLOG: Final = 1024
# How much that the client's system has not taken yet may wait in this one. Accepted sockets inherit it.
_UNSENT: Final = 128 * 1024


class PreparedListener(NamedTuple):
    """What was opened in a worker thread."""

    listener: Listener | None
    sockets: Sequence[socket.socket]
    unix: UnixSocket | None
    certificates: "LiveCertificates | None"


class Open:
    """`Listening` of the SDK. `unix_path` is empty where there is no Unix socket."""

    def __init__(self, core: Core, settings: Settings, prefix: str, prepared: PreparedListener) -> None:
        listener, sockets, unix, certificates = prepared
        self._core = core
        self._settings = settings
        self._prefix = prefix
        self._prepared = prepared
        self.sockets: Final = [*sockets, *([unix.socket] if unix else [])]
        self.host: Final = listener.host if listener else ""
        self.port: Final = listener.port if listener else NOT_OPENED
        self.unix_path: Final = unix.path if unix else ""
        self.ssl_context: Final[ssl.SSLContext | None] = certificates.context if certificates else None

    @property
    def max_connections(self) -> int:
        plugged, for_logs = self._core.plugged, self._core.logs.most_open_files
        configured = _optional_int(self._settings, f"{self._prefix}.max.connections")
        others = plugged.connections - (
            plugged.served[self._prefix].connections if self._prefix in plugged.served else 0
        )
        most = max(most_of_plugins(for_logs) - others, 0)
        if configured >= 0:
            return min(configured, most)
        listeners = {name.removesuffix(".unix") for name in plugged.listeners}
        return min(share_of_plugins(for_logs) // max(len(listeners), 1), most)

    @property
    def accept_pauses(self) -> int:
        served = self._core.plugged.served.get(self._prefix)
        return 0 if served is None else served.ends.get("pause", 0)

    def close(self) -> None:
        """May be called twice."""
        for sock in self._prepared.sockets:
            sock.close()
        if self._prepared.unix is not None:
            self._prepared.unix.close()


@asynccontextmanager
async def listen(
    core: Core, plugin: str, settings: Settings, prefix: str, *, authenticates: bool = False
) -> AsyncIterator[Open]:
    """See `leafcuttr_sdk.Broker.listen`. Raises PluginError."""
    plugged = core.plugged
    prepared = await trio.to_thread.run_sync(
        _prepare, settings, prefix, core.listeners[0].host, abandon_on_cancel=False
    )
    opened = Open(core, settings, prefix, prepared)
    try:
        if prefix in plugged.listeners or f"{prefix}.unix" in plugged.listeners:
            raise PluginError(f"{prefix} is open already")
        listener, sockets, unix, certificates = prepared
        if listener and not authenticates and settings.text(f"{prefix}.ssl.client.auth") != "required":
            _judge_open(core, plugin, listener, sockets)
        if listener is not None:
            plugged.listeners[prefix] = listener
        if unix is not None:
            name = f"{prefix}.unix"
            plugged.listeners[name] = Listener(name, unix.path, 0, unix.path, 0, "PLAINTEXT")
        if certificates is not None:
            core.certificates[prefix] = certificates
        try:
            yield opened
        finally:
            for name in (prefix, f"{prefix}.unix"):
                plugged.listeners.pop(name, None)
            core.certificates.pop(prefix, None)
    finally:
        opened.close()


def _optional_int(settings: Settings, name: str) -> int:
    try:
        return settings.int(name)
    except KeyError:
        return -1


def _keystore(settings: Settings, prefix: str) -> str | None:
    return settings.optional_text(f"{prefix}.ssl.keystore.location") or None


def requested_listener(settings: Settings, prefix: str, default_host: str) -> Listener | None:
    """The address that the settings name; None where the port is not to be opened."""
    host, port = settings.optional_text(f"{prefix}.host"), settings.int(f"{prefix}.port")
    if port == NOT_OPENED:
        return None
    if host is None:
        host = default_host
    shown = host_name() if host in WILDCARDS else host
    return Listener(prefix, host, port, shown, port, "SSL" if _keystore(settings, prefix) else "PLAINTEXT")


def _prepare(settings: Settings, prefix: str, default_host: str) -> PreparedListener:
    """In a worker thread: files are read and names looked up. Raises PluginError, AddressTakenError."""
    requested = requested_listener(settings, prefix, default_host)
    sockets: Sequence[socket.socket] = ()
    try:
        certificates = _certificates(files_of_prefix(settings, prefix)) if requested else None
        if requested is not None:
            requested, sockets = bind(requested, _BACKLOG, setting=f"{prefix}.port")
            for sock in sockets:
                _set_options(sock)
        return PreparedListener(requested, sockets, _unix(settings, prefix), certificates)
    except (TlsError, StartError) as error:
        for sock in sockets:
            sock.close()
        kind = AddressTakenError if isinstance(error, AddressTaken) else PluginError
        raise kind(str(error)) from None


def _certificates(files: TlsFiles) -> "LiveCertificates | None":
    if files.keystore is None:
        server_context(files)  # which refuses what makes sense with TLS only
        return None
    from leafcuttr.net.live_certificates import LiveCertificates

    return LiveCertificates(files)


def _unix(settings: Settings, prefix: str) -> UnixSocket | None:
    setting = f"{prefix}.unix.path"
    try:
        path = settings.optional_text(setting)
    except KeyError:
        return None  # of a listener that has no such setting
    mode = int(settings.text(f"{prefix}.unix.mode"), 8) if path else 0
    return UnixSocket(path, mode, _BACKLOG, setting) if path else None


def _set_options(sock: socket.socket) -> None:
    """Of a socket that listens: those that it accepts inherit them."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)


def _judge_open(core: Core, plugin: str, listener: Listener, sockets: Sequence[socket.socket]) -> None:
    """Refuse, or warn of, one that needs no authentication; once, however often its service is started again. Raises
    PluginError."""
    name = listener.name
    what, setting = f"use {name} of plugin {plugin}", f"{name}.host"
    if (why := why_refused(core.settings, listener, sockets, what, setting)) is not None:
        raise PluginError(why)
    if name not in core.plugged.warned and warn_if_open(logger, listener, sockets, what, setting):
        core.plugged.warned.add(name)
