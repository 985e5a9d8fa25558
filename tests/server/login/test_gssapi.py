"""GSSAPI: the exchange of RFC 4752 around the tickets."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from leafcuttr.server.login.gssapi import GssapiServer
from leafcuttr.server.login.mechanisms import LoginRefused, LoginStep
from leafcuttr.state.security.kerberos.acceptor import KerberosError
from leafcuttr.state.security.kerberos.names import KerberosRules
from support.tickets import WRAPPED, PretendedAcceptor

REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"
LAYERS = WRAPPED + b"\x01\0\0\0"
NOW = 1_000_000


def server(acceptor: Any, rules: tuple[str, ...] = ("DEFAULT",)) -> GssapiServer:
    return GssapiServer(lambda: acceptor, KerberosRules(rules), "OWN", trio.CapacityLimiter(1), lambda: NOW)


async def refusal(exchange: GssapiServer, data: bytes) -> tuple[str, str]:
    with pytest.raises(LoginRefused) as refused:
        await exchange.step(data)
    return str(refused.value), refused.value.why


@pytest.mark.parametrize("wanted", [b"", b"alice", b"alice@R"])
async def test_with_a_last_token(wanted: bytes) -> None:
    acceptor = PretendedAcceptor((b"more", b"last"), 60)
    exchange = server(acceptor)
    assert await exchange.step(b"first") == LoginStep(b"more")
    assert await exchange.step(b"alice@R") == LoginStep(b"last")
    assert await exchange.step(b"") == LoginStep(LAYERS)
    step = await exchange.step(LAYERS + wanted)
    assert step == LoginStep(b"", "alice", expires_ms=NOW + 60_000)
    assert acceptor.begun == 1


async def test_without_a_last_token() -> None:
    exchange = server(PretendedAcceptor())
    assert await exchange.step(b"alice@R") == LoginStep(LAYERS)
    # RFC 4752, section 3.1: the client's largest message means nothing without a layer.
    assert await exchange.step(WRAPPED + b"\x01\x00\xff\xff") == LoginStep(b"", "alice")


async def test_an_answer_to_the_last_token() -> None:
    exchange = server(PretendedAcceptor((b"last",)))
    await exchange.step(b"alice@R")
    assert await refusal(exchange, b"x") == (REFUSED, "GSSAPI: the client answers the last token")


@pytest.mark.parametrize(
    ("choice", "told", "why"),
    [
        (b"\x02\0\0\0", REFUSED, "GSSAPI: the client wants a security layer; there is none but none"),
        (b"\x04\0\0\0alice", REFUSED, "GSSAPI: the client wants a security layer; there is none but none"),
        (b"\x03\0\0\0", REFUSED, "GSSAPI: the client wants a security layer; there is none but none"),
        (b"\x01\0\0", REFUSED, "GSSAPI: the client wants a security layer; there is none but none"),
        (b"", REFUSED, "GSSAPI: the client wants a security layer; there is none but none"),
        (b"\x01\0\0\0bob", "Client requested an authorization id that is different from its principal", ""),
        (b"\x01\0\0\0alice@X", "Client requested an authorization id", ""),
        (b"\x01\0\0\0\xff", "Client requested an authorization id", ""),
    ],
)
async def test_what_a_client_may_not_choose(choice: bytes, told: str, why: str) -> None:
    exchange = server(PretendedAcceptor())
    await exchange.step(b"alice@R")
    said, logged = await refusal(exchange, WRAPPED + choice)
    assert told in said and why in logged


async def test_a_choice_that_is_not_wrapped() -> None:
    exchange = server(PretendedAcceptor())
    await exchange.step(b"alice@R")
    assert await refusal(exchange, b"\x01\0\0\0") == (REFUSED, "GSSAPI: a token of another context")


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (b"bad", "GSSAPI: a bad ticket"),
        (b"bob@X", "GSSAPI: no rule of sasl.kerberos.principal.to.local.rules is for bob@X"),
        (b"a/b/c@R", "GSSAPI: 'a/b/c@R' is not name@REALM or name/host@REALM"),
        (rb"al\/ice@R", r"GSSAPI: 'al\\/ice@R' is not name@REALM or name/host@REALM"),
    ],
)
async def test_tickets_that_do_not_count(token: bytes, why: str) -> None:
    """The client is told nothing of the reason, and never who is known."""
    assert await refusal(server(PretendedAcceptor()), token) == (REFUSED, why)


async def test_no_key() -> None:
    """The keytab has gone, or settings name another one since the start."""

    def opened() -> Any:
        raise KerberosError("no keytab")

    exchange = GssapiServer(opened, KerberosRules(["DEFAULT"]), "R", trio.CapacityLimiter(1), lambda: NOW)
    assert await refusal(exchange, b"alice@R") == (REFUSED, "GSSAPI: no keytab")


async def test_the_realm_of_the_service_where_the_machine_has_none() -> None:
    exchange = server(PretendedAcceptor(default_realm=""))
    assert await exchange.step(b"alice@OWN") == LoginStep(LAYERS)
    assert (await refusal(server(PretendedAcceptor()), b"alice@OWN"))[1].endswith("is for alice@OWN")
