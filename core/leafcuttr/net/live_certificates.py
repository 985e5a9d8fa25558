"""The certificates of a listener, read again when their files change.

The context that the listener has stays the same object. Once files have been read again, each handshake that begins
goes on with the context of the new ones: so the key may be of another kind, and trusted certificates may be fewer.
Files that do not fit together, as while they are being replaced, are refused with one line, and what was read before
stays in use.
"""

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from leafcuttr.net.distinguished_names import same_name
from leafcuttr.net.doubts import doubts_of_chain
from leafcuttr.net.tls import ServerTls, server_tls
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
            # The keys of tickets stay those of this context: with a ticket from before the change a client would not
            # have to show a certificate that is trusted now.
            self.options |= ssl.OP_NO_TICKET
            self.num_tickets = 0


# Called for every ClientHello, whether or not it names a server.
def _take_newest(handshake: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
    assert isinstance(context, LiveContext)
    if context._newest is not None:
        handshake.context = context._newest


class LiveCertificates:
    """The files of one listener, its context, and the `chain` of certificates that it shows. Raises TlsError as
    `server_tls` does. Every method may be called in any thread, and blocks."""

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self._lock: Final = threading.Lock()
        self._signature = _signature(files)
        make: Callable[[int], ssl.SSLContext] = LiveContext
        tls = server_tls(files, make)
        assert isinstance(tls.context, LiveContext)
        self.context: Final[LiveContext] = tls.context
        self.chain = tls.chain
        self._doubt(tls)

    def check(self, files: TlsFiles) -> None:
        """Raise TlsError if these could not take the place of what is in use. Nothing is changed."""
        with self._lock:
            self._read(files)

    def use(self, files: TlsFiles) -> bool:
        """As `look`, with other settings."""
        with self._lock:
            return self._take(files) if files != self.files else self._look()

    def look(self) -> bool:
        """Whether the files have changed since they were read last and now fit; if so they are in use."""
        with self._lock:
            return self._look()

    def _look(self) -> bool:
        return _signature(self.files) != self._signature and self._take(self.files)

    def _take(self, files: TlsFiles) -> bool:
        signature = _signature(files)
        if files == self.files:
            self._signature = signature  # one line for one change, whether or not it fits
        try:
            tls = self._read(files)
        except TlsError as error:
            logger.error("%s; the certificate that was read before stays in use", error)
            return False
        self.context.follow(tls.context)
        self.files, self._signature, self.chain = files, signature, tls.chain
        source = files.keystore or files.name("keystore.key")
        logger.info("%s: the certificate was read again from %s", files.prefix or "ssl", source)
        self._doubt(tls)
        return True

    def _read(self, files: TlsFiles) -> ServerTls:
        """Raises TlsError, also for what is right in itself but not in the place of what is in use."""
        tls = server_tls(files)
        before, after = self.chain[0], tls.chain[0]
        now_s = time.time()
        if after.not_after < now_s <= before.not_after:
            raise TlsError(next(doubts_of_chain(tls.setting, tls.chain, now_s)).line)
        if not files.allows_other_subject and not same_name(before.subject, after.subject):
            raise TlsError(
                f"{tls.setting}: its subject is {after.subject_text} and was {before.subject_text} "
                f"({files.name('allow.dn.changes')}=true allows another)"
            )
        if not files.allows_other_names and not after.alternative_names >= before.alternative_names:
            lost = sorted({*before.names, *before.other_names} - {*after.names, *after.other_names})
            raise TlsError(
                f"{tls.setting}: of its alternative names {', '.join(lost) or 'some'} would be lost "
                f"({files.name('allow.san.changes')}=true allows it)"
            )
        return tls

    def _doubt(self, tls: ServerTls) -> None:
        for doubt in doubts_of_chain(tls.setting, tls.chain, time.time()):
            logger.warning("%s", doubt.line)


def _signature(files: TlsFiles) -> _Signature:
    """What changes when a file, or what a link leads to, is written or replaced."""
    return tuple(_of_file(path) for path in (files.keystore, files.truststore) if path is not None)


def _of_file(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
