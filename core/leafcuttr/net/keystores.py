"""The key and the certificates of a listener, and those that it trusts: from PEM, as a file or as texts, from PKCS#12
and from JKS, told apart by their content, whatever a name ends with or `ssl.keystore.type` says.

A file is read once, and no key is written to a disk. What is wrong is a TlsError: one line that names the setting.
"""

import os
import stat
from collections.abc import Sequence
from typing import Final, NamedTuple

from leafcuttr.net.certificates import Certificate, parse_certificate
from leafcuttr.net.der import DerError, first
from leafcuttr.net.jks import MAGIC, JksEntry, JksError, JksPasswordError, read_jks
from leafcuttr.net.pem import PemBlock, PemError, blocks, pem_of
from leafcuttr.net.pkcs12 import Pkcs12, Pkcs12Error, can_read_pkcs12, read_pkcs12
from leafcuttr.net.tls_files import TlsError, TlsFiles

_JCEKS: Final = b"\xce\xce\xce\xce"
_DER: Final = b"\x30"
_MOST: Final = 4 << 20
"""Bytes of a file. A path may come over the wire."""
_PEM_BEGINS: Final = b"-----BEGIN "


class KeyEntry(NamedTuple):
    """A private key in PEM, and the chain of its certificates, its own first."""

    setting: str
    """Where it is from, for messages."""
    key: PemBlock
    chain: tuple[Certificate, ...]

    def pem(self) -> bytes:
        """All of it, as OpenSSL loads it."""
        return "".join(
            (self.key.text, *(pem_of("CERTIFICATE", each.encoded) for each in self.chain))
        ).encode()


def read_key_entry(files: TlsFiles) -> KeyEntry:
    """Raises TlsError. Blocks."""
    location, key, chain = (
        files.name(each) for each in ("keystore.location", "keystore.key", "keystore.certificate.chain")
    )
    if files.keystore is None:
        if files.key is None or files.chain is None:
            raise TlsError(f"{chain if files.key else key} is not given: {key} and {chain} need each other")
        return _of_pem(files, key, f"{files.key}\n{files.chain}")
    if files.key is not None or files.chain is not None:
        raise TlsError(f"{location} and {key if files.key else chain} are both given; allowed is one way")
    setting = f"{location}={files.keystore}"
    data = _read(setting, files.keystore)
    if data.startswith(MAGIC):
        return _of_jks(files, setting, data)
    if data.startswith(_DER):
        return _of_pkcs12(files, setting, data)
    _refuse_jceks(setting, data)
    return _of_pem(files, setting, data.decode("latin-1"))


def read_trusted(files: TlsFiles) -> tuple[str, tuple[bytes, ...]] | None:
    """Where they are from, for messages, and the trusted certificates in DER; None: the settings name none. Raises
    TlsError. Blocks."""
    setting = files.name("truststore.certificates")
    if files.truststore is None:
        if files.trusted is None:
            return None
        return setting, _certificates_of_pem(setting, files.trusted)
    if files.trusted is not None:
        raise TlsError(
            f"{files.name('truststore.location')} and {setting} are both given; allowed is one way"
        )
    setting = f"{files.name('truststore.location')}={files.truststore}"
    data = _read(setting, files.truststore)
    if data.startswith(MAGIC):
        found = _trusted_of_jks(files, setting, data)
    elif data.startswith(_DER):
        found = _trusted_of_pkcs12(files, setting, data)
    else:
        _refuse_jceks(setting, data)
        found = _certificates_of_pem(setting, data.decode("latin-1"))
    if not found:
        raise TlsError(f"{setting}: it has no certificate that is trusted")
    return setting, found


def read_certificates(file: str, password: str | None) -> list[Certificate]:
    """Every certificate that a file of any kind has, one in DER too. Raises TlsError. Blocks."""
    data = _read(file, file)
    if data.startswith(MAGIC):
        entries = _jks(file, data, password, "the password")
        return list(_parsed(file, [each for entry in entries for each in entry.certificates]))
    if data.startswith(_DER):
        try:
            return [parse_certificate(data)]
        except DerError:
            _refuse_without_package(file)
        found = _pkcs12(file, data, password, "the password")
        own = (found.certificate,) if found.certificate else ()
        return list(_parsed(file, [*own, *found.others]))
    _refuse_jceks(file, data)
    return list(_parsed(file, _certificates_of_pem(file, data.decode("latin-1"))))


