"""Blocks of PEM, as people write them into files and settings."""

from __future__ import annotations

import ssl

import pytest
import trustme

from leafcuttr.net.pem import PemError, blocks, pem_of

CA = trustme.CA()
TEXT = CA.cert_pem.bytes().decode()
DER = ssl.PEM_cert_to_DER_cert(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", ""),
        TEXT.replace("\n", " "),
        TEXT.replace("\n", "\r\n"),
        f"subject=CN = a\nBag Attributes\n{TEXT}\ntrailing",
    ],
)
def test_one_block(text: str) -> None:
    (found,) = blocks(text)
    assert found.is_certificate and not found.is_key and not found.is_encrypted
    assert found.decoded() == DER
    assert ssl.PEM_cert_to_DER_cert(found.text) == DER


def test_kinds() -> None:
    labels = [
        "PRIVATE KEY",
        "EC PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "EC PARAMETERS",
        "TRUSTED CERTIFICATE",
    ]
    found = list(blocks("".join(pem_of(each, b"x" * 60) for each in labels)))
    assert [each.label for each in found] == labels
    assert [each.is_key for each in found] == [True, True, True, False, False]
    assert [each.is_encrypted for each in found] == [False, False, True, False, False]
    assert [each.is_certificate for each in found] == [False] * 4 + [True]
    assert all(each.decoded() == b"x" * 60 for each in found)


def test_headers_stay() -> None:
    old = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n"
        "-----END RSA PRIVATE KEY-----\n"
    )
    (found,) = blocks(old)
    assert found.is_encrypted and found.text == old


def test_what_is_no_base64() -> None:
    (found,) = blocks("-----BEGIN CERTIFICATE-----\nMIIB!\n-----END CERTIFICATE-----")
    with pytest.raises(PemError, match="a certificate that is no base64"):
        found.decoded()


def test_no_blocks() -> None:
    assert list(blocks("-----BEGIN CERTIFICATE-----\nMIIB")) == []
    assert list(blocks("-----BEGIN A-----\nMIIB\n-----END B-----")) == []
