"""What SCRAM credentials look like to a client that does not know the password: hash, iterations and salt.

A name that no user has is answered with a credential that looks like those of the users: as many such names get each
shape as users have it, and a name keeps its own for as long as the users change little. No I/O.
"""

import hmac
from collections import Counter
from math import log
from typing import Final, NamedTuple

from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism

_MOST: Final = 16
"""Shapes that are chosen from: the most frequent ones."""


class CredentialShape(NamedTuple):
    """`has_text_salt`: digits and small letters, of which the tools of Kafka make salts."""

    mechanism: ScramMechanism
    iterations: int
    salt_bytes: int
    has_text_salt: bool = False


def shape_of(mechanism: ScramMechanism, credential: ScramCredential) -> CredentialShape:
    salt = credential.salt
    return CredentialShape(
        mechanism, credential.iterations, len(salt), salt.isalnum() and salt == salt.lower()
    )


class CredentialShapes:
    """How many credentials have each shape."""

    def __init__(self) -> None:
        self._counts: Counter[CredentialShape] = Counter()

    def count(self, shape: CredentialShape, change: int) -> None:
        """So many more credentials have this shape."""
        self._counts[shape] += change
        if not self._counts[shape]:
            del self._counts[shape]

    def chosen(self, name: str, secret: bytes, otherwise: CredentialShape) -> CredentialShape:
        """That of a name that no user has; `otherwise` if there are no credentials."""
        # Weighted rendezvous hashing: each shape draws a number for the name, and the largest of them wins.
        drawn = [
            (count / -log(_fraction(f"{'/'.join(map(str, map(int, shape)))} {name}", secret)), shape)
            for shape, count in self._counts.most_common(_MOST)
        ]
        return max(drawn)[1] if drawn else otherwise


def _fraction(text: str, secret: bytes) -> float:
    """Above 0 and below 1."""
    drawn = int.from_bytes(hmac.digest(secret, text.encode("utf-8", "surrogatepass"), "sha256")[:6], "big")
    return (drawn + 0.5) / 2**48
