"""The requests about delegation tokens, with a secret and without, to a real Kafka and to this broker: the same
answers, but for the tokens themselves and the time of day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from leafcuttr.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from leafcuttr.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from leafcuttr.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support import jars
from support.broker_process import running_broker
from support.real_kafka import real_kafka
from support.waiting import free_port, until
from support.wire_client import WireClient

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
]
HOUR, DAY = 3_600_000, 86_400_000
SECRET = "delegation.token.secret.key"
Seen = list[tuple[object, ...]]


def settings_of(port: int) -> dict[str, str]:
    package = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{package} required user_alice="a" user_bob="b";',
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
    }


def client(address: str, name: str) -> WireClient:
    found = WireClient(address)
    if name:
        assert found.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        message = f"\0{name}\0{name[0]}".encode()
        assert found.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code == 0
    return found


def conversation(address: str, open_address: str) -> Seen:
    """What is answered to all of it, without what differs by nature."""
    seen: Seen = []
    with client(address, "alice") as alice, client(address, "bob") as bob, client(open_address, "") as nobody:

        def create(who: WireClient, *renewers: tuple[str, str], version: int = 3, **fields: Any) -> bytes:
            given = {
                "owner_principal_type": None,
                "owner_principal_name": None,
                "renewers": [
                    CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers
                ],
                "max_lifetime_ms": -1,
                **fields,
            }
            found = who.ask(CreateDelegationTokenRequest(**given), version)
            issued = found.issue_timestamp_ms
            seen.append(
                (
                    found.error_code,
                    (found.principal_type, found.principal_name),
                    (found.token_requester_principal_type, found.token_requester_principal_name),
                    issued if issued <= 0 else "now",
                    found.expiry_timestamp_ms - issued,
                    found.max_timestamp_ms - issued,
                    (len(found.token_id), len(bytes(found.hmac))),
                )
            )
            return bytes(found.hmac)

        def change(who: WireClient, request: Any, version: int = 2) -> None:
            found = who.ask(request, version)
            ends = found.expiry_timestamp_ms
            seen.append((found.error_code, ends if ends <= 0 else "later"))

        def renew(who: WireClient, secret: bytes, period_ms: int = -1) -> None:
            change(who, RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms))

        def expire(who: WireClient, secret: bytes, period_ms: int = -1) -> None:
            change(who, ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms))

        def describe(
            who: WireClient, *owners: tuple[str, str], everything: bool = False, version: int = 3
        ) -> None:
            named = [
                DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
                for kind, name in owners
            ]
            request = DescribeDelegationTokenRequest(owners=None if everything else named)
            found = who.ask(request, version)
            rows = [
                (
                    (each.principal_type, each.principal_name),
                    (each.token_requester_principal_type, each.token_requester_principal_name),
                    each.max_timestamp - each.issue_timestamp,
                    sorted((one.principal_type, one.principal_name) for one in each.renewers),
                )
                for each in found.tokens
            ]
            seen.append((found.error_code, *sorted(rows, key=str)))

        create(nobody)
        renew(nobody, b"x")
        expire(nobody, b"x")
        describe(nobody, everything=True)
        first = create(alice, ("User", "bob"), max_lifetime_ms=5 * HOUR)
        create(alice, version=1)
        create(alice, version=2, max_lifetime_ms=100 * DAY)
        hers = create(bob, owner_principal_type="User", owner_principal_name="carol")
        create(alice, ("Group", "g"))
        create(alice, owner_principal_type="User", owner_principal_name="")
        until(
            lambda: len(tokens(alice)) == (5 if first else 0), "all tokens"
        )  # a Kafka has them a little later
        describe(alice, everything=True)
        describe(alice)
        describe(alice, ("User", "bob"))
        describe(bob, ("User", "carol"), ("User", "nobody"), version=1)
        renew(alice, first, 2 * HOUR)
        renew(bob, first, 2**62)
        renew(alice, hers)
        renew(alice, b"nothing")
        renew(alice, b"")
        expire(bob, first, HOUR)
        expire(alice, hers, 5)
        expire(alice, b"nothing", 5)
        expire(alice, first)
        until(lambda: len(tokens(alice)) == (4 if first else 0), "the end of one")
        renew(alice, first)
        expire(alice, first)
        describe(alice, ("User", "bob"))
    return seen


def tokens(who: WireClient) -> list[Any]:
    return list(who.ask(DescribeDelegationTokenRequest(owners=None), 3).tokens)


@pytest.fixture
def of_kafka(tmp_path: Path) -> Callable[[dict[str, str]], Seen]:
    def run(more: dict[str, str]) -> Seen:
        port = free_port()
        lines = [
            "listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},"
            f"SASL_PLAINTEXT://127.0.0.1:{port}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL_PLAINTEXT://127.0.0.1:{port}",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        ]
        given = {**settings_of(port), **more}
        del given["listeners"]
        with real_kafka(
            tmp_path / "kafka", *lines, *(f"{name}={value}" for name, value in given.items())
        ) as kafka:
            return conversation(f"127.0.0.1:{port}", str(kafka))

    return run


@pytest.fixture
def of_ours(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], Seen]]:
    def run(more: dict[str, str]) -> Seen:
        port, open_port = free_port(), free_port()
        given = settings_of(port)
        given["listeners"] += f",PLAINTEXT://127.0.0.1:{open_port}"
        with running_broker(tmp_path / "ours", {**given, **more}):
            return conversation(f"127.0.0.1:{port}", f"127.0.0.1:{open_port}")

    yield run


@pytest.mark.parametrize("more", [{SECRET: "sesame"}, {}], ids=["with a secret", "without"])
def test_the_same_answers(
    of_kafka: Callable[[dict[str, str]], Seen],
    of_ours: Callable[[dict[str, str]], Seen],
    more: dict[str, str],
) -> None:
    assert of_ours(more) == of_kafka(more)
