"""The public keys of an issuer of tokens: JSON Web Key Sets (RFC 7517), and the signatures of RFC 7518 that they check.

RS256 to PS512 and ES256 to ES512. Neither `none` nor HMAC is taken: everybody has the public keys, and could
sign with them by HMAC. The package `cryptography` (extra `security`) is imported with this module.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

from leafcuttr.state.security.bearer.token import TokenRefused, UncheckedToken, base64url

_HASHES: Final[Mapping[str, HashAlgorithm]] = {"256": SHA256(), "384": SHA384(), "512": SHA512()}
_RSA: Final = tuple(f"{kind}{bits}" for kind in ("RS", "PS") for bits in _HASHES)
# RFC 7518, section 3.4: each algorithm has one curve.
_CURVES: Final[Mapping[str, tuple[str, ec.EllipticCurve]]] = {
    "P-256": ("ES256", ec.SECP256R1()),
    "P-384": ("ES384", ec.SECP384R1()),
    "P-521": ("ES512", ec.SECP521R1()),
}
ALGORITHMS: Final = (*_RSA, *(algorithm for algorithm, _ in _CURVES.values()))
_LEAST_RSA_BITS: Final = 2048
"""RFC 7518, section 3.3."""
_MOST_RSA_BITS: Final = 16_384
_MOST_KEYS: Final = 100
_TRIES: Final = 4
"""Keys that are tried for a token that does not name its own."""


class KeysError(Exception):
    """A text has no keys; one clause."""


class SigningKey(NamedTuple):
    """One key: its name, if it has one, the algorithms that it is for, and the key itself."""

    id: str | None
    algorithms: Sequence[str]
    public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey


class SigningKeys:
    """The keys of a set that can check signatures here. Others in the set are passed over (RFC 7517, section 5)."""

    def __init__(self, keys: Sequence[SigningKey]) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def has(self, key_id: str) -> bool:
        return any(key.id == key_id for key in self._keys)

    def check(self, token: UncheckedToken) -> None:
        """Raises TokenRefused unless one of these keys has signed it."""
        algorithm = token.header.get("alg")
        if algorithm not in ALGORITHMS:
            raise TokenRefused(f"its algorithm is none of {', '.join(ALGORITHMS)}")
        if "crit" in token.header:
            # RFC 7515, section 4.1.11: extensions that have to be understood. None are.
            raise TokenRefused("it has a critical header (crit)")
        key_id = token.header.get("kid")
        fitting = [
            key for key in self._keys if algorithm in key.algorithms and (key_id is None or key.id == key_id)
        ]
        if not fitting:
            raise TokenRefused(
                f"there is no key for {algorithm}"
                if key_id is None
                else f"no key for {algorithm} has its kid"
            )
        if not any(_has_signed(key.public, algorithm, token) for key in fitting[:_TRIES]):
            raise TokenRefused("its signature is wrong")


def read_keys(text: str | bytes) -> SigningKeys:
    """The keys in a JSON Web Key Set. Raises KeysError where there is none to use."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise KeysError("it is no JSON") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise KeysError('it is no JSON Web Key Set: {"keys": [...]}')
    if len(listed) > _MOST_KEYS:
        raise KeysError(f"it has more than {_MOST_KEYS} keys")
    keys = SigningKeys(list(_usable(listed)))
    if not len(keys):
        raise KeysError(
            "it has no key of RSA with 2048 bits or more, nor of P-256, P-384 or P-521, that signs"
        )
    return keys


def _usable(listed: Sequence[Any]) -> Iterator[SigningKey]:
    for each in listed:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig":
            continue
        operations = each.get("key_ops", ["verify"])
        if not isinstance(operations, list) or "verify" not in operations:
            continue
        key = _key(each)
        if key is not None:
            yield key


def _key(given: Mapping[str, Any]) -> SigningKey | None:
    key_id, algorithm = given.get("kid"), given.get("alg")
    if key_id is not None and not isinstance(key_id, str):
        return None
    try:
        made = _rsa(given) if given.get("kty") == "RSA" else _of_curve(given)
    except (ValueError, UnsupportedAlgorithm):
        return None
    if made is None or (algorithm is not None and algorithm not in made[0]):
        return None
    algorithms, public = made
    return SigningKey(key_id, algorithms if algorithm is None else (algorithm,), public)


def _rsa(given: Mapping[str, Any]) -> tuple[Sequence[str], rsa.RSAPublicKey] | None:
    modulus, exponent = _number(given, "n"), _number(given, "e")
    if not _LEAST_RSA_BITS <= modulus.bit_length() <= _MOST_RSA_BITS or exponent.bit_length() > 64:
        return None
    return _RSA, rsa.RSAPublicNumbers(exponent, modulus).public_key()


def _of_curve(given: Mapping[str, Any]) -> tuple[Sequence[str], ec.EllipticCurvePublicKey] | None:
    name = given.get("crv")
    if given.get("kty") != "EC" or not isinstance(name, str) or name not in _CURVES:
        return None
    algorithm, curve = _CURVES[name]
    # Raises ValueError for a point that is not on the curve.
    public = ec.EllipticCurvePublicNumbers(_number(given, "x"), _number(given, "y"), curve).public_key()
    return (algorithm,), public


def _number(given: Mapping[str, Any], name: str) -> int:
    """Base64urlUInt of RFC 7518. Raises ValueError."""
    data = base64url(str(given.get(name, "")))
    if not data:
        raise ValueError(f"{name} is missing")
    return int.from_bytes(data, "big")


def _has_signed(
    key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, algorithm: str, token: UncheckedToken
) -> bool:
    digest = _HASHES[algorithm[2:]]
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(_in_der(token.signature, key), token.signed, ec.ECDSA(digest))
        elif algorithm.startswith("PS"):
            # RFC 7518, section 3.5: the salt is as long as the hash.
            pss = padding.PSS(padding.MGF1(digest), digest.digest_size)
            key.verify(token.signature, token.signed, pss, digest)
        else:
            key.verify(token.signature, token.signed, padding.PKCS1v15(), digest)
    except (InvalidSignature, ValueError):
        return False
    return True


def _in_der(signature: bytes, key: ec.EllipticCurvePublicKey) -> bytes:
    """RFC 7518, section 3.4: two numbers of the curve's length, one behind the other. Raises ValueError."""
    size = (key.curve.key_size + 7) // 8
    if len(signature) != 2 * size:
        raise ValueError("a signature of another length")
    return encode_dss_signature(
        int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big")
    )
