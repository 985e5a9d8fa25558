"""Keys of SCRAM, by the vector of RFC 7677 and by an implementation of others."""

from __future__ import annotations

import base64

import pytest

from leafcuttr.state.security.credential_shapes import CredentialShape, shape_of
from leafcuttr.state.security.credentials import BY_NAME, ScramCredential, ScramMechanism
from leafcuttr.state.security.scram import (
    credential_of,
    fits,
    invented,
    new_credential,
    salted,
    usual_shape,
)

SHA_512 = ScramMechanism.SCRAM_SHA_512


def test_names_and_numbers() -> None:
    """KIP-554"""
    assert {each.sasl_name: (int(each), each.hash_name) for each in ScramMechanism} == {
        "SCRAM-SHA-256": (1, "sha256"),
        "SCRAM-SHA-512": (2, "sha512"),
    }
    assert list(BY_NAME) == ["SCRAM-SHA-256", "SCRAM-SHA-512"]


def test_the_vector_of_the_rfc() -> None:
    """RFC 7677, section 3: the server's signature is made with this key."""
    import hmac

    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    mechanism = ScramMechanism.SCRAM_SHA_256
    found = credential_of(mechanism, salt, salted(mechanism, b"pencil", salt, 4096), 4096)
    message = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO,"
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(found.server_key, message.encode(), "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_only_the_password_fits(mechanism: ScramMechanism) -> None:
    credential = new_credential(mechanism, b"secret", 4096)
    assert fits(mechanism, credential, b"secret")
    assert not fits(mechanism, credential, b"Secret")
    assert b"secret" not in b"".join((credential.salt, credential.stored_key, credential.server_key))
    assert new_credential(mechanism, b"secret", 4096).salt != credential.salt


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_of_nobody_the_salt_is_steady_and_like_the_others(mechanism: ScramMechanism) -> None:
    shape = usual_shape(mechanism)
    one, again = invented(shape, "nobody", b"s"), invented(shape, "nobody", b"s")
    assert one.salt == again.salt
    assert shape_of(mechanism, one) == shape_of(mechanism, new_credential(mechanism, b"x"))
    assert invented(shape, "somebody", b"s").salt != one.salt
    assert invented(shape, "nobody", b"t").salt != one.salt
    assert not fits(mechanism, one, b"")


@pytest.mark.parametrize("salt", [b"1g3kq0", b"\x00" * 70, b""])
def test_of_nobody_it_has_any_shape(salt: bytes) -> None:
    shape = shape_of(SHA_512, ScramCredential(salt, b"k", b"v", 5000))
    assert shape == CredentialShape(SHA_512, 5000, len(salt), salt == b"1g3kq0")
    assert shape_of(SHA_512, invented(shape, "nobody", b"s")) == shape
