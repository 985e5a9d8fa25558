"""`Broker.listen`: the address and the TLS of a plugin's listener, from the settings that `listener_settings` declares.

Sockets are bound by the same code as the broker's own. While one is open it stands in `plugged.listeners`, for the
ready file and for `/health`.
"""

import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.config.listeners import WILDCARDS, Listener, host_name
from leafcuttr.errors import PluginError, StartError
from leafcuttr.net.binding import bind
from leafcuttr.net.exposure import warn_if_open
from leafcuttr.net.tls import TlsError, TlsFiles, server_context
from leafcuttr.state.broker import Broker as Core
from leafcuttr_sdk.settings import Settings

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

_BACKLOG: Final = 1024


class Open(NamedTuple):
    """`Listening` of the SDK."""

    sockets: Sequence[socket.socket]
    host: str
    port: int
    ssl_context: "ssl.SSLContext | None"


@asynccontextmanager
async def listen(
    core: Core, plugin: str, settings: Settings, prefix: str, *, authenticates: bool = False
) -> AsyncIterator[Open]:
    """See `leafcuttr_sdk.Broker.listen`. Raises PluginError."""
    host = settings.optional_text(f"{prefix}.host")
    if host is None:
        host = core.listeners[0].host
    port = settings.int(f"{prefix}.port")
    shown = host_name() if host in WILDCARDS else host
    requested = Listener(
        prefix, host, port, shown, port, "SSL" if _keystore(settings, prefix) else "PLAINTEXT"
    )
    context, (listener, sockets) = await trio.to_thread.run_sync(
        _prepare, requested, tls_files(settings, prefix), abandon_on_cancel=False
    )
    try:
        if prefix in core.plugged.listeners:
            raise PluginError(f"{prefix} is open already")
        if not authenticates and settings.text(f"{prefix}.ssl.client.auth") != "required":
            _warn_once(core, plugin, listener, sockets)
        core.plugged.listeners[prefix] = listener
        try:
            yield Open(sockets, listener.host, listener.port, context)
        finally:
            del core.plugged.listeners[prefix]
    finally:
        for sock in sockets:
            sock.close()


def _keystore(settings: Settings, prefix: str) -> str | None:
    return settings.optional_text(f"{prefix}.ssl.keystore.location") or None


def tls_files(settings: Settings, prefix: str) -> TlsFiles:
    """What the settings of a listener say of TLS."""
    return TlsFiles(
        prefix,
        _keystore(settings, prefix),
        settings.optional_text(f"{prefix}.ssl.key.password") or None,
        settings.optional_text(f"{prefix}.ssl.truststore.location") or None,
        settings.text(f"{prefix}.ssl.client.auth"),
    )


def _prepare(
    requested: Listener, files: TlsFiles
) -> "tuple[ssl.SSLContext | None, tuple[Listener, list[socket.socket]]]":
    """In a worker thread: files are read and names looked up."""
    try:
        return server_context(files), bind(requested, _BACKLOG, setting=f"{requested.name}.port")
    except (TlsError, StartError) as error:
        raise PluginError(str(error)) from None


def _warn_once(core: Core, plugin: str, listener: Listener, sockets: Sequence[socket.socket]) -> None:
    """However often its service is started again."""
    name = listener.name
    if name not in core.plugged.warned and warn_if_open(
        logger, listener, sockets, f"use {name} of plugin {plugin}", f"{name}.host"
    ):
        core.plugged.warned.add(name)
