"""A JSON Web Token (RFC 7519) in its compact form: taken apart, and its claims compared with what is expected. No
signature is checked: that is `keys`.

A token may come from an attacker: no claim counts before its signature is checked. A name that is twice in one object,
a number that is none, and JSON that is deeper than Python's parser goes are refused.
"""

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

_MOST_CHARACTERS: Final = 64 * 1024
_LAST_MS: Final = 2**63 - 1
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class TokenRefused(Exception):
    """The token does not count; one clause, for the log of the broker. Nothing of a token's own text is in it."""


class UncheckedToken(NamedTuple):
    """What a token says. `signed` is what its signature is about."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes


class ClaimRules(NamedTuple):
    """What the claims of a token have to be. `skew_s` is how far the clock of the issuer may be from ours."""

    issuer: str | None = None
    audiences: Sequence[str] = ()
    """One of these; none: any."""
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    skew_s: float = 30.0


class CheckedToken(NamedTuple):
    """A token that counts: for whom, until when (milliseconds since 1970), and with which scopes."""

    subject: str
    expires_ms: int
    scopes: frozenset[str] = frozenset()


def read_token(text: str) -> UncheckedToken:
    """Take it apart. Raises TokenRefused."""
    if len(text) > _MOST_CHARACTERS:
        raise TokenRefused(f"it has more than {_MOST_CHARACTERS} characters")
    parts = text.split(".")
    if len(parts) != 3:
        raise TokenRefused(f"it has {len(parts)} parts, a signed one has 3")
    header, claims, signature = (_decoded(part) for part in parts)
    return UncheckedToken(
        _object(header, "header"),
        _object(claims, "payload"),
        f"{parts[0]}.{parts[1]}".encode(),
        signature,
    )


def checked_claims(claims: Mapping[str, Any], rules: ClaimRules, now_s: float) -> CheckedToken:
    """Raises TokenRefused where a claim is missing, malformed, or not what the rules want."""
    expires, issued = _time(claims, "exp"), _time(claims, "iat")
    if expires is None or issued is None:
        raise TokenRefused(f"it has no claim {'exp' if expires is None else 'iat'}")
    if now_s - rules.skew_s >= expires:
        raise TokenRefused("it has expired (exp)")
    if now_s + rules.skew_s < issued:
        raise TokenRefused("it is issued in the future (iat)")
    if expires < issued:
        raise TokenRefused("it expires before it is issued")
    begins = _time(claims, "nbf")
    if begins is not None and now_s + rules.skew_s < begins:
        raise TokenRefused("it is not valid yet (nbf)")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused("it is from another issuer (sasl.oauthbearer.expected.issuer)")
    if rules.audiences and set(rules.audiences).isdisjoint(_texts(claims, "aud")):
        raise TokenRefused("it is for another audience (sasl.oauthbearer.expected.audience)")
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused(f"its claim {rules.subject_claim} is no text (sasl.oauthbearer.sub.claim.name)")
    scopes = [scope.strip() for scope in _texts(claims, rules.scope_claim)]
    if not all(scopes) or len(set(scopes)) != len(scopes):
        raise TokenRefused(f"its claim {rules.scope_claim} has an empty scope, or one twice")
    return CheckedToken(subject.strip(), min(int(expires * 1000), _LAST_MS), frozenset(scopes))


def base64url(text: str) -> bytes:
    """RFC 7515, section 2: without padding. Raises ValueError."""
    if _BASE64URL.fullmatch(text) is None:
        raise ValueError("it is not base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _decoded(part: str) -> bytes:
    try:
        return base64url(part)
    except ValueError:
        raise TokenRefused("a part of it is not base64url") from None


def _object(data: bytes, what: str) -> Mapping[str, Any]:
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise TokenRefused(f"its {what} is no JSON, or has a name twice") from None
    if not isinstance(found, dict):
        raise TokenRefused(f"its {what} is no JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Seconds since 1970 (NumericDate); None where there is no such claim."""
    value = claims.get(name)
    if value is None:
        return None
    # A whole number may be too large for a float, and a literal such as 1e999 is infinite.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LAST_MS:
        raise TokenRefused(f"its claim {name} is no time")
    return float(value) if math.isfinite(value) else None


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    """A claim that is a text or a list of texts; empty where there is none."""
    value = claims.get(name)
    if value is None:
        return []
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TokenRefused(f"its claim {name} is neither a text nor a list of texts")
    return found