def needs_password(file: str) -> bool:
    """Whether nothing can be read of this file without one. Raises TlsError. Blocks."""
    data = _read(file, file)
    if not data.startswith(_DER):
        return False
    try:
        parse_certificate(data)
    except DerError:
        return True
    return False


# PEM


def _of_pem(files: TlsFiles, setting: str, text: str) -> KeyEntry:
    found = list(blocks(text))
    keys = [each for each in found if each.is_key]
    certificates = [each for each in found if each.is_certificate]
    if not keys:
        has = "it has certificates only, and" if certificates else _no_pem(text)
        raise TlsError(f"{setting}: {has} the private key in PEM has to be there too")
    if len(keys) > 1:
        raise TlsError(f"{setting}: it has {len(keys)} private keys; allowed is one")
    if not certificates:
        raise TlsError(f"{setting}: it has a private key, and the certificate in PEM has to be there too")
    if keys[0].is_encrypted and files.key_password is None:
        raise TlsError(
            f"{setting}: the private key is encrypted, and {files.name('key.password')} is not given"
        )
    return KeyEntry(setting, keys[0], _parsed(setting, [_decoded(setting, each) for each in certificates]))


def _no_pem(text: str) -> str:
    return "it has PEM of another kind;" if _PEM_BEGINS.decode() in text else "it has no PEM;"


def _certificates_of_pem(setting: str, text: str) -> tuple[bytes, ...]:
    found = tuple(_decoded(setting, each) for each in blocks(text) if each.is_certificate)
    if not found:
        raise TlsError(f"{setting}: it has no certificate in PEM")
    return found


def _decoded(setting: str, block: PemBlock) -> bytes:
    try:
        return first(block.decoded()).raw  # behind a trusted certificate of OpenSSL's there is more
    except (PemError, DerError) as error:
        raise TlsError(f"{setting}: it cannot be read ({error})") from None


def _parsed(setting: str, encoded: Sequence[bytes]) -> tuple[Certificate, ...]:
    try:
        return tuple(parse_certificate(each) for each in encoded)
    except DerError as error:
        raise TlsError(f"{setting}: it cannot be read (a certificate that is none: {error})") from None


# JKS


def _of_jks(files: TlsFiles, setting: str, data: bytes) -> KeyEntry:
    password = _needed_password(files, setting, "JKS")
    found = _jks(setting, data, password, files.store_password_name)
    entries = [each for each in found if each.protected_key]
    if not entries:
        raise TlsError(f"{setting}: it has trusted certificates only, and a private key has to be there")
    if len(entries) > 1:
        aliases = ", ".join(sorted(each.alias for each in entries))
        raise TlsError(f"{setting}: it has {len(entries)} private keys ({aliases}); allowed is one")
    (entry,) = entries
    if not entry.certificates:
        raise TlsError(f"{setting}: its private key {entry.alias} has no certificate")
    try:
        key = entry.key(password if files.key_password is None else files.key_password)
    except JksPasswordError:
        name = files.store_password_name if files.key_password is None else files.name("key.password")
        raise TlsError(f"{setting}: {name} does not open the private key") from None
    except JksError as error:
        raise TlsError(f"{setting}: {error}") from None
    return _unencrypted(setting, key, entry.certificates)


def _trusted_of_jks(files: TlsFiles, setting: str, data: bytes) -> tuple[bytes, ...]:
    """As Java's: of a key its own certificate too."""
    entries = _jks(setting, data, files.truststore_password, files.name("truststore.password"))
    return tuple(each.certificates[0] for each in entries if each.certificates)


