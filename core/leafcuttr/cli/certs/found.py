"""Certificates of a file of any kind, or of a server that shows them; nothing of them is verified."""

import socket
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.output import printable
from leafcuttr.net.certificates import Certificate, parse_certificate
from leafcuttr.net.der import DerError
from leafcuttr.net.keystores import needs_password, read_certificates
from leafcuttr.net.tls_files import TlsError

_DATE: Final = "%Y-%m-%d"


def certificates_of_file(file: Path, password: str | None) -> list[Certificate]:
    """Raises Failure."""
    try:
        return list(read_certificates(str(file), password))
    except TlsError as error:
        raise Failure(str(error)) from None


def password_of(file: Path, password_file: Path | None) -> str | None:
    """That of a keystore: from a file, else by a prompt or from standard input, if nothing can be read without one.
    Raises Failure."""
    if password_file is not None:
        try:
            return password_file.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise Failure(f"--password-file {password_file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise Failure(f"--password-file {password_file}: it is not UTF-8") from None
    try:
        if not needs_password(str(file)):
            return None
    except TlsError as error:
        raise Failure(str(error)) from None
    if sys.stdin.isatty():
        return str(click.prompt(f"Password of {file}", hide_input=True, err=True))
    return sys.stdin.readline().rstrip("\r\n")


def certificates_of_server(host: str, port: int, timeout_s: float) -> list[Certificate]:
    """Its own, and with Python 3.13 or later the chain behind it. Raises Failure."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout_s) as sock,
            context.wrap_socket(sock, server_hostname=host) as tls,
        ):
            whole = getattr(tls, "get_unverified_chain", None)
            own = tls.getpeercert(True)
            encoded: Sequence[bytes] = whole() if whole is not None else [own] if own else []
    except ssl.SSLError as error:
        raise Failure(
            f"{host}:{port}: no TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
        ) from None
    except (OSError, UnicodeError) as error:
        raise Failure(f"{host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    try:
        return [parse_certificate(each) for each in encoded]
    except DerError as error:
        raise Failure(f"{host}:{port}: its certificate cannot be read: {error}") from None


def as_json(one: Certificate, now_s: float) -> dict[str, Any]:
    return {
        "subject": one.subject_text,
        "issuer": one.issuer_text,
        "names": one.names,
        "other_names": one.other_names,
        "not_before": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.not_before)),
        "not_after": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.not_after)),
        "days_left": int(one.days_left(now_s) // 1),
        "key": str(one.key),
        "authority": one.is_authority,
        "serial": f"{one.serial:x}",
        "sha256": one.fingerprint,
    }


def show(one: Certificate, now_s: float) -> None:
    """For people."""
    days = one.days_left(now_s)
    left = f"{days:.0f} days left" if days >= 0 else "expired"
    rows = {
        "subject": one.subject_text,
        "issuer": one.issuer_text,
        "names": ", ".join([*one.names, *one.other_names]) or "-",
        "valid": f"{time.strftime(_DATE, time.gmtime(one.not_before))} to "
        f"{time.strftime(_DATE, time.gmtime(one.not_after))}, {left}",
        "key": str(one.key) + (", of an authority" if one.is_authority else ""),
        "serial": f"{one.serial:x}",
        "SHA-256": one.fingerprint,
    }
    for name, text in rows.items():
        click.echo(f"{name:<8} {printable(text)}")
