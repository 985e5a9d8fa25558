"""TLS of a client: a context of Python's ssl module, made of PEM from files or from texts, or of stores (`stores`).

Whatever is wrong with them is one line that names the setting, here or in `words`. A context is made again once one of
its files has changed, so that a client which runs for months takes a renewed certificate at its next connection.
"""

import os
import re
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from leafcuttr.client.errors import ClientSettingError, ConnectionLost, NotKafka, TlsRefused
from leafcuttr.client.settings import ClientTls, Pem
from leafcuttr.client.store_kinds import PEM, kind_of_store

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_STORES: Final = ("ssl.keystore.location", "ssl.truststore.location")
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64

_Signature = tuple[tuple[int, int, int] | None, ...]


class TlsContexts:
    """The context of a client's settings. Any thread."""

    def __init__(self, tls: ClientTls) -> None:
        self._tls = tls
        self._made: tuple[_Signature, ssl.SSLContext] | None = None

    def current(self) -> ssl.SSLContext:
        """Made of the files as they are now. Raises ClientSettingError. Blocks."""
        signature = tuple(_of_file(pem.text) for pem in _parts(self._tls) if pem.is_file)
        if self._made is None or self._made[0] != signature:
            self._made = signature, make_context(self._tls)
        return self._made[1]


def make_context(tls: ClientTls) -> ssl.SSLContext:
    """Raises ClientSettingError. Blocks: files are read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = min(_VERSIONS[name] for name in tls.versions)
    context.maximum_version = max(_VERSIONS[name] for name in tls.versions)
    context.check_hostname = tls.verifies and tls.checks_host
    context.verify_mode = ssl.CERT_REQUIRED if tls.verifies else ssl.CERT_NONE
    if tls.ciphers is not None:
        try:
            context.set_ciphers(tls.ciphers)
        except ssl.SSLError:
            raise ClientSettingError(f"ssl.cipher.suites={tls.ciphers}: OpenSSL knows none of them") from None
    if tls.verifies:
        _load_trusted(context, tls)
    _load_own(context, tls)
    return context


def words(peer: str, error: BaseException) -> ConnectionLost | TlsRefused | NotKafka:
    """What an error of OpenSSL's means for the connection to `peer`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        return TlsRefused(f"{peer}: its certificate is refused: {why} ({_setting_for(error)})")
    if isinstance(error, ssl.SSLError) and error.reason and "EOF" not in error.reason:
        if "ALERT" in error.reason:
            return TlsRefused(f"{peer} refuses our TLS: {_readable(error.reason)} ({_OWN})")
        if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
            return NotKafka(
                f"{peer} speaks no TLS (security.protocol=PLAINTEXT or SASL_PLAINTEXT, if it is Kafka)"
            )
        return TlsRefused(f"{peer}: no TLS: {_readable(error.reason)}")
    return ConnectionLost(
        f"{peer} closed the connection during the TLS handshake; it may speak no TLS (security.protocol=PLAINTEXT or "
        "SASL_PLAINTEXT)"
    )


_OWN: Final = "ssl.keystore.location or ssl.certificate.location is our certificate"
_UNABLE_TO_GET_ISSUER: Final = (18, 19, 20, 21)


