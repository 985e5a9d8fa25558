"""`Broker.authentication`: which authenticators are called, in which order, and what those that fail can do."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.errors import PluginError
from leafcuttr.plugins.authentication import authentication_of
from leafcuttr.state.plugged import Plugged
from leafcuttr_sdk import (
    Authenticated,
    AuthenticatorSpec,
    BearerToken,
    Challenge,
    Credentials,
    NameAndPassword,
    PeerCertificate,
    Principal,
    Refused,
    authentication_settings,
    tls_settings,
)
from leafcuttr_sdk.authentication import MOST_STEPS, WAYS
from leafcuttr_sdk.testing import fixed_settings

ALICE = NameAndPassword("alice", "sesame")
Answer = Callable[[Credentials], Awaitable[Any]]


class Answering:
    """An authenticator that does what a test wants."""

    def __init__(self, answer: Answer) -> None:
        self.authenticate = answer


def authentication(auth: tuple[str, ...], **answers: Answer) -> Any:
    """With authenticators of these names, in this order, for names and passwords and for tokens."""
    plugged = Plugged()
    for name, answer in answers.items():
        spec = AuthenticatorSpec(
            name, "", lambda answer=answer: Answering(answer), ("basic", "bearer", "mtls")
        )  # type: ignore[misc]
        plugged.authenticators[name] = ("acme", spec)
    declared = [*authentication_settings("lc.x"), *tls_settings("lc.x")]
    given = {
        "lc.x.auth": auth,
        "lc.x.authenticators": tuple(answers),
        "lc.x.ssl.client.auth": "requested",
    }
    return authentication_of(plugged, fixed_settings(declared, given), "lc.x")


async def knows_nobody(credentials: Credentials) -> None:
    return None


async def knows_alice(credentials: Credentials) -> Authenticated | Refused | None:
    if not isinstance(credentials, NameAndPassword) or credentials.name != "alice":
        return None
    return Authenticated(Principal("User", "alice")) if credentials.password == "sesame" else Refused("wrong")


async def takes_all(credentials: Credentials) -> Authenticated:
    return Authenticated(Principal("User", "somebody"))


async def test_the_first_that_knows_the_client_decides() -> None:
    both = authentication(("basic",), first=knows_nobody, second=knows_alice, third=takes_all)
    assert (await both.authenticate(ALICE)).principal == Principal("User", "alice")
    assert await both.authenticate(ALICE._replace(password="x")) == Refused("wrong"), (
        "the third is not called"
    )
    assert (await both.authenticate(NameAndPassword("bob", "x"))).principal.name == "somebody"


async def test_what_is_not_offered_is_refused() -> None:
    basic = authentication(("none", "basic"), only=takes_all)
    assert not basic.required and authentication(("basic",), only=takes_all).required
    assert await basic.authenticate(BearerToken("x")) == Refused("bearer is not offered")
    assert await basic.authenticate(PeerCertificate(b"", "CN=a")) == Refused("mtls is not offered")


async def test_one_that_is_none_is_one_line() -> None:
    """Its plugin is named, and not that of the service; nothing is left to fail at each request."""
    plugged = Plugged()
    plugged.authenticators["odd"] = ("acme", AuthenticatorSpec("odd", "", lambda: 3.5, ("basic",)))  # type: ignore[arg-type, return-value]
    settings = fixed_settings(
        [*authentication_settings("lc.x")], {"lc.x.auth": ("basic",), "lc.x.authenticators": ("odd",)}
    )
    said = "plugin acme: authenticator odd failed: it was made as a float, which has no method authenticate"
    with pytest.raises(PluginError, match=said):
        authentication_of(plugged, settings, "lc.x")


async def test_what_nobody_knows() -> None:
    found = authentication(("basic", "bearer", "mtls"), only=knows_nobody)
    assert await found.authenticate(ALICE) == Refused("no authenticator knows the name 'alice'")
    assert await found.authenticate(BearerToken("secret")) == Refused("no authenticator knows this token")
    assert await found.authenticate(PeerCertificate(b"x", "CN=a")) == Authenticated(Principal("User", "CN=a"))


async def raises(credentials: Credentials) -> None:
    raise OSError("no such server")


async def exits(credentials: Credentials) -> None:
    raise SystemExit(3)


async def raises_a_group(credentials: Credentials) -> None:
    raise BaseExceptionGroup("", [SystemExit(1), ValueError("x")])


async def returns_true(credentials: Credentials) -> bool:
    return True


async def returns_a_name(credentials: Credentials) -> Authenticated:
    return Authenticated("alice")  # type: ignore[arg-type]


async def returns_an_empty_name(credentials: Credentials) -> Authenticated:
    return Authenticated(Principal("User", ""))


async def hangs(credentials: Credentials) -> None:
    await trio.sleep_forever()


@pytest.mark.parametrize(
    "bad", [raises, exits, raises_a_group, returns_true, returns_a_name, returns_an_empty_name, hangs]
)
async def test_one_that_fails_refuses_in_one_line(
    bad: Answer, caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    caplog.set_level(logging.INFO)
    found = authentication(("basic",), bad=bad, next=takes_all)
    for _ in range(3):
        assert await found.authenticate(ALICE) == Refused("the authenticator bad has failed")
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("plugin acme: authenticator bad failed: ")
    assert "sesame" not in line and "\n" not in line


async def test_the_line_says_what_was_returned_instead_of_an_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await authentication(("basic",), bad=returns_true).authenticate(ALICE)
    (line,) = caplog.messages
    assert line == "plugin acme: authenticator bad failed: it returned a bool that is no outcome"


async def test_a_reason_is_one_short_line() -> None:
    """It may repeat what the client has sent."""

    async def repeats(credentials: Credentials) -> Refused:
        assert isinstance(credentials, NameAndPassword)
        return Refused(f"no {credentials.name}")

    found = authentication(("basic",), only=repeats)
    assert await found.authenticate(NameAndPassword("ü\nINFO all is well\x1b[2J", "")) == Refused(
        "no ü\\nINFO all is well\\x1b[2J"
    )
    outcome = await found.authenticate(NameAndPassword("a" * 100_000, ""))
    assert isinstance(outcome, Refused) and len(outcome.reason) == 500


async def test_a_cancelled_request_stays_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    found = authentication(("basic",), only=hangs)
    with trio.move_on_after(1) as scope:
        await found.authenticate(ALICE)
    assert scope.cancelled_caught


class Stepping:
    """An authenticator that does with each step what a test wants."""

    authenticate = staticmethod(knows_nobody)

    def __init__(self, step: Callable[[bytes], Awaitable[Any]], made: list[str] | None = None) -> None:
        self.step = step
        self.made = made

    def begin(self, mechanism: str) -> Any:
        if self.made is not None:
            self.made.append(mechanism)
        return self


def stepping(**authenticators: tuple[tuple[str, ...], Any]) -> Any:
    """The authentication of a service with the way sasl; what each authenticator is, and its mechanisms."""
    plugged = Plugged()
    for name, (mechanisms, made) in authenticators.items():
        spec = AuthenticatorSpec(name, "", lambda made=made: made, mechanisms=mechanisms)  # type: ignore[misc]
        plugged.authenticators[name] = ("acme", spec)
    declared = authentication_settings("lc.x", ways=WAYS)
    given = {"lc.x.auth": ("sasl",), "lc.x.authenticators": tuple(authenticators)}
    return authentication_of(plugged, fixed_settings(declared, given), "lc.x")


async def counts(data: bytes) -> Challenge | Authenticated | Refused:
    if data == b"3":
        return Authenticated(Principal("User", "a"), data=b"v")
    return Challenge(data + b"!") if data != b"x" else Refused("wrong")


async def test_steps() -> None:
    first, second = list[str](), list[str]()
    found = stepping(one=(("B", "A"), Stepping(counts, first)), two=(("A", "C"), Stepping(counts, second)))
    assert (found.mechanisms, found.required) == (("B", "A", "C"), True)
    exchange = found.begin("A")
    assert await exchange.step(b"") == Challenge(b"!")
    assert await exchange.step(b"1") == Challenge(b"1!")
    assert await exchange.step(b"3") == Authenticated(Principal("User", "a"), data=b"v")
    assert await exchange.step(b"3") == Refused("the exchange is over")
    refused = found.begin("C")
    assert await refused.step(b"x") == Refused("wrong")
    assert await refused.step(b"3") == Refused("the exchange is over"), "wrong is wrong"
    assert (first, second) == (["A"], ["C"]), "the first that has the mechanism"
    unknown = found.begin("D" * 1000)
    outcome = await unknown.step(b"3")
    assert isinstance(outcome, Refused) and "is not offered" in outcome.reason and len(outcome.reason) < 400
    assert await unknown.step(b"3") == Refused("the exchange is over")


async def test_steps_have_an_end() -> None:
    exchange = stepping(one=(("A",), Stepping(counts))).begin("A")
    for _ in range(MOST_STEPS - 1):
        assert await exchange.step(b"1") == Challenge(b"1!")
    assert await exchange.step(b"1") == Refused("the exchange has not ended after 16 steps")
    assert await exchange.step(b"3") == Refused("the exchange is over")


async def test_mechanisms_are_for_services_that_offer_steps() -> None:
    plugged = Plugged()
    spec = AuthenticatorSpec("one", "", lambda: Stepping(counts), ("basic",), ("A",))
    plugged.authenticators["one"] = ("acme", spec)
    declared = [*authentication_settings("lc.x", ["one"], ways=WAYS)]
    basic = authentication_of(plugged, fixed_settings(declared, {"lc.x.auth": ("basic",)}), "lc.x")
    assert basic.mechanisms == ()
    assert isinstance(await basic.begin("A").step(b"3"), Refused)
    plugged.authenticators["one"] = ("acme", spec._replace(mechanisms=()))
    with pytest.raises(
        PluginError, match=r"^lc\.x\.auth offers sasl, which none of lc\.x\.authenticators takes"
    ):
        authentication_of(plugged, fixed_settings(declared, {"lc.x.auth": ("sasl",)}), "lc.x")


def test_a_service_offers_what_it_can() -> None:
    (auth, _) = authentication_settings("lc.x")
    assert auth.check is not None
    assert auth.check(("sasl",)) == "'sasl' is none of none, basic, bearer, mtls"
    assert "sasl" not in auth.help
    (auth, _) = authentication_settings("lc.x", ways=["none", "sasl"])
    assert auth.check is not None
    assert auth.check(("none", "sasl")) is None and auth.check(("basic",)) and auth.check(())


async def returns_text(data: Any) -> Any:
    return Challenge("text")  # type: ignore[arg-type]


async def succeeds_with_text(data: Any) -> Any:
    return Authenticated(Principal("User", "a"), data="text")  # type: ignore[arg-type]


class WithoutBegin:
    authenticate = staticmethod(knows_nobody)


class BeginExits(WithoutBegin):
    def begin(self, mechanism: str) -> Any:
        raise SystemExit(3)


class BeginsNothing(WithoutBegin):
    def begin(self, mechanism: str) -> Any:
        return None


@pytest.mark.parametrize(
    "bad",
    [
        *map(
            Stepping,
            (
                raises,
                exits,
                raises_a_group,
                returns_true,
                knows_nobody,
                returns_text,
                succeeds_with_text,
                hangs,
            ),
        ),
        WithoutBegin(),
        BeginExits(),
        BeginsNothing(),
    ],
)
async def test_steps_that_fail_refuse_in_one_line(
    bad: Any, caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    caplog.set_level(logging.INFO)
    found = stepping(bad=(("A",), bad))
    for _ in range(3):
        assert await found.begin("A").step(b"secret") == Refused("the authenticator bad has failed")
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("plugin acme: authenticator bad failed: ")
    assert "secret" not in line and "\n" not in line


def test_what_cannot_work_is_one_line() -> None:
    with pytest.raises(
        PluginError, match=r"^lc\.x\.auth offers basic, which none of lc\.x\.authenticators takes"
    ):
        authentication(("basic",))
    assert authentication(("none",)).ways == ("none",)

    def fails() -> Any:
        raise ImportError("no ldap here")

    plugged = Plugged()
    plugged.authenticators["ldap"] = ("acme", AuthenticatorSpec("ldap", "", fails, ("basic",)))
    declared = [*authentication_settings("lc.x", ["ldap"]), *tls_settings("lc.x")]
    settings = fixed_settings(declared, {"lc.x.auth": ("basic",)})
    with pytest.raises(
        PluginError, match="plugin acme: authenticator ldap failed: ImportError: no ldap here"
    ):
        authentication_of(plugged, settings, "lc.x")
    plugged.authenticators.clear()
    with pytest.raises(PluginError, match="names 'ldap', which no plugin brings that is on; there is broker"):
        authentication_of(plugged, settings, "lc.x")


def test_a_name_that_is_none_is_found_whatever_the_ways() -> None:
    declared = [*authentication_settings("lc.x"), *tls_settings("lc.x")]
    settings = fixed_settings(declared, {"lc.x.authenticators": ("nobody",)})
    assert settings.list("lc.x.auth") == ("none",)
    with pytest.raises(
        PluginError, match=r"^lc\.x\.authenticators names 'nobody', which no plugin brings that is on"
    ):
        authentication_of(Plugged(), settings, "lc.x")


def test_credentials_are_not_shown() -> None:
    assert "sesame" not in repr(ALICE) and "alice" in repr(ALICE)
    assert "secret" not in repr(BearerToken("secret"))
    assert str(Principal("User", "alice")) == "User:alice"
