"""PEM (RFC 7468): the blocks of a text, which may be one long line, as settings of several lines become."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

CERTIFICATE: Final = "CERTIFICATE"
_CERTIFICATES: Final = frozenset({CERTIFICATE, "X509 CERTIFICATE", "TRUSTED CERTIFICATE"})
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_LINE: Final = 64


class PemError(ValueError):
    """A block that is none. The text says which."""


class PemBlock(NamedTuple):
    """One block: its label, and its text as OpenSSL reads it."""

    label: str
    text: str

    @property
    def is_certificate(self) -> bool:
        return self.label in _CERTIFICATES

    @property
    def is_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        return self.label.startswith("ENCRYPTED") or "Proc-Type:" in self.text

    def decoded(self) -> bytes:
        """The DER of a block without headers; of a trusted certificate, OpenSSL's, with what is behind it. Raises
        PemError."""
        body = "".join(self.text.splitlines()[1:-1])
        try:
            return base64.b64decode(body, validate=True)
        except binascii.Error:
            raise PemError(f"a {self.label.lower()} that is no base64") from None


def blocks(text: str) -> Iterator[PemBlock]:
    """In the order of the text. What stands between them is no part of PEM and is passed over."""
    for label, body in _BLOCK.findall(text):
        # The old form of an encrypted key has headers, which stay as they are.
        lines = [body.strip()] if ":" in body else _wrapped("".join(body.split()))
        yield PemBlock(label, "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", "")))


def pem_of(label: str, der: bytes) -> str:
    """One block."""
    lines = _wrapped(base64.b64encode(der).decode())
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))


def _wrapped(text: str) -> Iterable[str]:
    return (text[at : at + _LINE] for at in range(0, len(text), _LINE))
