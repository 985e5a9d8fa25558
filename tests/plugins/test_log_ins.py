"""The log-ins of clients that are not Kafka's, and the authenticator `broker`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography.hazmat.primitives.serialization import Encoding

from leafcuttr.errors import PluginError
from leafcuttr.plugins import log_ins as module
from leafcuttr.plugins.authentication import authentication_of
from leafcuttr.plugins.log_ins import broker_authenticator, log_ins_of
from leafcuttr.state.broker import Broker
from leafcuttr.state.security import scram
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion
from leafcuttr_sdk.authentication import (
    Authenticated,
    BearerToken,
    NameAndPassword,
    PeerCertificate,
    Principal,
    Refused,
)
from leafcuttr_sdk.settings import authentication_settings, tls_settings
from leafcuttr_sdk.testing import check_authenticator, fixed_settings
from leafcuttr_sdk.testing.authenticator_checks import authenticator_report
from support.live_broker import opening
from support.logs import HandClock
from support.made_certificates import certificate
from support.token_issuer import Issuer

Open = Callable[..., Broker]
SHA256, SHA512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
ALICE = NameAndPassword("alice", "sesame")


@pytest.fixture
def open_core(tmp_path: Path) -> Iterator[Open]:
    with opening(tmp_path / "data", HandClock()) as opened:
        yield opened


@pytest.fixture
def core(open_core: Open) -> Broker:
    return open_core({})


@pytest.fixture
def derivations(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The passwords for which PBKDF2 was run."""
    found: list[bytes] = []
    real = scram.salted

    def counted(mechanism: Any, password: bytes, salt: bytes, iterations: int) -> bytes:
        found.append(password)
        return real(mechanism, password, salt, iterations)

    monkeypatch.setattr(scram, "salted", counted)
    return found


async def put(core: Broker, name: str, password: str, mechanism: ScramMechanism = SHA256) -> None:
    credential = scram.new_credential(mechanism, password.encode(), 4096)
    await core.users.alter([CredentialUpsertion(name, mechanism, credential)], [])


async def test_a_password_is_derived_once(core: Broker, derivations: list[bytes]) -> None:
    await put(core, "alice", "sesame")
    derivations.clear()
    log_ins = log_ins_of(core)
    assert log_ins_of(core) is log_ins
    for _ in range(5):
        found = await log_ins.authenticate(ALICE)
        assert isinstance(found, Authenticated)
        assert (found.principal, found.expires_ms) == (Principal("User", "alice"), None)
        assert found.still_holds is not None and found.still_holds()
    assert derivations == [b"sesame"]


async def test_many_at_once_wait_for_one_check(core: Broker, derivations: list[bytes]) -> None:
    await put(core, "alice", "sesame")
    derivations.clear()
    outcomes: list[Any] = []

    async def log_in(credentials: NameAndPassword) -> None:
        outcomes.append(await log_ins_of(core).authenticate(credentials))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(log_in, ALICE)
    assert derivations == [b"sesame"]
    assert {type(each) for each in outcomes} == {Authenticated}


@pytest.mark.parametrize(
    "wrong", [NameAndPassword("alice", "Sesame"), NameAndPassword("bob", "sesame")], ids=["password", "name"]
)
async def test_what_is_wrong_costs_the_same_each_time(
    core: Broker, derivations: list[bytes], wrong: NameAndPassword
) -> None:
    await put(core, "alice", "sesame")
    await log_ins_of(core).authenticate(ALICE)
    derivations.clear()
    for _ in range(3):
        assert isinstance(await log_ins_of(core).authenticate(wrong), Refused)
    assert derivations == [wrong.password.encode()] * 3
    assert isinstance(await log_ins_of(core).authenticate(ALICE), Authenticated), "it is remembered still"
    assert len(derivations) == 3


async def test_a_changed_password_and_a_deleted_user(core: Broker, derivations: list[bytes]) -> None:
    await put(core, "alice", "sesame")
    log_ins = log_ins_of(core)
    first = await log_ins.authenticate(ALICE)
    assert isinstance(first, Authenticated) and first.still_holds is not None
    await put(core, "alice", "tea")
    assert not first.still_holds()
    assert isinstance(await log_ins.authenticate(ALICE), Refused)
    second = await log_ins.authenticate(NameAndPassword("alice", "tea"))
    assert isinstance(second, Authenticated) and second.still_holds is not None and second.still_holds()
    await core.users.alter([], [CredentialDeletion("alice", SHA256)])
    assert not second.still_holds()
    assert await log_ins.known(NameAndPassword("alice", "tea")) is None
    assert log_ins._right == {}


