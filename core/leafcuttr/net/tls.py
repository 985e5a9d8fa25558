"""TLS for listeners: Kafka's `ssl.*` settings, checked, as a context of Python's ssl module.

Files are read by `keystores`; cipher suites are in `cipher_suites`. Everything that can be wrong is one line that names
the setting. What clients may refuse is in `doubts`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from leafcuttr.net.tls_files import VERSIONS, TlsError, TlsFiles

if TYPE_CHECKING:
    import ssl

    from leafcuttr.net.certificates import Certificate
    from leafcuttr.net.keystores import KeyEntry


class ServerTls(NamedTuple):
    """The context of a listener, and the chain of certificates that it shows, its own first."""

    context: "ssl.SSLContext"
    setting: str
    """Where they are from, for messages."""
    chain: "tuple[Certificate, ...]"


def server_context(files: TlsFiles) -> "ssl.SSLContext | None":
    """None where no keystore is given: plaintext. TLS 1.2 and later. Blocks: files are read. Raises TlsError."""
    if not files.has_key:
        _check_plaintext(files)
        return None
    return server_tls(files).context


def server_tls(files: TlsFiles, make: "Callable[[int], ssl.SSLContext] | None" = None) -> ServerTls:
    """As `server_context`, of a listener that has TLS. `make` makes the context of a protocol, `ssl.SSLContext` if it
    is not given."""
    import ssl

    from leafcuttr.net.keystores import read_key_entry

    entry = read_key_entry(files)
    context = (make or ssl.SSLContext)(ssl.PROTOCOL_TLS_SERVER)
    _choose_versions(context, files)
    _load_key(context, files, entry)
    _load_trusted(context, files)
    if files.cipher_suites:
        from leafcuttr.net.cipher_suites import choose

        choose(context, files.cipher_suites, files.versions, files.name("cipher.suites"))
    return ServerTls(context, entry.setting, entry.chain)


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


def _load_key(context: "ssl.SSLContext", files: TlsFiles, entry: "KeyEntry") -> None:
    import ssl

    password = files.name("key.password")
    try:
        # Always with a password: OpenSSL would prompt for one on the terminal.
        with _in_memory(entry.pem()) as path:
            context.load_cert_chain(path, password=files.key_password or "")
    except ssl.SSLError as error:
        if entry.key.is_encrypted and error.reason not in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise TlsError(f"{entry.setting}: {password} does not open the private key") from None
        raise TlsError(f"{entry.setting}: {_meaning(error)}") from None
    except ValueError as error:  # a password of over 1024 bytes
        raise TlsError(f"{password}: {error}") from None


@contextmanager
def _in_memory(pem: bytes) -> Iterator[str]:
    """The path of a file with this PEM that is on no disk: OpenSSL takes a key from a file only."""
    descriptor = os.memfd_create("leafcuttr-key", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


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

    from leafcuttr.net.keystores import read_trusted

    found = read_trusted(files)
    if found is not None:
        setting, certificates = found
        try:
            context.load_verify_locations(cadata=b"".join(certificates))
        except (ssl.SSLError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise TlsError(f"{setting}: it cannot be read ({reason})") from None
        # As in Java: what is in a truststore is trusted, whether or not its own issuer is there too.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    elif files.client_auth != "none":
        raise TlsError(
            f"{files.name('client.auth')}={files.client_auth} needs {files.name('truststore.location')}: "
            "the certificates that sign those of clients"
        )
    if files.client_auth != "none":
        required = files.client_auth == "required"
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL
