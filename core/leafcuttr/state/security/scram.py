"""SCRAM credentials (RFC 5802): the keys that are made of a password, and whether a password fits them.

As in Kafka, passwords are UTF-8 as they are, without SASLprep.
"""

import hashlib
import hmac
import os
from typing import Final

from leafcuttr.state.security.credential_shapes import CredentialShape
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism

LEAST_ITERATIONS: Final = 4096
"""RFC 7677, section 4."""
MOST_ITERATIONS: Final = 16_384
"""As Kafka's: each log-in with PLAIN costs so much."""
USUAL_ITERATIONS: Final = 8192
_SALT_BYTES: Final = 24
_TEXT: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


def credential_of(
    mechanism: ScramMechanism, salt: bytes, salted_password: bytes, iterations: int
) -> ScramCredential:
    """RFC 5802, section 3."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.hash_name)
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    server_key = hmac.digest(salted_password, b"Server Key", mechanism.hash_name)
    return ScramCredential(salt, stored_key, server_key, iterations)


def salted(mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int) -> bytes:
    """`Hi` of RFC 5802. Takes milliseconds: not for an event loop."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, iterations)


def new_credential(
    mechanism: ScramMechanism, password: bytes, iterations: int = USUAL_ITERATIONS
) -> ScramCredential:
    """Of a new password, with a salt of its own. Takes milliseconds."""
    salt = os.urandom(_SALT_BYTES)
    return credential_of(mechanism, salt, salted(mechanism, password, salt, iterations), iterations)


def fits(mechanism: ScramMechanism, credential: ScramCredential, password: bytes) -> bool:
    """Whether it is the password. Takes milliseconds."""
    made = credential_of(
        mechanism,
        credential.salt,
        salted(mechanism, password, credential.salt, credential.iterations),
        credential.iterations,
    )
    return hmac.compare_digest(made.stored_key, credential.stored_key)


def usual_shape(mechanism: ScramMechanism, iterations: int = USUAL_ITERATIONS) -> CredentialShape:
    """That of a credential which is made here."""
    return CredentialShape(mechanism, iterations, _SALT_BYTES)


def invented(shape: CredentialShape, name: str, secret: bytes) -> ScramCredential:
    """A credential of a user that there is not, the same each time: what is answered shall not tell that. No password
    fits it."""
    mechanism = shape.mechanism
    seed = hmac.digest(secret, f"{mechanism.sasl_name} {name}".encode(), "sha512")
    salt = hashlib.shake_256(seed).digest(shape.salt_bytes)
    if shape.has_text_salt:
        salt = bytes(_TEXT[each % len(_TEXT)] for each in salt)
    size = hashlib.new(mechanism.hash_name).digest_size
    return ScramCredential(salt, bytes(size), os.urandom(size), shape.iterations)