def _setting_for(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _UNABLE_TO_GET_ISSUER:
        return "ssl.truststore.location or ssl.ca.location names its authority"
    if error.verify_code in (62, 64):  # of another host, of another address
        return "ssl.endpoint.identification.algorithm=none takes any name"
    return "enable.ssl.certificate.verification=false takes any certificate"


def _readable(reason: str) -> str:
    return reason.replace("_", " ").lower()


def _load_trusted(context: ssl.SSLContext, tls: ClientTls) -> None:
    if tls.trusted is None:
        context.load_default_certs()
    elif is_store(tls.trusted):
        from leafcuttr.client.stores import trusted_of_store

        certificates = trusted_of_store(tls.trusted.text, tls)
        try:
            context.load_verify_locations(cadata=b"".join(certificates))
        except (ssl.SSLError, ValueError):
            raise ClientSettingError(f"{tls.trusted}: it has a certificate that cannot be read") from None
        # As in Java: what is in a truststore is trusted, whether or not its own issuer is there too.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    else:
        text = _pem_of(tls.trusted)
        try:
            context.load_verify_locations(cadata="".join(_blocks(text, "CERTIFICATE")))
        except (ssl.SSLError, ValueError):
            raise ClientSettingError(f"{tls.trusted}: it has no certificate that can be read") from None
    if tls.revoked is not None:
        text = _pem_of(tls.revoked)
        try:
            with _as_file(text) as path:
                context.load_verify_locations(path)
        except ssl.SSLError:
            raise ClientSettingError(f"{tls.revoked}: it has no list that can be read") from None
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _load_own(context: ssl.SSLContext, tls: ClientTls) -> None:
    if tls.certificate is None:
        if tls.key is not None:
            raise ClientSettingError(f"{tls.key}: a key without a certificate")
        return
    if is_store(tls.certificate):
        if tls.key is not None:
            raise ClientSettingError(
                f"{tls.certificate} is no PEM, and has the key too: {tls.key.setting} is not allowed beside it"
            )
        _load_store(context, tls.certificate, tls)
        return
    certificate = _pem_of(tls.certificate)
    key = certificate if tls.key is None else _pem_of(tls.key)
    named = tls.certificate if tls.key is None else tls.key
    keys = [block for block in _blocks(key) if "PRIVATE KEY" in block.partition("\n")[0]]
    if not keys:
        raise ClientSettingError(
            f"{named}: there is no private key in PEM (ssl.key.location or ssl.keystore.key names it)"
        )
    if tls.key_password is None and ("ENCRYPTED" in keys[0]):
        raise ClientSettingError(f"{named}: the private key is encrypted, and ssl.key.password is not given")
    try:
        with _as_file("".join((keys[0], *_blocks(certificate, "CERTIFICATE")))) as path:
            # Always with a password: OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(path, password=tls.key_password or "")
    except ssl.SSLError as error:
        if "ENCRYPTED" in keys[0] and error.reason not in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
            raise ClientSettingError(f"{named}: ssl.key.password does not open the private key") from None
        raise ClientSettingError(f"{tls.certificate}: {_meaning(error)}") from None
    except ValueError as error:  # a password of over 1024 bytes
        raise ClientSettingError(f"ssl.key.password: {error}") from None


def _load_store(context: ssl.SSLContext, store: Pem, tls: ClientTls) -> None:
    from leafcuttr.client.stores import own_of_store

    try:
        with _as_file(own_of_store(store.text, tls)) as path:
            context.load_cert_chain(path, password="")
    except ssl.SSLError as error:
        raise ClientSettingError(f"{store}: {_meaning(error)}") from None


def _meaning(error: ssl.SSLError) -> str:
    if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return "the private key does not belong to the first certificate"
    return f"it cannot be read ({_readable(error.reason) if error.reason else error})"


def is_store(pem: Pem) -> bool:
    """Whether it is a keystore or a truststore that is no PEM, by what its file begins with. Blocks."""
    return pem.setting in _STORES and kind_of_store(pem.text) not in (None, PEM)


def _pem_of(pem: Pem) -> str:
    """The text. Raises ClientSettingError for a file that cannot be read or is no PEM."""
    if not pem.is_file:
        text = pem.text
    else:
        try:
            text = Path(pem.text).read_bytes().decode("latin-1")
        except OSError as error:
            raise ClientSettingError(f"{pem}: {error.strerror}") from None
    if "-----BEGIN " not in text:
        raise ClientSettingError(f"{pem}: there is no PEM in it")
    return text


def _blocks(text: str, kind: str | None = None) -> Iterator[str]:
    """The blocks of PEM in lines as OpenSSL wants them: a setting may be one long line."""
    for name, body in _BLOCK.findall(text):
        if kind is not None and name.removeprefix("TRUSTED ") != kind:
            continue
        # The old form of an encrypted key has headers, which stay as they are.
        lines = [body.strip()] if ":" in body else _wrapped("".join(body.split()))
        yield "\n".join((f"-----BEGIN {name}-----", *lines, f"-----END {name}-----", ""))


def _wrapped(text: str) -> Iterable[str]:
    return (text[at : at + _LINE] for at in range(0, len(text), _LINE))


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A name that OpenSSL can open for something that is on no disk."""
    number = os.memfd_create("leafcuttr-pem", os.MFD_CLOEXEC)
    try:
        os.write(number, text.encode("latin-1"))
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)


def _parts(tls: ClientTls) -> Iterator[Pem]:
    for part in (tls.trusted, tls.revoked, tls.certificate, tls.key):
        if part is not None:
            yield part


def _of_file(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
