"""Certificates, beside what the package cryptography reads of the same bytes."""

from __future__ import annotations

import datetime
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.net.certificates import Certificate, CertificateKey, first_gap, parse_certificate
from leafcuttr.net.der import DerError
from support.made_certificates import BEGIN, certificate


def parsed(made: x509.Certificate) -> Certificate:
    return parse_certificate(made.public_bytes(Encoding.DER))


def test_what_it_says() -> None:
    made = certificate()
    found = parsed(made)
    assert (found.subject_text, found.issuer_text) == ("CN=alice", "CN=ca")
    assert found.serial == made.serial_number
    assert found.not_before == BEGIN.timestamp()
    assert found.days_left(BEGIN.timestamp()) == 10
    assert found.fingerprint.replace(":", "").lower() == made.fingerprint(hashes.SHA256()).hex()
    assert found.encoded == made.public_bytes(Encoding.DER)
    assert found.key == CertificateKey("P-256", 256)
    assert not found.is_authority and found.serves and found.usages is None


@pytest.mark.parametrize("year", [2049, 2050, 9999])
def test_both_kinds_of_time(year: int) -> None:
    end = datetime.datetime(year, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    assert parsed(certificate(end=end)).not_after == end.timestamp()


def test_names() -> None:
    names = x509.SubjectAlternativeName(
        [
            x509.DNSName("kafka.example.org"),
            x509.DNSName("*.edge.example.org"),
            x509.IPAddress(ipaddress.ip_address("192.0.2.7")),
            x509.IPAddress(ipaddress.ip_address("2001:db8::7")),
            x509.RFC822Name("ops@example.org"),
            x509.UniformResourceIdentifier("spiffe://example/broker"),
        ]
    )
    found = parsed(certificate(names))
    assert found.names == ["*.edge.example.org", "192.0.2.7", "2001:db8::7", "kafka.example.org"]
    assert found.other_names == ["ops@example.org", "spiffe://example/broker"]
    assert len(found.alternative_names) == 6


@pytest.mark.parametrize(
    ("host", "is_for"),
    [
        ("kafka.example.org", True),
        ("KAFKA.example.org.", True),
        ("a.edge.example.org", True),
        ("edge.example.org", False),
        ("a.b.edge.example.org", False),
        (".edge.example.org", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("2001:DB8:0::7", True),
        ("[2001:db8::7]", True),
        ("alice", False),
    ],
)
def test_hosts(host: str, is_for: bool) -> None:
    names = [x509.DNSName("kafka.example.org"), x509.DNSName("*.edge.example.org"), x509.DNSName("*.org")]
    addresses = [x509.IPAddress(ipaddress.ip_address(each)) for each in ("192.0.2.7", "2001:db8::7")]
    found = parsed(certificate(x509.SubjectAlternativeName([*names, *addresses])))
    assert found.is_for(host) is is_for
    assert not found.is_for("example.org"), "a wildcard for all of a top-level domain counts for nothing"


def test_without_alternative_names_the_common_name_counts() -> None:
    assert parsed(certificate(subject="kafka")).is_for("kafka")


@pytest.mark.parametrize(
    ("key", "kind", "bits", "short"),
    [
        (rsa.generate_private_key(65537, 2048), "RSA", 2048, False),
        (rsa.generate_private_key(65537, 1024), "RSA", 1024, True),
        (ec.generate_private_key(ec.SECP384R1()), "P-384", 384, False),
        (ec.generate_private_key(ec.SECP521R1()), "P-521", 521, False),
        (ec.generate_private_key(ec.BrainpoolP256R1()), "EC 1.3.36.3.3.2.8.1.1.7", 0, False),
        (ed25519.Ed25519PrivateKey.generate(), "Ed25519", 256, False),
        (ed448.Ed448PrivateKey.generate(), "Ed448", 456, False),
        (dsa.generate_private_key(1024), "DSA", 0, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_keys(key: CertificateIssuerPrivateKeyTypes, kind: str, bits: int, short: bool) -> None:
    found = parsed(certificate(key=key)).key
    assert (found.kind, found.bits, found.is_short) == (kind, bits, short)
    assert str(found) == (f"RSA {bits}" if kind == "RSA" else kind)


def test_authorities_and_usages() -> None:
    assert parsed(certificate(x509.BasicConstraints(ca=True, path_length=1))).is_authority
    assert not parsed(certificate(x509.BasicConstraints(ca=False, path_length=None))).is_authority
    for usage, serves in (
        (ExtendedKeyUsageOID.SERVER_AUTH, True),
        (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE, True),
        (ExtendedKeyUsageOID.CLIENT_AUTH, False),
    ):
        assert parsed(certificate(x509.ExtendedKeyUsage([usage]))).serves is serves


def test_chains() -> None:
    own, middle, top = (
        parsed(certificate(subject=subject, issuer=issuer))
        for subject, issuer in (("a", "b"), ("b", "c"), ("c", "c"))
    )
    assert first_gap([own]) is None
    assert first_gap([own, middle, top]) is None
    assert first_gap([own, top, middle]) == 0
    assert first_gap([own, middle, own]) == 1


def test_any_octet_that_is_another() -> None:
    """Each is read, or refused with DerError; a certificate that is cut short always is."""
    good = certificate(x509.SubjectAlternativeName([x509.DNSName("a")])).public_bytes(Encoding.DER)
    for place in range(len(good)):
        for octet in (0, 0x1F, 0x30, 0x80, 0xFF):
            try:
                found = parse_certificate(good[:place] + bytes([octet]) + good[place + 1 :])
            except DerError:
                continue
            assert isinstance(found.subject_text, str) and isinstance(found.names, list)
        with pytest.raises(DerError):
            parse_certificate(good[:place])


@given(st.binary(max_size=100))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(DerError):
        parse_certificate(data)
