"""Key sets and signatures: joserfc has signed, and what nobody may take is made by hand."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.state.security.bearer.keys import ALGORITHMS, KeysError, SigningKeys, read_keys
from leafcuttr.state.security.bearer.token import TokenRefused, read_token
from support.token_issuer import Issuer


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """A key for each algorithm, by its name, and one more for RS256 and ES256."""
    found = Issuer()
    found.add("RS256", "RS256")
    for algorithm in ("RS384", "RS512", "PS256", "PS384", "PS512"):
        found.keys[algorithm] = algorithm, found.keys["RS256"][1]
    for algorithm in ("ES256", "ES384", "ES512"):
        found.add(algorithm, algorithm)
    found.add("RS256", "other RS256")
    found.add("ES256", "other ES256")
    return found


def refusal(keys: SigningKeys, token: str) -> str | None:
    try:
        keys.check(read_token(token))
    except TokenRefused as refused:
        return str(refused)
    return None


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_signatures_of_others(issuer: Issuer, algorithm: str) -> None:
    kid = "RS256" if algorithm.startswith(("RS", "PS")) else algorithm
    token = issuer.token(algorithm, header={"kid": kid})
    keys = read_keys(issuer.key_set("RS256", "ES256", "ES384", "ES512"))
    assert refusal(keys, token) is None
    head, body, signature = token.split(".")
    changed = base64.urlsafe_b64encode(b'{"sub":"bob"}').decode().rstrip("=")
    flipped = ("B" if signature[10] == "A" else "A").join((signature[:10], signature[11:]))
    for wrong in (f"{head}.{changed}.{signature}", f"{head}.{body}.{flipped}", f"{head}.{body}."):
        assert refusal(keys, wrong) == "its signature is wrong"


def test_which_key_is_used(issuer: Issuer) -> None:
    keys = read_keys(issuer.key_set("other RS256", "RS256", "ES256"))
    assert keys.has("RS256") and not keys.has("ES384")
    assert refusal(keys, issuer.token("RS256")) is None
    assert refusal(keys, issuer.token("RS256", header={"kid": "other RS256"})) == "its signature is wrong"
    assert refusal(keys, issuer.token("RS256", header={"kid": "ES256"})) == "no key for RS256 has its kid"
    assert refusal(keys, issuer.token("RS256", header={"kid": "away"})) == "no key for RS256 has its kid"
    assert refusal(keys, issuer.token("RS256", header={"kid": None})) is None, "those that fit are tried"
    assert refusal(keys, issuer.token("ES384", header={"kid": None})) == "there is no key for ES384"
    assert refusal(keys, issuer.token("other ES256", header={"kid": None})) == "its signature is wrong"


def test_a_key_that_is_for_one_algorithm(issuer: Issuer) -> None:
    keys = read_keys(json.dumps({"keys": [issuer.public("RS256", alg="PS256")]}))
    assert refusal(keys, issuer.token("RS256")) == "no key for RS256 has its kid"
    assert refusal(keys, issuer.token("PS256", header={"kid": "RS256"})) is None


NO_ALGORITHM = f"its algorithm is none of {', '.join(ALGORITHMS)}"


def by_hand(header: dict[str, Any], signature: bytes | None = None, key: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), b'{"sub":"alice"}']
    signed = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    if signature is None:
        signature = hmac.digest(key, signed.encode(), hashlib.sha256)
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def test_what_anybody_could_sign(issuer: Issuer) -> None:
    """`none`, and HMAC with what is public."""
    keys = read_keys(issuer.key_set())
    public = issuer.keys["RS256"][1].as_pem(private=False)
    for header in ({"alg": "none"}, {"alg": "NONE"}, {"alg": "None", "kid": "RS256"}, {}):
        assert refusal(keys, by_hand(header, b"")) == NO_ALGORITHM
    for secret in (public, issuer.key_set("RS256").encode()):
        assert refusal(keys, by_hand({"alg": "HS256", "kid": "RS256"}, key=secret)) == NO_ALGORITHM


@pytest.mark.parametrize("kid", ["", "RS256\0", ["RS256"], {"a": 1}, 7, True, "../../etc/passwd", "' OR 1=1"])
def test_odd_key_ids(issuer: Issuer, kid: Any) -> None:
    keys = read_keys(issuer.key_set())
    assert refusal(keys, by_hand({"alg": "RS256", "kid": kid}, b"x")) == "no key for RS256 has its kid"


@pytest.mark.parametrize("algorithm", [["RS256"], {"alg": "RS256"}, 256, None, "rs256", "ES256K", "EdDSA"])
def test_odd_algorithms(issuer: Issuer, algorithm: Any) -> None:
    assert refusal(read_keys(issuer.key_set()), by_hand({"alg": algorithm}, b"x")) == NO_ALGORITHM


def test_keys_that_a_token_brings_along_mean_nothing(issuer: Issuer) -> None:
    """RFC 7515, section 4.1: jwk, jku, x5u and x5c."""
    stranger = Issuer()
    stranger.add("RS256", "RS256")
    keys = read_keys(issuer.key_set())
    header = {"jwk": stranger.public("RS256"), "jku": "http://127.0.0.1:1/", "x5c": ["MA=="]}
    token = by_hand({"alg": "RS256", "kid": "RS256", **header}, b"x" * 256)
    assert refusal(keys, token) == "its signature is wrong"


def test_critical_headers(issuer: Issuer) -> None:
    token = by_hand({"alg": "RS256", "crit": ["b64"], "b64": False}, b"x")
    assert refusal(read_keys(issuer.key_set()), token) == "it has a critical header (crit)"


def test_signatures_of_a_curve_in_another_form(issuer: Issuer) -> None:
    """RFC 7518 has two numbers, not DER; of zeros, and of another length, none is right."""
    keys = read_keys(issuer.key_set("ES256"))
    for signature in (
        b"",
        bytes(64),
        bytes(63),
        b"\x30\x06\x02\x01\x01\x02\x01\x01",
        b"\xff" * 64,
        bytes(65),
    ):
        assert refusal(keys, by_hand({"alg": "ES256", "kid": "ES256"}, signature)) == "its signature is wrong"


def test_one_signature_is_not_another(issuer: Issuer) -> None:
    """A good one with a zero in the middle has the same two numbers."""
    keys, token = read_keys(issuer.key_set("ES256")), issuer.token("ES256")
    signed, _, signature = token.rpartition(".")
    data = base64.urlsafe_b64decode(signature + "==")
    longer = base64.urlsafe_b64encode(data[:32] + b"\0" + data[32:]).decode().rstrip("=")
    assert refusal(keys, f"{signed}.{longer}") == "its signature is wrong"


NO_KEY = "it has no key of RSA with 2048 bits or more, nor of P-256, P-384 or P-521, that signs"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is no JSON"),
        ("[" * 20_000, "it is no JSON"),
        ("[]", 'it is no JSON Web Key Set: {"keys": [...]}'),
        ('{"keys": {}}', 'it is no JSON Web Key Set: {"keys": [...]}'),
        ('{"keys": []}', NO_KEY),
        ('{"keys": [7, null, "x", {}, {"kty": "oct", "k": "c2VjcmV0"}]}', NO_KEY),
        ('{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}', NO_KEY),
        (
            '{"keys": [{"kty": "RSA", "n": "!", "e": "AQAB"}, {"kty": "RSA"}, {"kty": "RSA", "n": 7, "e": 7}]}',
            NO_KEY,
        ),
        ('{"keys": [{"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"}]}', NO_KEY),
        ('{"keys": [{"kty": "EC", "crv": ["P-256"], "x": "AQ", "y": "AQ"}]}', NO_KEY),
        (json.dumps({"keys": [{}] * 101}), "it has more than 100 keys"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_sets_without_keys(text: str, why: str) -> None:
    with pytest.raises(KeysError) as caught:
        read_keys(text)
    assert str(caught.value) == why


def test_what_is_passed_over(issuer: Issuer) -> None:
    """RFC 7517, section 5: others may have what we do not know."""
    small = Issuer()
    small.add("RS256", "small", bits=1024)
    good = issuer.public("ES256")
    others = [
        small.public("small"),
        {**issuer.public("RS256"), "use": "enc"},
        {**issuer.public("RS256"), "key_ops": ["encrypt"]},
        {**issuer.public("RS256"), "key_ops": "verify"},
        {**issuer.public("RS256"), "alg": "RSA-OAEP"},
        {**issuer.public("RS256"), "kid": 7},
        {**issuer.public("RS256"), "e": issuer.public("RS256")["n"]},
    ]
    keys = read_keys(json.dumps({"keys": [*others, good]}))
    assert len(keys) == 1
    assert refusal(keys, issuer.token("ES256")) is None


NAMES = st.sampled_from(["kty", "n", "e", "crv", "x", "y", "kid", "alg", "use", "key_ops"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.dictionaries(NAMES, inner, max_size=6) | st.lists(inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES), st.sampled_from(["RSA", "EC", "OKP"]))
def test_nothing_else_is_raised(key: dict[str, Any], kind: str) -> None:
    with contextlib.suppress(KeysError):
        read_keys(json.dumps({"keys": [key, {**key, "kty": kind}]}))
