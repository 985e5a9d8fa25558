"""TLS for listeners: Kafka's `ssl.*` settings, read and checked, as a context of Python's ssl module.

The key and its certificates are in one PEM file, as Kafka has it with `ssl.keystore.type=PEM`. Everything that can be
wrong with the files is one line that names the setting.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import ssl

_KEY: Final = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")
_ENCRYPTED: Final = re.compile(
    rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: *4, *ENCRYPTED", re.MULTILINE
)
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_BINARY: Final = (b"\x30\x82", b"\xfe\xed\xfe\xed")  # PKCS#12, JKS


class TlsError(Exception):
    """A listener's TLS cannot be had: the message is one line that names the setting."""


class TlsFiles(NamedTuple):
    """The settings of one listener. `prefix` is what their names begin with, for messages."""

    prefix: str
    keystore: str | None
    key_password: str | None = None
    truststore: str | None = None
    client_auth: str = "none"


def server_context(
    files: TlsFiles, make: "Callable[[int], ssl.SSLContext] | None" = None
) -> "ssl.SSLContext | None":
    """None where no keystore is given: plaintext. TLS 1.2 and later. Blocks: files are read. Raises TlsError. `make`
    makes the context of a protocol, `ssl.SSLContext` if it is not given."""
    if files.keystore is None:
        _check_plaintext(files)
        return None
    import ssl

    setting = f"{files.prefix}.ssl.keystore.location={files.keystore}"
    pem = _read(setting, files.keystore)
    context = (make or ssl.SSLContext)(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_key(context, files, setting, pem)
    _load_trusted(context, files)
    return context


def _check_plaintext(files: TlsFiles) -> None:
    """Refuse settings that make sense only with TLS: with them the user expects it."""
    given = {
        "ssl.key.password": files.key_password is not None,
        "ssl.truststore.location": files.truststore is not None,
        f"ssl.client.auth={files.client_auth}": files.client_auth != "none",
    }
    for name, is_given in given.items():
        if is_given:
            raise TlsError(
                f"{files.prefix}.{name} without {files.prefix}.ssl.keystore.location: the listener would be plaintext"
            )


def _load_key(context: "ssl.SSLContext", files: TlsFiles, setting: str, pem: bytes) -> None:
    import ssl

    password = f"{files.prefix}.ssl.key.password"
    if not _KEY.search(pem):
        raise TlsError(f"{setting}: {_other_kind(pem)} the private key in PEM has to be there too")
    if _CERTIFICATE not in pem:
        raise TlsError(f"{setting}: it has a private key, and the certificate in PEM has to be there too")
    if _ENCRYPTED.search(pem) and files.key_password is None:
        raise TlsError(f"{setting}: the private key is encrypted, and {password} is not given")
    try:
        # Always with a password: OpenSSL would prompt for one on the terminal.
        context.load_cert_chain(files.keystore or "", password=files.key_password or "")
    except ssl.SSLError as error:
        if _ENCRYPTED.search(pem) and error.reason not in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise TlsError(f"{setting}: {password} does not open the private key") from None
        raise TlsError(f"{setting}: {_meaning(error)}") from None
    except ValueError as error:  # a password of over 1024 bytes
        raise TlsError(f"{password}: {error}") from None


def _other_kind(pem: bytes) -> str:
    if pem.startswith(_BINARY):
        return "it is no PEM but a keystore of Java or PKCS#12 (openssl pkcs12 -in FILE -out FILE.pem converts it);"
    return "it has certificates only, and" if _CERTIFICATE in pem else "it has no PEM;"


def _meaning(error: "ssl.SSLError") -> str:
    match error.reason:
        case "KEY_VALUES_MISMATCH" | "KEY_TYPE_MISMATCH":
            return "the private key does not belong to the first certificate; the listener's own comes first"
        case "EE_KEY_TOO_SMALL" | "CA_KEY_TOO_SMALL":
            return "the key is too short to be safe"
        case "CA_MD_TOO_WEAK":
            return "the certificate is signed by a method that is no longer safe"
        case reason:
            return f"it cannot be read ({reason or error})"


def _load_trusted(context: "ssl.SSLContext", files: TlsFiles) -> None:
    import ssl

    if files.truststore is not None:
        setting = f"{files.prefix}.ssl.truststore.location={files.truststore}"
        pem = _read(setting, files.truststore)
        if _CERTIFICATE not in pem:
            raise TlsError(f"{setting}: it has no certificate in PEM")
        try:
            context.load_verify_locations(cadata=pem.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError) as error:
            raise TlsError(
                f"{setting}: it cannot be read ({getattr(error, 'reason', None) or error})"
            ) from None
    elif files.client_auth != "none":
        raise TlsError(
            f"{files.prefix}.ssl.client.auth={files.client_auth} needs {files.prefix}.ssl.truststore.location: "
            "the certificates that sign those of clients"
        )
    if files.client_auth != "none":
        required = files.client_auth == "required"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL


def _read(setting: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise TlsError(f"{setting}: {error.strerror or error}") from None
