"""PKCS#12 (RFC 7292), the keystores of Java since version 9, read by the package `cryptography`, which comes with the
extra `leafcuttr[security]`."""

import importlib.util
from typing import NamedTuple


class Pkcs12Error(ValueError):
    """It cannot be read. The text says why."""


class Pkcs12(NamedTuple):
    """The private key as PKCS#8 in DER with its certificate, and the other certificates."""

    key: bytes | None
    certificate: bytes | None
    others: tuple[bytes, ...]


def can_read_pkcs12() -> bool:
    """Whether the package is installed."""
    return importlib.util.find_spec("cryptography") is not None


def read_pkcs12(data: bytes, password: str | None) -> Pkcs12:
    """Raises Pkcs12Error."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Pkcs12Error(str(error).rstrip(".") or "it is none") from None
    key = found.key
    own = found.cert
    return Pkcs12(
        None if key is None else key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        None if own is None else own.certificate.public_bytes(Encoding.DER),
        tuple(one.certificate.public_bytes(Encoding.DER) for one in found.additional_certs),
    )