async def test_a_user_that_is_deleted_during_the_check_is_not_in(
    core: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(core, "alice", "sesame")
    log_ins, real = log_ins_of(core), scram.fits

    def fits(*arguments: Any) -> bool:
        trio.from_thread.run(core.users.alter, [], [CredentialDeletion("alice", SHA256)])
        return real(*arguments)

    monkeypatch.setattr(scram, "fits", fits)
    assert not isinstance(await log_ins.authenticate(ALICE), Authenticated)


async def test_neither_the_password_nor_a_plain_hash_of_it_is_kept(core: Broker) -> None:
    await put(core, "alice", "sesame")
    one, other = module.LogIns(core), module.LogIns(core)
    await one.authenticate(ALICE)
    await other.authenticate(ALICE)
    assert one._right["alice"].hashed != other._right["alice"].hashed
    assert "sesame" not in repr(vars(one))


@pytest.mark.parametrize(
    "credentials",
    [
        NameAndPassword("\udcff", "x"),
        NameAndPassword("alice", "\udcff"),
        NameAndPassword("", "x"),
        NameAndPassword("alice", ""),
    ],
)
async def test_odd_passwords(core: Broker, derivations: list[bytes], credentials: NameAndPassword) -> None:
    assert isinstance(await log_ins_of(core).authenticate(credentials), Refused)
    assert derivations == []


def with_listener(opened: Open, **more: str) -> Broker:
    jaas = 'org.PlainLoginModule required user_bob="tea" user_carol="milk";'
    core = opened(
        {
            "listeners": "SASL_PLAINTEXT://localhost:9092,PLAINTEXT://localhost:9093",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
            **more,
        }
    )
    from leafcuttr.config.listeners import parse_listeners

    core.listeners = parse_listeners(core.settings)
    return core


async def test_users_of_the_settings(open_core: Open, derivations: list[bytes]) -> None:
    core = with_listener(open_core)
    await put(core, "alice", "sesame")
    derivations.clear()
    log_ins = log_ins_of(core)
    found = await log_ins.authenticate(NameAndPassword("bob", "tea"))
    assert isinstance(found, Authenticated) and found.principal == Principal("User", "bob")
    assert derivations == []
    assert isinstance(await log_ins.authenticate(NameAndPassword("bob", "milk")), Refused)
    assert derivations == [b"milk"], "as long as for a name that there is not"
    assert isinstance(await log_ins.authenticate(ALICE), Authenticated), "the stored users are there too"
    assert found.still_holds is not None and found.still_holds()
    told: list[None] = []
    log_ins.on_change(lambda: told.append(None))
    changed = 'org.PlainLoginModule required user_carol="milk";'
    core.settings.replace_dynamic({"listener.name.sasl_plaintext.plain.sasl.jaas.config": changed})
    assert not found.still_holds()
    await trio.testing.wait_all_tasks_blocked()
    assert told == [None]


async def test_users_that_change_are_told(core: Broker) -> None:
    told: list[None] = []
    log_ins_of(core).on_change(lambda: told.append(None))
    await put(core, "alice", "sesame")
    await trio.testing.wait_all_tasks_blocked()
    assert told == [None]


# Tokens and certificates


async def test_tokens(open_core: Open, tmp_path: Path) -> None:
    core = open_core({"sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys").as_uri()})
    now_s = core.clock.now_ms() // 1000
    issuer, stranger = Issuer(now_s), Issuer(now_s)
    for each in (issuer, stranger):
        each.add("ES256", "one")
    issuer.write(tmp_path / "keys")
    log_ins = log_ins_of(core)
    assert log_ins.takes_tokens
    found = await log_ins.authenticate(BearerToken(issuer.token("one", exp=now_s + 60)))
    assert found == Authenticated(Principal("User", "alice"), (now_s + 60) * 1000)
    for wrong in (stranger.token("one"), issuer.token("one", exp=now_s - 600), "sesame", "a.b.c"):
        assert isinstance(await log_ins.authenticate(BearerToken(wrong)), Refused)
    assert await log_ins.known(BearerToken("sesame")) is None
    issuer.now = None
    (await authenticator_report(broker_authenticator(core))).raise_problems()


async def test_tokens_without_keys(core: Broker) -> None:
    assert not log_ins_of(core).takes_tokens
    assert await log_ins_of(core).known(BearerToken("a.b.c")) is None


async def test_a_certificate(open_core: Open) -> None:
    der = certificate(subject="sensor-7").public_bytes(Encoding.DER)
    core = open_core({"ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/U"})
    found = await log_ins_of(core).authenticate(PeerCertificate(der, "CN=whatever"))
    assert found == Authenticated(Principal("User", "SENSOR-7"))
    core = open_core({"ssl.principal.mapping.rules": "RULE:^O=(.*)$/$1/"})
    found = await log_ins_of(core).authenticate(PeerCertificate(der, "O=acme"))
    assert isinstance(found, Refused) and "no rule of ssl.principal.mapping.rules matches" in found.reason
    assert isinstance(await log_ins_of(core).authenticate(PeerCertificate(b"0", "CN=a")), Refused)


# The authenticator


def authentication(core: Broker, auth: tuple[str, ...], *names: str) -> Any:
    declared = [*authentication_settings("lc.x"), *tls_settings("lc.x")]
    given = {"lc.x.auth": auth, "lc.x.authenticators": names, "lc.x.ssl.client.auth": "requested"}
    return authentication_of(core.plugged, fixed_settings(declared, given), "lc.x", core=core)


async def test_services_may_name_it(core: Broker) -> None:
    await put(core, "alice", "sesame")
    found = await authentication(core, ("basic",), "broker").authenticate(ALICE)
    assert isinstance(found, Authenticated) and found.still_holds is not None
    wrong = await authentication(core, ("basic",), "broker").authenticate(ALICE._replace(password="x"))
    assert wrong == Refused("the password of 'alice' is wrong")
    unknown = await authentication(core, ("basic",), "broker").authenticate(NameAndPassword("bob", "x"))
    assert unknown == Refused("no authenticator knows the name 'bob'")


async def test_without_keys_it_takes_no_tokens(core: Broker) -> None:
    with pytest.raises(
        PluginError, match=r"offers bearer, which none of lc.x.authenticators takes \(broker\)"
    ):
        authentication(core, ("bearer",), "broker")


def test_it_is_not_made_where_clients_need_not_log_in(core: Broker) -> None:
    authentication(core, ("none",), "broker")
    assert core.plugged.log_ins is None


def test_it_keeps_the_contract(open_core: Open) -> None:
    core = with_listener(open_core)
    check_authenticator(broker_authenticator(core), right=NameAndPassword("bob", "tea"))
