"""What a certificate says (RFC 5280), read from its DER: subject and issuer, dates, names, kind of key.

Nothing is verified here: that is OpenSSL's. Subjects as text are in `distinguished_names`, files in `keystores`.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from ipaddress import ip_address
from itertools import pairwise
from typing import Final, NamedTuple

from leafcuttr.net import der
from leafcuttr.net.der import DerError, Element, object_identifier
from leafcuttr.net.distinguished_names import common_names, rfc2253

_RSA: Final = "1.2.840.113549.1.1.1"
_RSA_PSS: Final = "1.2.840.113549.1.1.10"
_EC: Final = "1.2.840.10045.2.1"
_CURVES: Final = {
    "1.2.840.10045.3.1.7": ("P-256", 256),
    "1.3.132.0.34": ("P-384", 384),
    "1.3.132.0.35": ("P-521", 521),
    "1.3.132.0.10": ("secp256k1", 256),
    "1.3.132.0.33": ("P-224", 224),
}
_OTHER_KEYS: Final = {
    "1.3.101.112": ("Ed25519", 256),
    "1.3.101.113": ("Ed448", 456),
    "1.2.840.10040.4.1": ("DSA", 0),
}
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_BASIC_CONSTRAINTS: Final = "2.5.29.19"
_EXTENDED_KEY_USAGE: Final = "2.5.29.37"
_SERVER_AUTH: Final = ("1.3.6.1.5.5.7.3.1", "2.5.29.37.0")
_EMAIL, _DNS, _URI, _IP = 0x81, 0x82, 0x86, 0x87
"""Tags of GeneralName (RFC 5280, 4.2.1.6)."""
_TIMES: Final = {
    der.UTC_TIME: re.compile(rb"(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z\Z"),
    der.GENERALIZED_TIME: re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z\Z"),
}
_DAY_S: Final = 86_400
_SAFE_BITS: Final = {"RSA": 2048, "DSA": 2048}
_SAFE_CURVE_BITS: Final = 224


class CertificateKey(NamedTuple):
    """The kind of a public key, `RSA` or a curve, and its size."""

    kind: str
    bits: int

    @property
    def is_short(self) -> bool:
        """Whether clients of today may refuse it. A kind without a known size is not."""
        return 0 < self.bits < _SAFE_BITS.get(self.kind, _SAFE_CURVE_BITS)

    def __str__(self) -> str:
        return f"{self.kind} {self.bits}" if self.kind in _SAFE_BITS and self.bits else self.kind


class Certificate(NamedTuple):
    """One certificate. `subject` and `issuer` are Names in DER, times are seconds since 1970."""

    encoded: bytes
    serial: int
    subject: bytes
    issuer: bytes
    not_before: int
    not_after: int
    key: CertificateKey
    alternative_names: frozenset[tuple[int, bytes]]
    """Each with the tag of its kind."""
    is_authority: bool
    usages: frozenset[str] | None
    """Object identifiers of what its key may be used for; None: the certificate does not say."""

    @property
    def subject_text(self) -> str:
        return rfc2253(self.subject)

    @property
    def issuer_text(self) -> str:
        return rfc2253(self.issuer)

    @property
    def names(self) -> list[str]:
        """The hosts that it is for, sorted. Of a certificate without alternative names its common names, which Java
        and librdkafka accept and browsers do not."""
        if not self.alternative_names:
            return sorted(common_names(self.subject))
        hosts = [_host(tag, value) for tag, value in self.alternative_names if tag in (_DNS, _IP)]
        return sorted(each for each in hosts if each)

    @property
    def other_names(self) -> list[str]:
        """Alternative names that are no hosts: mail addresses and URIs."""
        found = [value for tag, value in self.alternative_names if tag in (_EMAIL, _URI)]
        return sorted(each.decode("latin-1") for each in found)

    @property
    def fingerprint(self) -> str:
        """SHA-256, as OpenSSL and keytool print it."""
        return sha256(self.encoded).digest().hex(":").upper()

    @property
    def serves(self) -> bool:
        """Whether a server may have it."""
        return self.usages is None or not self.usages.isdisjoint(_SERVER_AUTH)

    def days_left(self, now_s: float) -> float:
        return (self.not_after - now_s) / _DAY_S

    def is_for(self, host: str) -> bool:
        """Whether clients that connect to this name or address take it (RFC 6125, 6.4)."""
        wanted = host.rstrip(".").lower()
        return any(_matches(name.lower(), wanted) for name in self.names)


def parse_certificate(encoded: bytes) -> Certificate:
    """Read one. Raises DerError for what is none."""
    outer = der.first(encoded)
    signed = outer.fields(der.SEQUENCE, 3)[0]
    fields = signed.fields(der.SEQUENCE, 6)
    if fields[0].tag == 0xA0:  # the version, which is 1 where it is not given
        del fields[0]
    if len(fields) < 6:
        raise DerError(f"{len(fields)} fields where 6 belong")
    serial, _, issuer, validity, subject, key = fields[:6]
    not_before, not_after = validity.fields(der.SEQUENCE, 2)[:2]
    extensions = _extensions(fields[6:])
    rfc2253(subject.raw)  # so that what it cannot read is found here
    rfc2253(issuer.raw)
    return Certificate(
        outer.raw,
        int.from_bytes(serial.expect(der.INTEGER), "big", signed=True),
        subject.raw,
        issuer.raw,
        _time(not_before),
        _time(not_after),
        _key(key),
        _alternative_names(extensions.get(_ALTERNATIVE_NAMES)),
        _is_authority(extensions.get(_BASIC_CONSTRAINTS)),
        _usages(extensions.get(_EXTENDED_KEY_USAGE)),
    )


def first_gap(chain: Sequence[Certificate]) -> int | None:
    """The place of the first certificate that the one behind it has not issued; None: it is a chain."""
    for place, (one, issuer) in enumerate(pairwise(chain)):
        if one.issuer != issuer.subject:
            return place
    return None


def _extensions(fields: Sequence[Element]) -> dict[str, bytes]:
    """Their values by object identifier."""
    found: dict[str, bytes] = {}
    for field in fields:
        if field.tag != 0xA3:
            continue
        for one in der.first(field.content).fields(der.SEQUENCE, 1):
            kind, *_, value = one.fields(der.SEQUENCE, 2)
            found[object_identifier(kind.expect(der.OBJECT_IDENTIFIER))] = value.expect(der.OCTET_STRING)
    return found


def _alternative_names(value: bytes | None) -> frozenset[tuple[int, bytes]]:
    if value is None:
        return frozenset()
    return frozenset((each.tag, each.content) for each in der.first(value).fields(der.SEQUENCE, 0))


def _is_authority(value: bytes | None) -> bool:
    if value is None:
        return False
    fields = der.first(value).fields(der.SEQUENCE, 0)
    return bool(fields) and fields[0].tag == der.BOOLEAN and fields[0].content != b"\0"


def _usages(value: bytes | None) -> frozenset[str] | None:
    if value is None:
        return None
    return frozenset(
        object_identifier(each.expect(der.OBJECT_IDENTIFIER))
        for each in der.first(value).fields(der.SEQUENCE, 0)
    )


def _key(field: Element) -> CertificateKey:
    algorithm, bits = field.fields(der.SEQUENCE, 2)[:2]
    kind, *parameters = algorithm.fields(der.SEQUENCE, 1)
    identifier = object_identifier(kind.expect(der.OBJECT_IDENTIFIER))
    if identifier in (_RSA, _RSA_PSS):
        modulus = der.first(bits.expect(der.BIT_STRING)[1:]).fields(der.SEQUENCE, 1)[0]
        return CertificateKey("RSA", int.from_bytes(modulus.expect(der.INTEGER), "big").bit_length())
    if identifier == _EC and parameters and parameters[0].tag == der.OBJECT_IDENTIFIER:
        curve = object_identifier(parameters[0].content)
        return CertificateKey(*_CURVES.get(curve, (f"EC {curve}", 0)))
    return CertificateKey(*_OTHER_KEYS.get(identifier, (identifier, 0)))


def _time(field: Element) -> int:
    """UTCTime or GeneralizedTime (RFC 5280, 4.1.2.5): a year of two digits is from 1950 to 2049."""
    pattern = _TIMES.get(field.tag)
    found = pattern and pattern.match(field.content)
    if not found:
        raise DerError("a time that is none")
    year, *rest = (int(each) for each in found.groups())
    if field.tag == der.UTC_TIME:
        year += 2000 if year < 50 else 1900
    try:
        return int(datetime(year, *rest, tzinfo=UTC).timestamp())  # type: ignore[arg-type, misc]
    except ValueError:
        raise DerError("a time that is none") from None


def _host(tag: int, value: bytes) -> str:
    if tag == _DNS:
        return value.decode("latin-1")
    try:
        return str(ip_address(value))
    except ValueError:
        return ""


def _matches(name: str, host: str) -> bool:
    """A wildcard stands for the whole first label of a name, never of an address."""
    if name == host:
        return True
    try:
        return ip_address(name) == ip_address(host.strip("[]"))
    except ValueError:
        pass
    star, _, rest = name.partition(".")
    first_label, _, behind = host.partition(".")
    return star == "*" and "." in rest and bool(first_label) and rest == behind
