"""The certificates of a listener, read again when their files change.

The context that the listener has stays the same object. Once files have been read again, each handshake that begins
goes on with the context of the new ones: so the key may be of another kind, and trusted certificates may be fewer.
Files that do not fit together, as while they are being replaced, are refused with one line, and what was read before
stays in use.
"""

import logging
import os
import ssl
from collections.abc import Callable, Iterable
from typing import Final

from leafcuttr.net.tls import server_context
from leafcuttr.net.tls_files import TlsError, TlsFiles

logger = logging.getLogger(__name__)

_Signature = tuple[tuple[int, int, int, int] | None, ...]


class LiveContext(ssl.SSLContext):
    """The context of a listener. What its owner sets by `set_alpn_protocols` also holds for those that follow it."""

    _alpn: list[str] | None = None
    _newest: ssl.SSLContext | None = None

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        self._alpn = list(alpn_protocols)
        super().set_alpn_protocols(self._alpn)

    @property
    def newest(self) -> ssl.SSLContext:
        """The one whose settings hold for connections that begin now. What holds `self` has of them the certificates
        only: OpenSSL keeps versions, suites and what is requested of clients."""
        return self._newest or self

    def follow(self, newest: ssl.SSLContext) -> None:
        """Handshakes that begin from now on use this one. It may be called in any thread."""
        if self._alpn is not None:
            newest.set_alpn_protocols(self._alpn)
        self._newest = newest
        if self.sni_callback is None:
            self.sni_callback = _take_newest


# Called for every ClientHello, whether or not it names a server.
def _take_newest(handshake: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
    assert isinstance(context, LiveContext)
    if context._newest is not None:
        handshake.context = context._newest


class LiveCertificates:
    """The files of one listener, and its context. Raises TlsError as `server_context` does. Blocks."""

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self._signature = _signature(files)
        make: Callable[[int], ssl.SSLContext] = LiveContext
        context = server_context(files, make)
        assert isinstance(context, LiveContext), "without a keystore there is nothing to read"
        self.context: Final[LiveContext] = context

    def use(self, files: TlsFiles) -> bool:
        """As `look`, with other settings."""
        if files == self.files:
            return self.look()
        try:
            newest = server_context(files)
        except TlsError as error:
            logger.error("%s; the certificate that was read before stays in use", error)
            return False
        assert newest is not None, "without a keystore there is nothing to read"
        self.files, self._signature = files, _signature(files)
        self._take(newest)
        return True

    def look(self) -> bool:
        """Whether the files have changed since they were read last and now fit; if so they are in use. Blocks."""
        signature = _signature(self.files)
        if signature == self._signature:
            return False
        self._signature = signature
        try:
            newest = server_context(self.files)
        except TlsError as error:
            logger.error("%s; the certificate that was read before stays in use", error)
            return False
        assert newest is not None
        self._take(newest)
        return True

    def _take(self, newest: ssl.SSLContext) -> None:
        self.context.follow(newest)
        logger.info(
            "%s: the certificate was read again from %s",
            self.files.prefix or "ssl",
            self.files.keystore or self.files.name("keystore.key"),
        )


def _signature(files: TlsFiles) -> _Signature:
    """What changes when a file, or what a link leads to, is written or replaced."""
    return tuple(_of_file(path) for path in (files.keystore, files.truststore) if path is not None)


def _of_file(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
