"""Certificates of every kind, for what reads them: they are signed, but by nobody that is trusted."""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID

BEGIN = datetime.datetime(2024, 2, 29, 12, 30, 59, tzinfo=datetime.UTC)
SIGNER = ec.generate_private_key(ec.SECP256R1())


def named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def certificate(
    *extensions: x509.ExtensionType,
    subject: str = "alice",
    issuer: str = "ca",
    end: datetime.datetime = BEGIN + datetime.timedelta(days=10),
    key: CertificateIssuerPrivateKeyTypes = SIGNER,
) -> x509.Certificate:
    builder = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(issuer))
        .public_key(key.public_key())
        .serial_number(0x80_00_00_00_01)
        .not_valid_before(BEGIN)
        .not_valid_after(end)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(SIGNER, hashes.SHA256())
