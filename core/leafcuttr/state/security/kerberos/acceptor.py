"""Tickets of clients, by the GSSAPI of the machine (RFC 2743, RFC 4121). The package `gssapi` (extra `kerberos`) is
imported by the first function that needs it, and nothing else knows of it.

All of it blocks: on the keytab, the cache of replays, and for the cryptography. A keytab that is replaced is read anew
by the library with each ticket.
"""

import os
import sys
from functools import lru_cache
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from leafcuttr.state.security.jaas_entries import java_property
from leafcuttr.state.security.kerberos.settings import ServiceKey
from leafcuttr_sdk.trouble import import_late

_MODULE: Final = "gssapi.raw"
_KRB5_CONFIG: Final = "KRB5_CONFIG"
_MOST_MESSAGE: Final = 300


class KerberosError(Exception):
    """What the library says, on one line, for the log. Nothing of a ticket is in it."""


class Shown(NamedTuple):
    """What a client's token led to: the token to answer, and once the client is known its principal and the seconds
    that its ticket, with the skew of clocks that krb5.conf allows, goes on; None: without end."""

    answer: bytes
    principal: str | None = None
    lasts_s: int | None = None


class SecurityContext(Protocol):
    """That of one client. Each method raises KerberosError."""

    def accept(self, token: bytes) -> Shown: ...

    def wrap(self, data: bytes) -> bytes:
        """Protected against change only, which is how RFC 4752 has it."""
        ...

    def unwrap(self, data: bytes) -> bytes: ...


class Acceptor(Protocol):
    """A service that takes tickets. `default_realm` is the machine's; empty: it has none."""

    @property
    def default_realm(self) -> str: ...

    def begin(self) -> SecurityContext: ...


@lru_cache(16)  # of all log-ins
def open_acceptor(key: ServiceKey) -> Acceptor:
    """Raises KerberosError where the key is not there, ImportError without the package."""
    return _Acceptor(library(), key)


def library() -> ModuleType:
    """The package. Raises ImportError."""
    config = java_property("java.security.krb5.conf")
    if config is not None:
        # Java's name of the file that MIT's library looks up by this one. It looks when it is first used.
        os.environ.setdefault(_KRB5_CONFIG, config)
    import_late(_MODULE)
    return sys.modules[_MODULE]


def _said(error: Any) -> str:
    """The reason of a GSSError: that of the mechanism, if it has one."""
    minor = error.get_all_statuses(error.min_code, False) if error.min_code else []
    text = "; ".join(minor or error.get_all_statuses(error.maj_code, True))
    return " ".join(text.split())[:_MOST_MESSAGE]


class _Acceptor:
    def __init__(self, gss: ModuleType, key: ServiceKey) -> None:
        self._gss = gss
        kind = gss.NameType.kerberos_principal
        mechanism = gss.MechType.kerberos
        try:
            name = gss.import_name(key.principal.encode(), kind)
            # None but Kerberos: SPNEGO would negotiate within what SASL has negotiated.
            self._credentials = gss.acquire_cred_from(
                {b"keytab": f"FILE:{_path(key.keytab)}".encode()}, name, mechs=[mechanism], usage="accept"
            ).creds
        except gss.GSSError as error:
            raise KerberosError(_said(error)) from None
        try:
            probe = gss.canonicalize_name(gss.import_name(b"x", kind), mechanism)
            shown = gss.display_name(probe, False).name.decode()
        except (gss.GSSError, UnicodeDecodeError):
            shown = ""
        self.default_realm = shown.partition("@")[2]

    def begin(self) -> "_Context":
        return _Context(self._gss, self._credentials)


def _path(keytab: str) -> str:
    """Java takes a path with the name of its kind before it too."""
    return keytab[5:] if keytab[:5].upper() == "FILE:" else keytab


class _Context:
    def __init__(self, gss: ModuleType, credentials: object) -> None:
        self._gss = gss
        self._credentials = credentials
        self._context: object = None

    def accept(self, token: bytes) -> Shown:
        gss = self._gss
        try:
            found = gss.accept_sec_context(token, self._credentials, self._context)
            self._context = found.context
            answer: bytes = found.token or b""
            if found.more_steps:
                return Shown(answer)
            if found.mech != gss.MechType.kerberos:
                raise KerberosError("a ticket of another mechanism than Kerberos")
            principal: str = gss.display_name(found.initiator_name, False).name.decode()
        except gss.GSSError as error:
            raise KerberosError(_said(error)) from None
        except UnicodeDecodeError:
            raise KerberosError("a principal whose name is not UTF-8") from None
        return Shown(answer, principal, found.lifetime)

    def wrap(self, data: bytes) -> bytes:
        try:
            wrapped: bytes = self._gss.wrap(self._context, data, False).message
        except self._gss.GSSError as error:
            raise KerberosError(_said(error)) from None
        return wrapped

    def unwrap(self, data: bytes) -> bytes:
        try:
            found: bytes = self._gss.unwrap(self._context, data).message
        except self._gss.GSSError as error:
            raise KerberosError(_said(error)) from None
        return found
