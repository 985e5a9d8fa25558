"""PKCS#12, as Java 17's keytool has written it (`keystores/make.sh`)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate

from leafcuttr.net.pkcs12 import Pkcs12Error, can_read_pkcs12, read_pkcs12

FOLDER = Path(__file__).parent / "keystores"


@pytest.mark.parametrize("file", ["key.p12", "old.p12"])
def test_a_key_with_its_certificate(file: str) -> None:
    found = read_pkcs12((FOLDER / file).read_bytes(), "store-secret")
    assert found.key is not None and found.certificate is not None and found.others == ()
    key = load_der_private_key(found.key, None)
    assert key.public_key() == load_der_x509_certificate(found.certificate).public_key()


def test_trusted_certificates() -> None:
    found = read_pkcs12((FOLDER / "trust.p12").read_bytes(), "trust-secret")
    assert found.key is None
    assert len([*filter(None, [found.certificate]), *found.others]) == 1


@pytest.mark.parametrize("password", [None, "", "other"])
def test_other_passwords(password: str | None) -> None:
    with pytest.raises(Pkcs12Error):
        read_pkcs12((FOLDER / "key.p12").read_bytes(), password)


def test_what_is_none() -> None:
    data = (FOLDER / "key.p12").read_bytes()
    for wrong in (b"", b"\x30", b"\x30\x82\x01\x02" + bytes(300), data[:500]):
        with pytest.raises(Pkcs12Error):
            read_pkcs12(wrong, "store-secret")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_read_pkcs12()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "cryptography")
    assert not can_read_pkcs12()
