"""OAUTHBEARER (RFC 7628, KIP-255): a token that someone else has signed. Whether it counts is
`state.security.bearer`.

A token that is refused is answered with what RFC 7628 wants there, a JSON text, in a step that succeeds; the client
sends %x01 and is refused then. Extensions are read and not kept: as in Kafka's own server they mean nothing.
"""

import re
from typing import Final, NamedTuple

from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr.state.security.bearer.checking import TokenChecker
from leafcuttr.state.security.bearer.token import TokenRefused

_GS2: Final = re.compile(r"n,(?:a=(?P<authorization>(?:[\x02-\x2B\x2D-\x3C\x3E-\x7F]|=2C|=3D)+))?,")
_PAIR: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7E \t\r\n]+)")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_SEPARATOR: Final = "\x01"
_ACKNOWLEDGED: Final = b"\x01"
_INVALID: Final = '{"status":"invalid_token"}'
_REFUSED: Final = "Authentication failed due to invalid credentials with SASL mechanism OAUTHBEARER"


class ClientResponse(NamedTuple):
    """The first message of a client: the token, and whom it wants to act for, if it says so."""

    token: str
    authorization: str = ""


class OAuthBearerServer:
    """One log-in with a token."""

    def __init__(self, checker: TokenChecker) -> None:
        self._checker = checker
        self._has_failed = False

    async def step(self, data: bytes) -> LoginStep:
        if self._has_failed:
            # RFC 7628, section 3.2.3: the client has taken note.
            raise LoginRefused(_INVALID if data == _ACKNOWLEDGED else _REFUSED)
        response = parse_response(data)
        try:
            token = await self._checker.check(response.token)
        except TokenRefused as refused:
            self._has_failed = True
            return LoginStep(_INVALID.encode(), refusal=f"a token of OAUTHBEARER is refused: {refused}")
        if response.authorization and response.authorization != token.subject:
            raise LoginRefused(
                "Authentication failed: Client requested an authorization id that is different from the token's "
                "principal name"
            )
        return LoginStep(b"", token.subject, expires_ms=token.expires_ms)


def parse_response(data: bytes) -> ClientResponse:
    """RFC 7628, section 3.1. Raises LoginRefused; the client is told no more than that it has failed."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise LoginRefused(_REFUSED, "a message of OAUTHBEARER is not UTF-8") from None
    gs2, _, rest = text.partition(_SEPARATOR)
    found = _GS2.fullmatch(gs2)
    pairs = [_PAIR.fullmatch(pair) for pair in rest.removesuffix(_SEPARATOR * 2).split(_SEPARATOR)]
    if found is None or not rest.endswith(_SEPARATOR * 2):
        raise LoginRefused(_REFUSED, "the first message is none of OAUTHBEARER")
    given = [(pair[1], pair[2]) for pair in pairs if pair is not None]
    tokens = [value for name, value in given if name == "auth"]
    auth = _AUTH.fullmatch(tokens[0]) if len(tokens) == 1 and len(given) == len(pairs) else None
    if auth is None or auth["scheme"].lower() != "bearer":
        raise LoginRefused(_REFUSED, "the first message of OAUTHBEARER has no token (auth=Bearer ...)")
    name = found["authorization"] or ""
    return ClientResponse(auth["token"], name.replace("=2C", ",").replace("=3D", "="))
