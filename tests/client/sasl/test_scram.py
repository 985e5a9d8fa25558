"""SCRAM as RFC 5802 and RFC 7677 have it: with their vectors, and against servers that cheat."""

from __future__ import annotations

import pytest

from leafcuttr.client.sasl.mechanism import SaslRefusal
from leafcuttr.client.sasl.scram import LEAST_ITERATIONS, MOST_ITERATIONS, Scram
from leafcuttr.client.settings import ClientSasl
from support.sasl_server import SaslServer

USER = ClientSasl(mechanism="SCRAM-SHA-256", username="user", password="pencil")
NONCE = "rOprNGfwEbeRWgbNEkqO"
# RFC 7677, section 3.
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def proved(sasl: ClientSasl = USER) -> Scram:
    """One that waits for the server's signature."""
    scram = Scram(sasl, nonce=NONCE)
    scram.first()
    scram.respond(SERVER_FIRST)
    return scram


def test_the_vectors_of_the_rfc() -> None:
    scram = Scram(USER, nonce=NONCE)
    assert scram.first() == CLIENT_FIRST
    assert scram.respond(SERVER_FIRST) == CLIENT_FINAL
    assert scram.respond(SERVER_FINAL) is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("name", "password"), [("alice", "s"), ("a,b=c", "é \0="), ("=3D,", "," * 200)])
def test_both_hashes_and_any_text(mechanism: str, name: str, password: str) -> None:
    server = SaslServer(mechanism, name, password)
    scram = Scram(ClientSasl(mechanism=mechanism, username=name, password=password))
    bare = scram.first().decode().removeprefix("n,,")
    assert bare.startswith("n=" + name.replace("=", "=3D").replace(",", "=2C") + ",r=")
    nonce = bare.rpartition(",r=")[2] + server.more_nonce
    final = scram.respond(server.server_first(nonce))
    assert final is not None
    signature = server.server_final(bare, nonce, final.decode())
    assert signature is not None, "the server takes the proof"
    assert scram.respond(signature) is None
    other = SaslServer(mechanism, name, password + "x")
    assert other.server_final(bare, nonce, final.decode()) is None


def test_a_delegation_token_says_so() -> None:
    token = ClientSasl(mechanism="SCRAM-SHA-256", username="id", password="hmac", is_token=True)
    assert Scram(token, nonce="n").first() == b"n,,n=id,r=n,tokenauth=true"


def test_nonces_differ() -> None:
    assert len({Scram(USER).first() for _ in range(20)}) == 20
    assert len(Scram(USER).first()) >= 32 + len("n,,n=user,r=")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b"r=rOpr", b"r=rOps"), "its nonce in SCRAM does not follow ours"),
        ((b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""), "its nonce in SCRAM does not follow ours"),
        ((b"i=4096", b"i=4095"), "it wants '4095' iterations of SCRAM; from 4096 to 1000000 are made"),
        ((b"i=4096", b"i=1000001"), "it wants '1000001' iterations of SCRAM; from 4096 to 1000000 are made"),
        ((b"i=4096", b"i=" + b"9" * 5000), "it wants '99999999999999999999' iterations"),
        ((b"i=4096", b"i=-4096"), "it wants '-4096' iterations"),
        ((b"i=4096", "i=٤٠٩٦".encode()), "iterations of SCRAM"),
        ((b",i=4096", b""), "it wants '' iterations"),
        ((b"s=W22ZaJ0SNY7soEsUEjb6gQ==,", b""), "its salt in SCRAM is empty"),
        ((b"s=W22Z", b"s=W22*"), "its s= in SCRAM is no base64"),
        ((b"r=", b"m=x,r="), "it requires an extension of SCRAM"),
        ((b"r=", b"e=no,e=no,r="), "what it answers is no SCRAM"),
        ((SERVER_FIRST, b""), "what it answers is no SCRAM"),
        ((SERVER_FIRST, b"\xff\xfe"), "not UTF-8"),
        ((SERVER_FIRST, b"HTTP/1.1 200 OK"), "what it answers is no SCRAM"),
    ],
)
def test_what_a_server_may_not_say_first(change: tuple[bytes, bytes], why: str) -> None:
    scram = Scram(USER, nonce=NONCE)
    scram.first()
    with pytest.raises(SaslRefusal) as caught:
        scram.respond(SERVER_FIRST.replace(*change))
    assert why in str(caught.value)


@pytest.mark.parametrize("count", [LEAST_ITERATIONS, 16384])
def test_iterations_at_the_ends(count: int) -> None:
    scram = Scram(USER, nonce=NONCE)
    assert scram.respond(SERVER_FIRST.replace(b"4096", str(count).encode())) is not None
    assert MOST_ITERATIONS == 1_000_000


@pytest.mark.parametrize(
    ("final", "why"),
    [
        (SERVER_FINAL.replace(b"6rri", b"6rrj"), "it has not proved in SCRAM that it knows the password"),
        (b"v=", "it has not proved"),
        (b"x=y", "it has not proved"),
        (b"v=*", "no base64"),
        (b"e=invalid-proof", "it ends SCRAM: 'invalid-proof'"),
        (b"", "what it answers is no SCRAM"),
    ],
)
def test_what_a_server_may_not_say_last(final: bytes, why: str) -> None:
    with pytest.raises(SaslRefusal, match=why):
        proved().respond(final)


def test_the_password_is_in_no_text() -> None:
    assert "pencil" not in repr(USER)
