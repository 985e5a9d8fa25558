"""Subjects as text. The expected texts are what `X500Principal.getName()` of Java 17 printed for the same bytes."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.net.der import DerError
from leafcuttr.net.distinguished_names import common_names, rfc2253, same_name

UTF8, PRINTABLE, IA5, BMP = 0x0C, 0x13, 0x16, 0x1E
CN, EMAIL = b"\x55\x04\x03", b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01"


def tlv(tag: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([tag, len(content)]) + content


def attribute(kind: bytes, tag: int, value: bytes) -> bytes:
    return tlv(0x30, tlv(6, kind) + tlv(tag, value))


def name(*relative: bytes) -> bytes:
    """Of sets of attributes."""
    return tlv(0x30, b"".join(tlv(0x31, each) for each in relative))


def common(value: str) -> bytes:
    return name(attribute(CN, UTF8, value.encode()))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("alice", "CN=alice"),
        ("", "CN="),
        ("Smith, John+x", r"CN=Smith\, John\+x"),
        ("a=b#c", r"CN=a\=b\#c"),
        ('<a>;"\\', r"CN=\<a\>\;\"\\"),
        ("  two", r"CN=\ \ two"),
        ("two  ", r"CN=two\ \ "),
        ("   ", r"CN=\ \ \ "),
        ("\ra\r", "CN=\\\ra\\\r"),
        ("a\0b", r"CN=a\00b"),
        ("a\nb\tc", "CN=a\nb\tc"),
        ("Ärger €𝄞", "CN=Ärger €𝄞"),
        ("'()-:?./@*&_!", "CN='()-:?./@*&_!"),
    ],
)
def test_values(value: str, text: str) -> None:
    assert rfc2253(common(value)) == text


def test_the_last_comes_first() -> None:
    made = x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "AT"),
            x509.NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "Tirol"),
            x509.NameAttribute(NameOID.LOCALITY_NAME, "Imst"),
            x509.NameAttribute(NameOID.STREET_ADDRESS, "Weg 1"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example"),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "web"),
            x509.NameAttribute(NameOID.DOMAIN_COMPONENT, "example"),
            x509.NameAttribute(NameOID.USER_ID, "7"),
            x509.NameAttribute(NameOID.COMMON_NAME, "alice"),
        ]
    )
    text = "CN=alice,UID=7,DC=example,OU=web,O=Example,STREET=Weg 1,L=Imst,ST=Tirol,C=AT"
    assert rfc2253(made.public_bytes()) == text


def test_other_attributes_are_hexadecimal() -> None:
    mail = attribute(EMAIL, IA5, b"a@b.c")
    assert rfc2253(name(mail)) == "1.2.840.113549.1.9.1=#16056140622e63"
    assert rfc2253(name(attribute(CN, 0x02, b"\x05"))) == "CN=#020105"


def test_attributes_of_one_set_keep_their_order() -> None:
    both = attribute(b"\x55\x04\x0b", PRINTABLE, b"web") + attribute(CN, UTF8, b"alice")
    assert rfc2253(name(attribute(b"\x55\x04\x0a", PRINTABLE, b"x"), both)) == "OU=web+CN=alice,O=x"


def test_the_octets_of_every_string_are_taken_for_utf_8() -> None:
    """So does Java, of a string of two octets a letter too."""
    assert rfc2253(name(attribute(CN, BMP, "ab".encode("utf-16-be")))) == r"CN=\00a\00b"
    assert rfc2253(name(attribute(CN, UTF8, b"a\xff"))) == "CN=a\ufffd"


def test_no_attributes() -> None:
    assert rfc2253(name()) == ""
    with pytest.raises(DerError):
        rfc2253(name(b""))


def test_common_names() -> None:
    assert common_names(name(attribute(EMAIL, IA5, b"m"), attribute(CN, UTF8, b"a, b"))) == ["a, b"]


def test_names_that_are_the_same() -> None:
    assert same_name(common("Alice  Smith"), common("alice smith"))
    assert same_name(common("a"), name(attribute(CN, PRINTABLE, b"a")))
    assert not same_name(common("alice"), common("bob"))


@given(st.binary(max_size=80))
def test_any_bytes(data: bytes) -> None:
    try:
        assert isinstance(rfc2253(data), str)
        common_names(data)
    except DerError:
        pass