def _jks(setting: str, data: bytes, password: str | None, name: str) -> list[JksEntry]:
    """`name` is that of the password."""
    try:
        return read_jks(data, password)
    except JksPasswordError:
        raise TlsError(f"{setting}: {name} does not open it, or it has been changed") from None
    except JksError as error:
        raise TlsError(f"{setting}: it is a JKS keystore that cannot be read: {error}") from None


# PKCS#12


def _of_pkcs12(files: TlsFiles, setting: str, data: bytes) -> KeyEntry:
    _refuse_certificate(setting, data)
    _refuse_without_package(setting)
    password = _needed_password(files, setting, "PKCS#12")
    if files.key_password not in (None, password):
        raise TlsError(
            f"{setting}: {files.name('key.password')} is another than {files.store_password_name}; a PKCS#12 keystore "
            "has one password"
        )
    found = _pkcs12(setting, data, password, files.store_password_name)
    if found.key is None or found.certificate is None:
        raise TlsError(f"{setting}: it has certificates only, and the private key has to be there too")
    return _unencrypted(setting, found.key, [found.certificate, *found.others])


def _trusted_of_pkcs12(files: TlsFiles, setting: str, data: bytes) -> tuple[bytes, ...]:
    _refuse_certificate(setting, data)
    _refuse_without_package(setting)
    found = _pkcs12(setting, data, files.truststore_password, files.name("truststore.password"))
    return (*((found.certificate,) if found.certificate else ()), *found.others)


def _pkcs12(setting: str, data: bytes, password: str | None, name: str) -> Pkcs12:
    try:
        return read_pkcs12(data, password)
    except Pkcs12Error as error:
        why = f"{name} is not given" if password is None else f"{name} does not open it"
        raise TlsError(
            f"{setting}: it is a PKCS#12 keystore; {why}, or it cannot be read ({error})"
        ) from None


def _refuse_without_package(setting: str) -> None:
    if not can_read_pkcs12():
        raise TlsError(
            f"{setting}: it is a PKCS#12 keystore, which needs a package: pip install 'leafcuttr[security]'"
        )


def _refuse_certificate(setting: str, data: bytes) -> None:
    """One in DER begins as a PKCS#12 does."""
    try:
        parse_certificate(data)
    except DerError:
        return
    raise TlsError(
        f"{setting}: it is a certificate in DER; openssl x509 -inform der -in FILE -out FILE.pem makes PEM of it"
    )


# All of them


def _unencrypted(setting: str, key: bytes, certificates: Sequence[bytes]) -> KeyEntry:
    chain = _parsed(setting, certificates)
    return KeyEntry(setting, PemBlock("PRIVATE KEY", pem_of("PRIVATE KEY", key)), _ordered(chain))


def _ordered(certificates: Sequence[Certificate]) -> tuple[Certificate, ...]:
    """The first, and those that have issued it: PKCS#12 does not say in which order they are."""
    chain, left = [certificates[0]], list(certificates[1:])
    while issuer := next((each for each in left if each.subject == chain[-1].issuer), None):
        chain.append(issuer)
        left.remove(issuer)
    return tuple(chain)


def _needed_password(files: TlsFiles, setting: str, kind: str) -> str:
    if files.keystore_password is None:
        raise TlsError(f"{setting}: it is a {kind} keystore, and {files.store_password_name} is not given")
    return files.keystore_password


def _refuse_jceks(setting: str, data: bytes) -> None:
    if data.startswith(_JCEKS):
        raise TlsError(
            f"{setting}: it is a JCEKS keystore; keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 "
            "-deststoretype pkcs12 converts it"
        )


def _read(setting: str, file: str) -> bytes:
    """Of a file only: a pipe or a device might never end."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            kind = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise TlsError(f"{setting}: it is no file")
            with open(descriptor, "rb", closefd=False) as opened:
                found = opened.read(_MOST + 1) or b""  # None of a special file that has nothing now
        finally:
            os.close(descriptor)
    except OSError as error:
        raise TlsError(f"{setting}: {error.strerror or error}") from None
    if len(found) > _MOST:
        raise TlsError(f"{setting}: it has more than {_MOST >> 20} MiB")
    return found
