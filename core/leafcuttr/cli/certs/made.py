"""A certificate authority to try with, and what it signs, in files of one folder: made by the package `cryptography`,
which comes with the extra `leafcuttr[security]`.

Nobody but the user can read the files with keys. An authority that is in the folder already signs what is made next.
"""

import os
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from leafcuttr.cli.common.failures import Failure

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, Name

CA_CERTIFICATE: Final = "ca.pem"
CA_KEY: Final = "ca.key"
_BACK_S: Final = 3600
"""Clocks of other machines may be behind."""


class Authority:
    """That of a folder. Raises Failure from every method."""

    def __init__(self, folder: Path, days: int) -> None:
        self._folder, self._days = folder, days
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise Failure("certificates are made by a package: pip install 'leafcuttr[security]'") from None
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / CA_CERTIFICATE, folder / CA_KEY
        if certificate.exists() and key.exists():
            self._certificate, self._key = _read(certificate, key)
            self.is_new = False
        else:
            self._certificate, self._key = self._made("leafcuttr-ca", None)
            _write(key, _pem_of_key(self._key))
            _write(certificate, _pem_of(self._certificate))
            self.is_new = True

    def issue(self, name: str, hosts: tuple[str, ...]) -> Path:
        """The file with the key and the certificate of `CN=name`, for a server if it has hosts, else for a client."""
        certificate, key = self._made(name, hosts)
        file = self._folder / f"{name}.pem"
        _write(file, _pem_of_key(key) + _pem_of(certificate))
        return file

    def _made(
        self, name: str, hosts: tuple[str, ...] | None
    ) -> "tuple[Certificate, EllipticCurvePrivateKey]":
        """Without `hosts` the authority itself, which its own key signs."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        subject = _name(name)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if hosts is None else self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(seconds=_BACK_S))
            .not_valid_after(now + timedelta(days=self._days))
            .add_extension(x509.BasicConstraints(ca=hosts is None, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        if hosts is not None:
            usage = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(issuer, critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([_host(each) for each in hosts])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(key if hosts is None else self._key, hashes.SHA256()), key


def _name(text: str) -> "Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
    except ValueError as error:
        raise Failure(f"{text}: {error}") from None


def _host(text: str) -> "GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(text.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(text)
    except ValueError as error:
        raise Failure(f"{text}: {error}") from None


def _pem_of(certificate: "Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)


def _pem_of_key(key: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read(certificate: Path, key: Path) -> "tuple[Certificate, EllipticCurvePrivateKey]":
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        found = load_pem_private_key(key.read_bytes(), None)
        signer = load_pem_x509_certificate(certificate.read_bytes())
    except OSError as error:
        raise Failure(f"{error.filename}: {error.strerror}") from None
    except (ValueError, TypeError) as error:
        raise Failure(f"{key} and {certificate} cannot be read: {error}") from None
    if not isinstance(found, EllipticCurvePrivateKey) or found.public_key() != signer.public_key():
        raise Failure(f"{key} is not the key of {certificate}")
    return signer, found


def _write(file: Path, data: bytes) -> None:
    """A new file, which nobody else can read from its first byte on."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
    except FileExistsError:
        raise Failure(f"{file} is there already") from None
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}") from None
