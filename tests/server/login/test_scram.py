"""The server's side of SCRAM: the RFC's vector, our client, clients of others, and hostile messages."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.client.sasl.scram import Scram
from leafcuttr.client.settings import ClientSasl
from leafcuttr.config.settings import Settings
from leafcuttr.server.login.mechanisms import LoginRefused
from leafcuttr.server.login.scram import ScramServer
from leafcuttr.state.identity import Principal
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.credential_shapes import shape_of
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.delegation_tokens import DelegationTokens
from leafcuttr.state.security.scram import credential_of, new_credential, salted
from leafcuttr.state.security.users import CredentialUpsertion, Users
from support.logs import HandClock

SHA_256 = ScramMechanism.SCRAM_SHA_256
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Users]:
    metadata = MetadataStore.open(tmp_path)
    yield Users(metadata)
    metadata.close()


async def with_user(users: Users, name: str = "user", password: bytes = b"pencil") -> Users:
    credential = credential_of(SHA_256, SALT, salted(SHA_256, password, SALT, 4096), 4096)
    await users.alter([CredentialUpsertion(name, SHA_256, credential)], [])
    return users


def server(users: Users, mechanism: ScramMechanism = SHA_256, nonce: str | None = None) -> ScramServer:
    return ScramServer(mechanism, users, trio.CapacityLimiter(1), nonce=nonce)


async def test_the_vector_of_the_rfc(users: Users) -> None:
    """RFC 7677, section 3"""
    exchange = server(await with_user(users), nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first, last = await exchange.step(FIRST), await exchange.step(PROOF)
    assert (first.answer, first.user) == (CHALLENGE, None)
    assert (last.answer, last.user) == (b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "user")
    assert (last.expires_ms, last.by_token) == (None, False)


def client(mechanism: ScramMechanism, name: str, password: str) -> Scram:
    return Scram(ClientSasl(mechanism=mechanism.sasl_name, username=name, password=password))


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("name", ["alice", "a,b=c", "ü", "=2C"])
async def test_a_client_of_ours(users: Users, mechanism: ScramMechanism, name: str) -> None:
    await users.alter(
        [CredentialUpsertion(name, mechanism, new_credential(mechanism, "pässword".encode(), 4096))], []
    )
    for password, fits in (("pässword", True), ("password", False)):
        ours, exchange = client(mechanism, name, password), server(users, mechanism)
        challenge = (await exchange.step(ours.first())).answer
        proof = ours.respond(challenge)
        assert proof is not None
        if not fits:
            with pytest.raises(
                LoginRefused, match=f"invalid credentials with SASL mechanism {mechanism.sasl_name}"
            ):
                await exchange.step(proof)
            continue
        last = await exchange.step(proof)
        assert last.user == name
        assert ours.respond(last.answer) is None, "the client has verified the server"


async def test_who_there_is_not_is_told_nothing(users: Users) -> None:
    """The same salt each time, a proof is wanted, and the refusal is that of a wrong password."""
    await with_user(users, "alice")
    challenges = []
    for _ in range(2):
        ours, exchange = client(SHA_256, "nobody", "pencil"), server(users, nonce="fixed")
        challenge = (await exchange.step(ours.first())).answer
        challenges.append(challenge.partition(b",")[2])
        with pytest.raises(LoginRefused) as caught:
            await exchange.step(ours.respond(challenge) or b"")
        assert str(caught.value).endswith("due to invalid credentials with SASL mechanism SCRAM-SHA-256")
    assert challenges[0] == challenges[1]


@pytest.mark.parametrize("salt", [b"0123456789abcdefghijklmnop", bytes(range(64))])
async def test_who_there_is_not_looks_and_takes_as_long_as_a_user(
    users: Users, monkeypatch: pytest.MonkeyPatch, salt: bytes
) -> None:
    """Neither salt, iterations nor a wait for a worker tell which names there are."""
    made = credential_of(SHA_256, salt, salted(SHA_256, b"pencil", salt, 5000), 5000)
    await users.alter([CredentialUpsertion("alice", SHA_256, made)], [])
    await users.have_secret(trio.CapacityLimiter(1))
    hops, work = 0, 0
    run_sync, digest = trio.to_thread.run_sync, hmac.digest

    async def hop(*given: Any, **named: Any) -> Any:
        nonlocal hops
        hops += 1
        return await run_sync(*given, **named)

    def counted(*given: Any) -> bytes:
        nonlocal work
        work += 1
        return digest(*given)

    monkeypatch.setattr(trio.to_thread, "run_sync", hop)
    monkeypatch.setattr(hmac, "digest", counted)
    seen = []
    for name in ("alice", "nobody", "somebody"):
        work = 0
        exchange = server(users)
        challenge = (await exchange.step(f"n,,n={name},r=x".encode())).answer.decode()
        of_challenge = dict(each.split("=", 1) for each in challenge.split(","))
        shape = shape_of(SHA_256, ScramCredential(base64.b64decode(of_challenge["s"]), b"", b"", 0))
        with pytest.raises(LoginRefused) as caught:
            await exchange.step(
                f"c=biws,r={of_challenge['r']},p={base64.b64encode(bytes(32)).decode()}".encode()
            )
        seen.append((shape, of_challenge["i"], str(caught.value), work, hops))
    assert len(set(seen)) == 1
    assert seen[0][1] == "5000" and seen[0][-1] == 0


def proof_of(without: str) -> bytes:
    """The last message with this beginning, and a proof that fits it."""
    challenge = f"r=clientserver,s={base64.b64encode(SALT).decode()},i=4096"
    message = f"n=user,r=client,{challenge},{without}".encode()
    key = hmac.digest(salted(SHA_256, b"pencil", SALT, 4096), b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    return f"{without},p={proof}".encode()


@pytest.mark.parametrize(
    ("without", "comes_in"),
    [
        ("c=biws,r=clientserver", True),
        # librdkafka puts its own nonce before the one that it got once more; Kafka takes that too.
        ("c=biws,r=clientclientserver", True),
        ("c=biws,r=clientother", False),
        ("c=eSws,r=clientserver", False),  # the first message said that there is no channel binding
    ],
)
async def test_nonce_and_binding_are_those_of_the_first_message(
    users: Users, without: str, comes_in: bool
) -> None:
    exchange = server(await with_user(users), nonce="server")
    await exchange.step(b"n,,n=user,r=client")
    if comes_in:
        assert (await exchange.step(proof_of(without))).user == "user"
    else:
        with pytest.raises(LoginRefused, match="the last message does not belong to the first"):
            await exchange.step(proof_of(without))


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"", "the first message is none of SCRAM"),
        (b"n,,r=x", "the first message is none of SCRAM"),
        (b"n,,n=user,r=", "the first message is none of SCRAM"),
        (b"n,,m=x,n=user,r=x", "the first message is none of SCRAM"),
        (b"p=tls-unique,,n=user,r=x", "channel binding is not offered"),
        (b"n,a=other,n=user,r=x", "the name is none, or another one than that to act for"),
        (b"n,,n=us=er,r=x", "the name is none, or another one than that to act for"),
        (b"n,,n=,r=x", "the name is none, or another one than that to act for"),
        (b"n,,n=user,r=x,tokenauth=true", "there are no delegation tokens (delegation.token.secret.key)"),
        (b"n,,n=\xff,r=x", "a message is not UTF-8"),
    ],
)
async def test_first_messages_that_are_refused(users: Users, first: bytes, why: str) -> None:
    with pytest.raises(LoginRefused) as caught:
        await server(await with_user(users)).step(first)
    assert str(caught.value) == f"Authentication failed with SASL mechanism SCRAM-SHA-256: {why}"


@pytest.mark.parametrize(
    "change",
    [
        (b"c=biws", b"c=eSws"),  # the client said that it knows no channel binding
        (b"r=rOpr", b"r=xOpr"),
        (b"$k0", b"$k1"),
        (b",p=", b",p=!"),
        (b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b""),
        (b"p=dHzb", b"p=eHzb"),
        (b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", b"p=dHzb"),
    ],
)
async def test_last_messages_that_are_refused(users: Users, change: tuple[bytes, bytes]) -> None:
    exchange = server(await with_user(users), nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    await exchange.step(FIRST)
    assert change[0] in PROOF
    with pytest.raises(LoginRefused):
        await exchange.step(PROOF.replace(*change))


@given(st.lists(st.binary(max_size=60) | st.sampled_from([FIRST, PROOF]), min_size=1, max_size=3))
def test_any_messages(messages: list[bytes]) -> None:
    """A step or a refusal."""

    class NoUsers:
        secret = b"s"

        async def have_secret(self, limiter: trio.CapacityLimiter) -> None:
            """It is there."""

        def shape_of_nobody(self, name: str, mechanism: Any, otherwise: Any) -> Any:
            return otherwise

        def credentials(self, name: str) -> dict[Any, Any]:
            return {}

    async def steps() -> None:
        exchange = server(NoUsers())  # type: ignore[arg-type]
        for message in messages:
            try:
                assert (await exchange.step(message)).user is None
            except LoginRefused:
                return

    trio.run(steps)


async def test_a_delegation_token_comes_in_as_its_owner(users: Users, tmp_path: Path) -> None:
    """KIP-48. A user of the same name as the id is someone else."""
    metadata, clock = users._metadata, HandClock()
    tokens = DelegationTokens(metadata, Settings({"delegation.token.secret.key": "s"}), clock)
    token = await tokens.create(Principal("User", "alice"), Principal("User", "bob"), [], 5000)
    await with_user(users, token.id)
    password = base64.b64encode(tokens.hmac_of(token)).decode()
    for is_token, secret, user in (
        (True, password, "alice"),
        (False, "pencil", token.id),
        (True, "pencil", None),
        (False, password, None),
    ):
        ours = Scram(
            ClientSasl(mechanism="SCRAM-SHA-256", username=token.id, password=secret, is_token=is_token)
        )
        exchange = ScramServer(SHA_256, users, trio.CapacityLimiter(1), tokens=tokens, now_ms=clock.now_ms)
        proof = ours.respond((await exchange.step(ours.first())).answer) or b""
        if user is None:
            with pytest.raises(LoginRefused, match="invalid credentials"):
                await exchange.step(proof)
            continue
        step = await exchange.step(proof)
        assert (step.user, step.by_token) == (user, is_token)
        assert step.expires_ms == (token.expires_ms if is_token else None)
        assert step.still_holds is not None and step.still_holds()


async def test_a_token_that_is_not_there_looks_like_one_that_is(users: Users) -> None:
    clock = HandClock()
    tokens = DelegationTokens(users._metadata, Settings({"delegation.token.secret.key": "s"}), clock)
    token = await tokens.create(Principal("User", "alice"), Principal("User", "alice"), [], 5000)
    iterations = []
    for name in (token.id, "x" * 22):
        exchange = ScramServer(SHA_256, users, trio.CapacityLimiter(1), tokens=tokens, now_ms=clock.now_ms)
        challenge = (await exchange.step(f"n,,n={name},r=x,tokenauth=true".encode())).answer
        salt = challenge.split(b",")[1]
        iterations.append((len(salt), challenge.rpartition(b",")[2]))
    assert iterations[0] == iterations[1]


async def test_a_password_that_is_changed_during_the_log_in(users: Users) -> None:
    """The proof fits, and what it proves does not hold any more."""
    await with_user(users)
    ours, exchange = client(SHA_256, "user", "pencil"), server(users)
    proof = ours.respond((await exchange.step(ours.first())).answer) or b""
    await with_user(users)
    step = await exchange.step(proof)
    assert step.still_holds is not None and not step.still_holds()
