"""What a token says: its three parts, and its claims at every edge."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.state.security.bearer.token import (
    CheckedToken,
    ClaimRules,
    TokenRefused,
    checked_claims,
    read_token,
)

NOW = 1_700_000_000
GOOD = {"sub": "alice", "iat": NOW, "exp": NOW + 60}


TWICE, NAN, BYTES = b'{"sub":"a","sub":"b"}', b'{"exp":NaN}', b"\xff"
NEST, LONG, NO_OBJECT = b"[" * 20_000, b"1" * 5000, "x"


def encoded(value: object) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def test_the_three_parts() -> None:
    """RFC 7515, section 7.1; what is signed are the first two as they came."""
    head, body = encoded({"alg": "RS256"}), encoded({"sub": "ü"})
    found = read_token(f"{head}.{body}.{encoded(b'signature?>')}")
    assert (found.header, found.claims) == ({"alg": "RS256"}, {"sub": "ü"})
    assert (found.signed, found.signature) == (f"{head}.{body}".encode(), b"signature?>")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it has 1 parts, a signed one has 3"),
        ("a.b", "it has 2 parts, a signed one has 3"),
        ("a.b.c.d.e", "it has 5 parts, a signed one has 3"),
        ("a.b.c", "a part of it is not base64url"),
        (f"{encoded({})}.{encoded({})}.a+/b", "a part of it is not base64url"),
        (f"{encoded([])}.{encoded({})}.", "its header is no JSON object"),
        (f"{encoded({})}.{encoded(NO_OBJECT)}.", "its payload is no JSON object"),
        (f"{encoded({})}.{encoded(TWICE[:1])}.", "its payload is no JSON, or has a name twice"),
        (f"{encoded({})}.{encoded(BYTES)}.", "its payload is no JSON, or has a name twice"),
        (
            f"{encoded({})}.{encoded(TWICE)}.",
            "its payload is no JSON, or has a name twice",
        ),
        (f"{encoded({})}.{encoded(NAN)}.", "its payload is no JSON, or has a name twice"),
        (f"{encoded({})}.{encoded(NEST)}.", "its payload is no JSON, or has a name twice"),
        (f"{encoded({})}.{encoded(LONG)}.", "its payload is no JSON, or has a name twice"),
        ("x" * 65_537, "it has more than 65536 characters"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_no_token(text: str, why: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        read_token(text)
    assert str(caught.value) == why


@given(st.text(alphabet="ab.-_=ey{}J", max_size=60) | st.text(max_size=40))
def test_nothing_else_is_raised(text: str) -> None:
    with contextlib.suppress(TokenRefused):
        read_token(text)


def refusal(rules: ClaimRules = ClaimRules(), **claims: Any) -> str | None:  # noqa: B008
    given = {name: value for name, value in {**GOOD, **claims}.items() if value is not None}
    try:
        checked_claims(given, rules, NOW)
    except TokenRefused as refused:
        return str(refused)
    return None


def test_one_that_counts() -> None:
    claims = {**GOOD, "exp": NOW + 1.5, "scope": ["a", " b"]}
    assert checked_claims(claims, ClaimRules(), NOW) == CheckedToken(
        "alice", NOW * 1000 + 1500, frozenset(("a", "b"))
    )


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": NOW - 29, "iat": NOW - 29}, None),
        ({"exp": NOW - 29, "iat": NOW - 28}, "it expires before it is issued"),
        ({"exp": NOW - 29, "iat": NOW - 100}, None),
        ({"exp": NOW - 30, "iat": NOW - 100}, "it has expired (exp)"),
        ({"iat": NOW + 30}, None),
        ({"iat": NOW + 31}, "it is issued in the future (iat)"),
        ({"exp": NOW + 5, "iat": NOW + 6}, "it expires before it is issued"),
        ({"nbf": NOW + 30}, None),
        ({"nbf": NOW + 31}, "it is not valid yet (nbf)"),
        ({"exp": None}, "it has no claim exp"),
        ({"iat": None}, "it has no claim iat"),
        ({"exp": str(NOW + 60)}, "its claim exp is no time"),
        ({"exp": True}, "its claim exp is no time"),
        ({"exp": -1}, "its claim exp is no time"),
        ({"exp": float("inf")}, "its claim exp is no time"),
        ({"exp": 10**400}, "its claim exp is no time"),
        ({"nbf": []}, "its claim nbf is no time"),
        ({"sub": None}, "its claim sub is no text (sasl.oauthbearer.sub.claim.name)"),
        ({"sub": " "}, "its claim sub is no text (sasl.oauthbearer.sub.claim.name)"),
        ({"sub": 7}, "its claim sub is no text (sasl.oauthbearer.sub.claim.name)"),
        ({"scope": 7}, "its claim scope is neither a text nor a list of texts"),
        ({"scope": [7]}, "its claim scope is neither a text nor a list of texts"),
        ({"scope": ["a", "a "]}, "its claim scope has an empty scope, or one twice"),
        ({"scope": ""}, "its claim scope has an empty scope, or one twice"),
    ],
)
def test_claims_at_their_edges(claims: dict[str, Any], why: str | None) -> None:
    assert refusal(**claims) == why


ISSUER = "it is from another issuer (sasl.oauthbearer.expected.issuer)"
AUDIENCE = "it is for another audience (sasl.oauthbearer.expected.audience)"


@pytest.mark.parametrize(
    ("rules", "claims", "why"),
    [
        (ClaimRules(issuer="i"), {"iss": "i"}, None),
        (ClaimRules(issuer="i"), {"iss": "I"}, ISSUER),
        (ClaimRules(issuer="i"), {"iss": ["i"]}, ISSUER),
        (ClaimRules(issuer="i"), {}, ISSUER),
        (ClaimRules(), {"iss": "any", "aud": "any"}, None),
        (ClaimRules(audiences=("a", "b")), {"aud": "b"}, None),
        (ClaimRules(audiences=("a", "b")), {"aud": ["x", "a"]}, None),
        (ClaimRules(audiences=("a", "b")), {"aud": ["x"]}, AUDIENCE),
        (ClaimRules(audiences=("a", "b")), {"aud": "ab"}, AUDIENCE),
        (ClaimRules(audiences=("a", "b")), {}, AUDIENCE),
        (
            ClaimRules(audiences=("a",)),
            {"aud": {"a": 1}},
            "its claim aud is neither a text nor a list of texts",
        ),
        (ClaimRules(skew_s=0), {"exp": NOW, "iat": NOW}, "it has expired (exp)"),
        (ClaimRules(scope_claim="scp"), {"scope": 7}, None),
        (ClaimRules(scope_claim="scp"), {"scp": 7}, "its claim scp is neither a text nor a list of texts"),
    ],
)
def test_rules(rules: ClaimRules, claims: dict[str, Any], why: str | None) -> None:
    assert refusal(rules, **claims) == why


def test_the_subject_is_where_the_rules_say() -> None:
    claims = {**GOOD, "email": " bob@example.org "}
    assert checked_claims(claims, ClaimRules(subject_claim="email"), NOW).subject == "bob@example.org"


def test_an_end_that_is_beyond_all_times() -> None:
    assert checked_claims({**GOOD, "exp": 2**62}, ClaimRules(), NOW).expires_ms == 2**63 - 1
