"""OAUTHBEARER: what clients send (RFC 7628), and what they are answered."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.server.login.mechanisms import LoginRefused
from leafcuttr.server.login.oauthbearer import ClientResponse, OAuthBearerServer, parse_response
from leafcuttr.state.security.bearer.checking import TokenChecker
from leafcuttr.state.security.bearer.key_source import KeySettings, KeySource
from leafcuttr.state.security.bearer.token import ClaimRules
from support.logs import NOW, HandClock
from support.token_issuer import SIGNED_FOR, Issuer

INVALID = b'{"status":"invalid_token"}'
REFUSED = "Authentication failed due to invalid credentials with SASL mechanism OAUTHBEARER"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    found = Issuer(NOW / 1000)
    found.add("ES256", "a")
    found.add("ES256", "b")
    return found


@pytest.fixture
def keys(issuer: Issuer, tmp_path: Path) -> KeySource:
    found = KeySource(KeySettings(issuer.write(tmp_path / "keys", "a")))
    found.read()
    return found


def server(keys: KeySource, clock: HandClock | None = None) -> OAuthBearerServer:
    checker = TokenChecker(keys, ClaimRules(), clock or HandClock(), trio.CapacityLimiter(1))
    return OAuthBearerServer(checker)


def message(token: str, authorization: str = "") -> bytes:
    gs2 = f"n,a={authorization}," if authorization else "n,,"
    return f"{gs2}\x01auth=Bearer {token}\x01\x01".encode()


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"n,,\x01auth=Bearer a.b-_~+/c==\x01\x01", ClientResponse("a.b-_~+/c==")),
        (b"n,,\x01auth=bEaReR   x\x01\x01", ClientResponse("x")),
        (b"n,a=al=2Cice=3D,\x01auth=Bearer x\x01\x01", ClientResponse("x", "al,ice=")),
        (b"n,,\x01host=h\x01port=9092\x01auth=Bearer x\x01\x01", ClientResponse("x")),
        (b"n,,\x01auth=Bearer x\x01traceId=12 3\x01\x01", ClientResponse("x")),
    ],
)
def test_first_messages(data: bytes, wanted: ClientResponse) -> None:
    assert parse_response(data) == wanted


NO_MESSAGE, NO_TOKEN = "is none of OAUTHBEARER", "has no token (auth=Bearer ...)"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", NO_MESSAGE),
        (b"\x01", NO_MESSAGE),
        (b"n,,", NO_MESSAGE),
        (b"n,,\x01auth=Bearer x\x01", NO_MESSAGE),
        (b"y,,\x01auth=Bearer x\x01\x01", NO_MESSAGE),
        (b"p=tls-unique,,\x01auth=Bearer x\x01\x01", NO_MESSAGE),
        (b"n,a=,\x01auth=Bearer x\x01\x01", NO_MESSAGE),
        (b"n,a=x=y,\x01auth=Bearer x\x01\x01", NO_MESSAGE),
        (b"n,a=a\0b,\x01auth=Bearer x\x01\x01", NO_MESSAGE),
        (b"n,,\x01\x01", NO_MESSAGE),
        (b"n,,\x01\x01\x01", NO_TOKEN),
        (b"n,,\x01host=h\x01\x01", NO_TOKEN),
        (b"n,,\x01auth=Bearer \x01\x01", NO_TOKEN),
        (b"n,,\x01auth=Basic x\x01\x01", NO_TOKEN),
        (b"n,,\x01auth=Bearer x y\x01\x01", NO_TOKEN),
        (b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01", NO_TOKEN),
        (b"n,,\x01auth=Bearer x\x01h0st=h\x01\x01", NO_TOKEN),
        (b"n,,\x01auth=Bearer x\x01\x01auth=Bearer y\x01\x01", NO_TOKEN),
        (b"n,,\x01auth=Bearer \xff\x01\x01", "is not UTF-8"),
    ],
)
def test_first_messages_that_are_none(data: bytes, why: str) -> None:
    with pytest.raises(LoginRefused) as caught:
        parse_response(data)
    assert str(caught.value) == REFUSED
    assert caught.value.why.endswith(why)


@given(st.binary(max_size=40) | st.builds(lambda inner: b"n,," + inner + b"\x01\x01", st.binary(max_size=30)))
def test_nothing_else_is_raised(data: bytes) -> None:
    try:
        parse_response(data)
    except LoginRefused as refused:
        assert str(refused) == REFUSED


async def test_a_token(issuer: Issuer, keys: KeySource) -> None:
    for authorization in ("", "alice"):
        step = await server(keys).step(message(issuer.token("a"), authorization))
        assert (step.answer, step.user, step.refusal) == (b"", "alice", None)
        assert step.expires_ms == NOW // 1000 * 1000 + SIGNED_FOR * 1000
        assert step.still_holds is None and not step.by_token


async def test_another_user_to_act_for(issuer: Issuer, keys: KeySource) -> None:
    with pytest.raises(LoginRefused, match="an authorization id that is different from the token's"):
        await server(keys).step(message(issuer.token("a"), "bob"))


@pytest.mark.parametrize(
    ("said", "text"),
    [(b"\x01", INVALID.decode()), (b"", REFUSED), (b"\x01\x01", REFUSED), (None, REFUSED)],
)
async def test_a_token_that_is_refused(
    issuer: Issuer, keys: KeySource, said: bytes | None, text: str
) -> None:
    """RFC 7628, section 3.2.3: in two steps. Also a good token comes too late then."""
    exchange = server(keys)
    step = await exchange.step(message(issuer.token("a", exp=1, iat=0)))
    assert (step.answer, step.user) == (INVALID, None)
    assert step.refusal == "a token of OAUTHBEARER is refused: it has expired (exp)"
    with pytest.raises(LoginRefused) as caught:
        await exchange.step(message(issuer.token("a")) if said is None else said)
    assert str(caught.value) == text


async def test_a_new_key_is_found(issuer: Issuer, keys: KeySource, tmp_path: Path) -> None:
    issuer.write(tmp_path / "keys")
    assert (await server(keys).step(message(issuer.token("b")))).user == "alice"


async def test_a_key_that_is_not_found(issuer: Issuer, keys: KeySource) -> None:
    clock = HandClock()
    for _ in range(2):
        step = await server(keys, clock).step(message(issuer.token("b")))
        assert step.refusal == "a token of OAUTHBEARER is refused: no key for ES256 has its kid"
