"""TLS for listeners: Kafka's `ssl.*` settings, read and checked, as a context of Python's ssl module.

The key and its certificates are in one PEM file, as Kafka has it with `ssl.keystore.type=PEM`, or are the texts of
`ssl.keystore.key` and `ssl.keystore.certificate.chain`. Everything that can be wrong with them is one line that names
the setting. Cipher suites are in `cipher_suites`.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from leafcuttr.net.tls_files import VERSIONS, TlsError, TlsFiles

if TYPE_CHECKING:
    import ssl

_KEY: Final = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")
_ENCRYPTED: Final = re.compile(
    rb"-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: *4, *ENCRYPTED", re.MULTILINE
)
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_BINARY: Final = (b"\x30\x82", b"\xfe\xed\xfe\xed")  # PKCS#12, JKS


def server_context(
    files: TlsFiles, make: "Callable[[int], ssl.SSLContext] | None" = None
) -> "ssl.SSLContext | None":
    """None where no keystore is given: plaintext. TLS 1.2 and later. Blocks: files are read. Raises TlsError. `make`
    makes the context of a protocol, `ssl.SSLContext` if it is not given."""
    if files.keystore is None and files.key is None and files.chain is None:
        _check_plaintext(files)
        return None
    import ssl

    setting, pem = _key_and_certificates(files)
    context = (make or ssl.SSLContext)(ssl.PROTOCOL_TLS_SERVER)
    _choose_versions(context, files)
    _load_key(context, files, setting, pem)
    _load_trusted(context, files)
    if files.cipher_suites:
        from leafcuttr.net.cipher_suites import choose

        choose(context, files.cipher_suites, files.versions, files.name("cipher.suites"))
    return context


def _key_and_certificates(files: TlsFiles) -> tuple[str, bytes]:
    """Where they are from, for messages, and their PEM."""
    location, key, chain = (
        files.name(each) for each in ("keystore.location", "keystore.key", "keystore.certificate.chain")
    )
    if files.keystore is not None:
        if files.key is not None or files.chain is not None:
            raise TlsError(f"{location} and {key if files.key else chain} are both given; allowed is one way")
        setting = f"{location}={files.keystore}"
        return setting, _read(setting, files.keystore)
    if files.key is None or files.chain is None:
        raise TlsError(f"{chain if files.key else key} is not given: {key} and {chain} need each other")
    return key, f"{files.key}\n{files.chain}".encode()


def _choose_versions(context: "ssl.SSLContext", files: TlsFiles) -> None:
    import ssl

    wrong = [each for each in files.versions if each not in VERSIONS]
    if wrong or not files.versions:
        what = f"{wrong[0]} is not spoken" if wrong else "no version is named"
        raise TlsError(f"{files.name('enabled.protocols')}: {what}; allowed are {' and '.join(VERSIONS)}")
    known = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    named = sorted(known[each] for each in files.versions)
    context.minimum_version, context.maximum_version = named[0], named[-1]
    # KeyUpdate and renegotiation cost a server more than a client; Kafka refuses the latter too.
    context.options |= ssl.OP_NO_RENEGOTIATION


def _check_plaintext(files: TlsFiles) -> None:
    """Refuse settings that make sense only with TLS: with them the user expects it."""
    given = {
        "key.password": files.key_password is not None,
        "truststore.location": files.truststore is not None,
        f"client.auth={files.client_auth}": files.client_auth != "none",
    }
    for name, is_given in given.items():
        if is_given:
            raise TlsError(
                f"{files.name(name)} without {files.name('keystore.location')}: the listener would be plaintext"
            )


def _load_key(context: "ssl.SSLContext", files: TlsFiles, setting: str, pem: bytes) -> None:
    import ssl

    password = files.name("key.password")
    if not _KEY.search(pem):
        raise TlsError(f"{setting}: {_other_kind(pem)} the private key in PEM has to be there too")
    if _CERTIFICATE not in pem:
        raise TlsError(f"{setting}: it has a private key, and the certificate in PEM has to be there too")
    if _ENCRYPTED.search(pem) and files.key_password is None:
        raise TlsError(f"{setting}: the private key is encrypted, and {password} is not given")
    try:
        # Always with a password: OpenSSL would prompt for one on the terminal.
        with _as_file(files, pem) as path:
            context.load_cert_chain(path, password=files.key_password or "")
    except ssl.SSLError as error:
        if _ENCRYPTED.search(pem) and error.reason not in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise TlsError(f"{setting}: {password} does not open the private key") from None
        raise TlsError(f"{setting}: {_meaning(error)}") from None
    except ValueError as error:  # a password of over 1024 bytes
        raise TlsError(f"{password}: {error}") from None


@contextmanager
def _as_file(files: TlsFiles, pem: bytes) -> Iterator[str]:
    """The path of a file with this PEM. A text is in memory only: a key must not be left on a disk."""
    if files.keystore is not None:
        yield files.keystore
        return
    descriptor = os.memfd_create("leafcuttr-key")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


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

    setting = files.name("truststore.certificates")
    pem = None if files.trusted is None else files.trusted.encode()
    if files.truststore is not None:
        if pem is not None:
            raise TlsError(
                f"{files.name('truststore.location')} and {setting} are both given; allowed is one way"
            )
        setting = f"{files.name('truststore.location')}={files.truststore}"
        pem = _read(setting, files.truststore)
    if pem is not None:
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
            f"{files.name('client.auth')}={files.client_auth} needs {files.name('truststore.location')}: "
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
