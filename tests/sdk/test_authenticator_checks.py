"""`check_authenticator` finds what is wrong with an authenticator, and nothing wrong with one that is right."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr_sdk import (
    Authenticated,
    AuthenticatorSpec,
    Challenge,
    Credentials,
    NameAndPassword,
    PluginError,
    Principal,
    Refused,
)
from leafcuttr_sdk.testing import ContractError, check_authenticator

RIGHT = NameAndPassword("alice", "sesame")


class Good:
    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused | None:
        return Authenticated(Principal("User", "alice")) if credentials == RIGHT else None


def spec(make: Any, ways: tuple[str, ...] = ("basic",), **more: Any) -> AuthenticatorSpec:
    return AuthenticatorSpec("tried", "for a test", make, ways, **more)


def test_a_good_one() -> None:
    check_authenticator(spec(Good, ("basic", "bearer", "mtls")), right=RIGHT)


class TakesAll:
    async def authenticate(self, credentials: Credentials) -> Authenticated:
        return Authenticated(Principal("User", "x"))


class Raises:
    async def authenticate(self, credentials: Any) -> None:
        credentials.name.encode()


class RaisesAGroup:
    async def authenticate(self, credentials: Credentials) -> None:
        raise ExceptionGroup("several", [KeyError("sesame")])


class Says:
    async def authenticate(self, credentials: Credentials) -> bool:
        return False


class Names:
    async def authenticate(self, credentials: Credentials) -> Any:
        return Authenticated("alice")  # type: ignore[arg-type]


class Plain:
    def authenticate(self, credentials: Credentials) -> None:
        return None


class Works:
    async def authenticate(self, credentials: Credentials) -> None:
        until = time.thread_time() + 0.12
        while time.thread_time() < until:
            pass


def refuses() -> Any:
    raise PluginError("no file")


def breaks() -> Any:
    raise OSError("no file")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("given", "right", "said"),
    [
        (spec(TakesAll), None, r"refuses: it authenticates NameAndPassword\('a', '...'\) as User:x"),
        (spec(Raises), None, "answers: it raised UnicodeEncodeError"),
        (spec(RaisesAGroup), None, "answers: it raised KeyError: 'sesame'"),
        (spec(Says), None, "answers: it returned a bool"),
        (spec(Names), None, "answers: its principal is a str"),
        (spec(Plain), None, "called: Plain has no method `async def authenticate`"),
        (spec(Works, ("mtls",)), None, "does not block: it works for long on the loop"),
        (spec(Good), NameAndPassword("alice", "x"), "accepts: it answers None"),
        (spec(refuses), RIGHT, "made: it refuses to be made: no file"),
        (spec(breaks), None, "made: making it raised OSError: no file"),
        (spec(Good, ("digest",)), None, "made: its spec names 'digest' among its ways"),
        (spec(Good, ()), None, "made: its spec names neither ways nor mechanisms"),
        (spec(Good, mechanisms=("Plain",)), None, "made: its spec names 'Plain' among its mechanisms"),
        (
            spec(Good, mechanisms=("A" * 21,)),
            None,
            "made: its spec names 'A+' among its mechanisms: up to 20",
        ),
        (
            spec(Good, mechanisms=("PLAIN",)),
            None,
            "called: its spec names mechanisms, and it has no method begin",
        ),
    ],
)
def test_what_is_wrong_is_found(given: AuthenticatorSpec, right: Credentials | None, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        check_authenticator(given, right=right)


def test_one_that_lacks_its_settings_may_refuse_to_be_made() -> None:
    check_authenticator(spec(refuses))


class Scram:
    """An authenticator with one mechanism, whose exchange does what a test wants with each step."""

    def __init__(self, take: Callable[[int, bytes], Any]) -> None:
        self._take = take

    async def authenticate(self, credentials: Credentials) -> None:
        return None

    def begin(self, mechanism: str) -> Any:
        return _Steps(self._take)


class _Steps:
    def __init__(self, take: Callable[[int, bytes], Any]) -> None:
        self._take = take
        self._number = 0

    async def step(self, data: bytes) -> Any:
        self._number += 1
        return self._take(self._number, data)


def echoes(number: int, data: bytes) -> Any:
    """Right is the client that says the number of its step, for three steps."""
    if data != str(number).encode():
        return Refused("wrong")
    return Challenge(data) if number < 3 else Authenticated(Principal("User", "a"))


def right() -> Callable[[bytes | None], bytes]:
    return lambda challenge: b"%d" % (int(challenge or 0) + 1)


def steps(take: Callable[[int, bytes], Any]) -> AuthenticatorSpec:
    return spec(lambda: Scram(take), (), mechanisms=("A",))


def test_good_steps() -> None:
    check_authenticator(steps(echoes))
    check_authenticator(steps(echoes), clients={"A": right})
    with pytest.raises(ContractError, match="accepts: it answers Refused"):
        check_authenticator(steps(echoes), clients={"A": lambda: lambda challenge: b"9"})


class NoStep(Scram):
    def begin(self, mechanism: str) -> Any:
        return object()


class BeginRaises(Scram):
    def begin(self, mechanism: str) -> Any:
        raise KeyError(mechanism)


class BeginWaits(Scram):
    async def begin(self, mechanism: str) -> Any:
        return _Steps(self._take)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (steps(lambda number, data: Challenge(b"")), "steps: an exchange of A has not ended after 16 steps"),
        (steps(lambda number, data: data.decode()), "steps: it raised UnicodeDecodeError"),
        (steps(lambda number, data: None), "steps: a step returned None"),
        (steps(lambda number, data: True), "steps: it returned a bool"),
        (steps(lambda number, data: Challenge("x")), "steps: the data of a Challenge are no bytes"),  # type: ignore[arg-type]
        (
            steps(lambda number, data: Authenticated(Principal("User", "a"))),
            "refuses: it authenticates a client that sends garbage by A, as User:a",
        ),
        (
            steps(
                lambda number, data: (
                    Challenge(b"y")
                    if number == 1
                    else Authenticated(Principal("U", "a"))
                    if data == b"y"
                    else Refused("")
                )
            ),
            "refuses: it authenticates a client that sends what it was sent itself by A",
        ),
        (
            steps(lambda number, data: Authenticated(Principal("User", "a"), data=None)),  # type: ignore[arg-type]
            "steps: the data of Authenticated are no bytes",
        ),
        (spec(lambda: NoStep(echoes), (), mechanisms=("A",)), "steps: begin.'A'. returned an object without"),
        (spec(lambda: BeginRaises(echoes), (), mechanisms=("A",)), "steps: begin.'A'. raised KeyError"),
        (
            spec(lambda: BeginWaits(echoes), (), mechanisms=("A",)),
            "called: .* no method begin, which is not async",
        ),
    ],
)
def test_what_is_wrong_with_steps_is_found(given: AuthenticatorSpec, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        check_authenticator(given)
