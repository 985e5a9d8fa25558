"""JKS, as Java 17's keytool has written it (`keystores/make.sh`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate

from leafcuttr.net.jks import JksEntry, JksError, JksPasswordError, read_jks

FOLDER = Path(__file__).parent / "keystores"
KEY = (FOLDER / "key.jks").read_bytes()


def test_a_key_with_its_certificate() -> None:
    (entry,) = read_jks(KEY, "store-secret")
    assert entry.alias == "broker"
    certificate = load_der_x509_certificate(entry.certificates[0])
    key = load_der_private_key(entry.key("key-secret"), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.public_key() == certificate.public_key()


def test_trusted_certificates_need_no_password() -> None:
    data = (FOLDER / "trust.jks").read_bytes()
    for password in (None, "trust-secret"):
        (entry,) = read_jks(data, password)
        assert entry.alias == "ca-é" and entry.protected_key is None
        assert load_der_x509_certificate(entry.certificates[0])


def test_other_passwords() -> None:
    with pytest.raises(JksPasswordError):
        read_jks(KEY, "store-Secret")
    (entry,) = read_jks(KEY, None)
    with pytest.raises(JksPasswordError):
        entry.key("store-secret")


def test_the_password_notices_each_change() -> None:
    for place in range(4, len(KEY)):
        changed = KEY[:place] + bytes([KEY[place] ^ 1]) + KEY[place + 1 :]
        with pytest.raises(JksPasswordError):
            read_jks(changed, "store-secret")


def test_without_a_password_any_bytes_are_read_or_refused() -> None:
    for place in range(len(KEY)):
        for octet in (0, 0x7F, 0xFF):
            try:
                for entry in read_jks(KEY[:place] + bytes([octet]) + KEY[place + 1 :], None):
                    if entry.protected_key is not None:
                        entry.key("key-secret")
            except JksError:
                continue
        with pytest.raises(JksError):
            read_jks(KEY[:place], None)


def test_a_count_that_is_only_claimed() -> None:
    """Nothing is made of it in advance."""
    header = b"\xfe\xed\xfe\xed" + (2).to_bytes(4, "big") + b"\xff\xff\xff\xff"
    with pytest.raises(JksError, match="it ends too early"):
        read_jks(header + bytes(20), None)


def test_a_key_that_is_none() -> None:
    """Nor is one decrypted that would take long."""
    algorithm = bytes.fromhex("300e060a2b060104012a021101010500")

    def protected(content: bytes) -> bytes:
        inner = algorithm + b"\x04\x83" + len(content).to_bytes(3, "big") + content
        return b"\x30\x83" + len(inner).to_bytes(3, "big") + inner

    for size in (39, 65_537):
        with pytest.raises(JksError, match=f"its private key has {size} bytes"):
            JksEntry("a", protected(bytes(size)), ()).key("x")
    with pytest.raises(JksPasswordError):
        JksEntry("a", protected(bytes(65_536)), ()).key("x")
    with pytest.raises(JksError, match="cannot be read"):
        JksEntry("a", b"", ()).key("x")
