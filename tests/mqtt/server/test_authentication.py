"""Who is let in."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from leafcuttr_mqtt.packets.types import Connect, ReasonCode, Version
from leafcuttr_mqtt.server.authentication import Doorkeeper, NotAuthenticated
from leafcuttr_sdk.authentication import (
    ANONYMOUS,
    Authenticated,
    Credentials,
    NameAndPassword,
    Principal,
    Refused,
)

ALICE = Principal("User", "alice")


class Authentication:
    """`Broker.authentication`, with one authenticator that knows alice."""

    def __init__(self, *ways: str) -> None:
        self.ways = ways
        self.required = "none" not in ways
        self.mechanisms: tuple[str, ...] = ()
        self.asked: list[Credentials] = []

    async def authenticate(self, credentials: Credentials) -> Authenticated | Refused:
        self.asked.append(credentials)
        known = credentials == NameAndPassword("alice", "pw")
        return Authenticated(ALICE) if known else Refused("unknown")

    def begin(self, mechanism: str) -> Any:
        raise AssertionError


class Stream:
    tls = None


def doorkeeper(*ways: str, pair: tuple[str, bytes] | None = None) -> tuple[Doorkeeper, Authentication]:
    class Options:
        user_name = pair and pair[0]
        password = pair and pair[1]

    authentication = Authentication(*ways)
    options: Any = Options()
    return Doorkeeper(options, authentication), authentication


def admit(door: Doorkeeper, name: str | None, password: bytes | None) -> Awaitable[Authenticated]:
    stream: Any = Stream()
    return door.admit(Connect(Version.V5, "c", True, 0, name, password), stream)


async def test_whoever_comes_is_let_in_where_nothing_is_set() -> None:
    door, authentication = doorkeeper("none")
    assert door.open
    assert (await admit(door, None, None)).principal == ANONYMOUS
    assert (await admit(door, "x", b"y")).principal == ANONYMOUS
    assert authentication.asked == []


@pytest.mark.parametrize(
    ("name", "password", "reason"),
    [
        (None, None, ReasonCode.NOT_AUTHORIZED),
        ("device", b"Secret", ReasonCode.BAD_USER_NAME_OR_PASSWORD),
        ("device", None, ReasonCode.BAD_USER_NAME_OR_PASSWORD),
        ("devic", b"secret", ReasonCode.BAD_USER_NAME_OR_PASSWORD),
        ("", b"", ReasonCode.BAD_USER_NAME_OR_PASSWORD),
    ],
)
async def test_the_pair(name: str | None, password: bytes | None, reason: ReasonCode) -> None:
    door, _ = doorkeeper("none", pair=("device", b"secret"))
    assert not door.open
    assert (await admit(door, "device", b"secret")).principal == Principal("User", "device")
    with pytest.raises(NotAuthenticated) as refused:
        await admit(door, name, password)
    assert refused.value.reason is reason


async def test_authenticators_are_asked_after_the_pair() -> None:
    door, authentication = doorkeeper("basic", pair=("device", b"secret"))
    await admit(door, "device", b"secret")
    assert authentication.asked == []
    assert (await admit(door, "alice", b"pw")).principal == ALICE
    with pytest.raises(NotAuthenticated):
        await admit(door, "alice", b"\xff")
    assert authentication.asked[-1] == NameAndPassword("alice", "\N{REPLACEMENT CHARACTER}")


async def test_where_credentials_are_not_needed_wrong_ones_are_refused_all_the_same() -> None:
    door, _ = doorkeeper("none", "basic")
    assert door.open
    assert (await admit(door, None, None)).principal == ANONYMOUS
    with pytest.raises(NotAuthenticated):
        await admit(door, "alice", b"wrong")


async def test_a_method_that_is_not_offered() -> None:
    door, _ = doorkeeper("sasl")
    with pytest.raises(NotAuthenticated) as refused:
        door.begin("SCRAM-SHA-1")
    assert refused.value.reason is ReasonCode.BAD_AUTHENTICATION_METHOD
