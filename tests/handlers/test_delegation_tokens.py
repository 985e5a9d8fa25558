"""The four requests about delegation tokens: who may, in which order it is checked, and what becomes of a token."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.client.sasl.scram import Scram
from leafcuttr.client.settings import ClientSasl
from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from leafcuttr.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from leafcuttr.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW
from support.waiting import until
from support.wire_client import WireClient

E = ErrorCode
HOUR, DAY = 3_600_000, 86_400_000
JAAS = 'M.PlainLoginModule required user_alice="a" user_bob="b" user_carol="c";'
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": "sesame",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path, SETTINGS) as found:
        yield found


@pytest.fixture
def alice(broker: LiveBroker) -> Iterator[WireClient]:
    with by_plain(broker, "alice") as found:
        yield found


def by_plain(broker: LiveBroker, name: str) -> WireClient:
    client = WireClient(broker.address)
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    message = f"\0{name}\0{name[0]}".encode()
    assert client.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code == 0
    return client


def by_token(
    client: WireClient,
    token_id: str,
    secret: bytes,
    *,
    says_so: bool = True,
    mechanism: str = "SCRAM-SHA-256",
) -> Any:
    """The last answer of a log-in by SCRAM."""
    password = base64.b64encode(secret).decode()
    ours = Scram(ClientSasl(mechanism=mechanism, username=token_id, password=password, is_token=says_so))
    assert client.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=ours.first()), 2)
    if answer.error_code:
        return answer
    proof = ours.respond(bytes(answer.auth_bytes)) or b""
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=proof), 2)
    if not answer.error_code:
        assert ours.respond(bytes(answer.auth_bytes)) is None, "the broker has shown that it knows the token"
    return answer


def create(client: WireClient, *renewers: str, version: int = 3, **fields: Any) -> Any:
    given = [CreatableRenewers(principal_type="User", principal_name=name) for name in renewers]
    request = CreateDelegationTokenRequest(
        **{
            "owner_principal_type": None,
            "owner_principal_name": None,
            "renewers": given,
            "max_lifetime_ms": -1,
            **fields,
        }
    )
    return client.ask(request, version)


def renew(client: WireClient, secret: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = client.ask(RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def expire(client: WireClient, secret: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = client.ask(ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def described(client: WireClient, *owners: str, everything: bool = False) -> list[str]:
    """The ids of the tokens of these owners."""
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    answer = client.ask(DescribeDelegationTokenRequest(owners=None if everything else named), 3)
    assert answer.error_code == 0
    return [each.token_id for each in answer.tokens]


def closed(client: WireClient) -> bool:
    try:
        return client.socket.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_new_token(alice: WireClient, version: int) -> None:
    """Its times are those of the settings; who knows the secret can compute its HMAC, as in Kafka."""
    token = create(alice, "bob", version=version)
    assert (token.error_code, token.principal_type, token.principal_name) == (0, "User", "alice")
    assert (token.issue_timestamp_ms, token.expiry_timestamp_ms) == (NOW, NOW + DAY)
    assert token.max_timestamp_ms == NOW + 7 * DAY
    assert bytes(token.hmac) == hmac.digest(b"sesame", token.token_id.encode(), hashlib.sha512)
    requester = ("User", "alice") if version == 3 else ("", "")
    assert (token.token_requester_principal_type, token.token_requester_principal_name) == requester


def test_what_is_described(alice: WireClient, broker: LiveBroker) -> None:
    token = create(alice, "bob", max_lifetime_ms=HOUR)
    answer = alice.ask(DescribeDelegationTokenRequest(owners=None), 3)
    (found,) = answer.tokens
    assert (found.token_id, bytes(found.hmac)) == (token.token_id, bytes(token.hmac))
    assert (found.principal_name, found.token_requester_principal_name) == ("alice", "alice")
    assert (found.issue_timestamp, found.expiry_timestamp, found.max_timestamp) == (
        NOW,
        NOW + HOUR,
        NOW + HOUR,
    )
    assert [(each.principal_type, each.principal_name) for each in found.renewers] == [("User", "bob")]
    with by_plain(broker, "carol") as carol:
        hers = create(carol)
    assert sorted(described(alice, everything=True)) == sorted((token.token_id, hers.token_id))
    for owners, wanted in (
        (("alice",), [token]),
        (("bob",), [token]),
        (("carol", "nobody"), [hers]),
        (("nobody",), []),
        ((), []),
    ):
        assert described(alice, *owners) == [each.token_id for each in wanted]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_log_in(broker: LiveBroker, alice: WireClient, mechanism: str) -> None:
    """The client is the owner of the token, for as long as that is good; it can make no more of them."""
    token = create(alice)
    with WireClient(broker.address) as client:
        answer = by_token(client, token.token_id, bytes(token.hmac), mechanism=mechanism)
        assert (answer.error_code, answer.session_lifetime_ms) == (0, DAY)
        assert create(client).error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert renew(client, bytes(token.hmac)) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
        assert expire(client, bytes(token.hmac)) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
        refused = client.ask(DescribeDelegationTokenRequest(owners=None), 3)
        assert (refused.error_code, list(refused.tokens)) == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])


@pytest.mark.parametrize("change", ["id", "hmac", "no tokenauth", "expired"])
def test_log_ins_that_are_refused(broker: LiveBroker, alice: WireClient, change: str) -> None:
    token = create(alice)
    token_id, secret = token.token_id, bytes(token.hmac)
    if change == "id":
        token_id = ("y" if token_id[0] == "x" else "x") + token_id[1:]
    if change == "hmac":
        secret = bytes(64)
    if change == "expired":
        broker.clock.ms += DAY + 1
    with WireClient(broker.address) as client:
        answer = by_token(client, token_id, secret, says_so=change != "no tokenauth")
        assert answer.error_code == E.SASL_AUTHENTICATION_FAILED
        assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in answer.error_message


@pytest.mark.parametrize(
    ("period_ms", "wanted"), [(-1, DAY), (0, DAY), (HOUR, HOUR), (2 * DAY, DAY), (2**63 - 1, DAY)]
)
def test_a_renewal(alice: WireClient, broker: LiveBroker, period_ms: int, wanted: int) -> None:
    token = create(alice, "bob")
    broker.clock.ms += HOUR
    with by_plain(broker, "bob") as bob:
        assert renew(bob, bytes(token.hmac), period_ms) == (0, NOW + HOUR + wanted)
    broker.clock.ms = NOW + HOUR
    assert renew(alice, bytes(token.hmac), period_ms) == (0, NOW + HOUR + wanted)


def test_a_renewal_ends_with_the_last_time(alice: WireClient, broker: LiveBroker) -> None:
    token = create(alice, max_lifetime_ms=DAY + HOUR)
    broker.clock.ms += DAY
    assert renew(alice, bytes(token.hmac)) == (0, NOW + DAY + HOUR)


def test_an_earlier_end(alice: WireClient, broker: LiveBroker) -> None:
    secret = bytes(create(alice).hmac)
    assert expire(alice, secret, HOUR) == (0, NOW + HOUR)
    assert expire(alice, secret, 2**63 - 1) == (0, NOW + 7 * DAY), "or a later one"
    assert expire(alice, secret, 0) == (0, NOW)
    broker.clock.ms += 1
    assert renew(alice, secret) == (E.DELEGATION_TOKEN_EXPIRED, 0)
    assert expire(alice, secret, 5) == (E.DELEGATION_TOKEN_EXPIRED, 0)
    assert expire(alice, secret) == (0, NOW + 1), "it can still be revoked"
    assert expire(alice, secret) == (E.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert described(alice, everything=True) == []


def test_whose_token_it_is(alice: WireClient, broker: LiveBroker) -> None:
    secret = bytes(create(alice, "carol").hmac)
    with by_plain(broker, "bob") as bob:
        assert renew(bob, secret) == (E.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
        assert expire(bob, secret) == (E.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
        assert renew(bob, b"nothing") == (E.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_a_token_of_another_owner(alice: WireClient, broker: LiveBroker) -> None:
    """KIP-373"""
    token = create(alice, owner_principal_type="User", owner_principal_name="bob")
    assert (token.principal_name, token.token_requester_principal_name) == ("bob", "alice")
    for name in ("alice", "bob"):
        assert described(alice, name) == [token.token_id]
    assert described(alice, "carol") == []
    assert renew(alice, bytes(token.hmac)) == (E.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    with by_plain(broker, "bob") as bob:
        assert renew(bob, bytes(token.hmac))[0] == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"owner_principal_type": "Group", "owner_principal_name": "bob"},
        {"owner_principal_type": None, "owner_principal_name": "bob"},
        {"renewers": [CreatableRenewers(principal_type="Group", principal_name="g")]},
    ],
)
def test_principals_that_nobody_can_be(alice: WireClient, fields: dict[str, Any]) -> None:
    answer = create(alice, **fields)
    assert answer.error_code == E.INVALID_PRINCIPAL_TYPE
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms) == (-1, -1, -1)
    assert (answer.token_id, bytes(answer.hmac)) == ("", b"")


def test_who_has_not_logged_in(broker: LiveBroker) -> None:
    with WireClient(f"127.0.0.1:{broker.broker.listeners[1].port}") as client:
        assert create(client).error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert renew(client, b"x") == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
        assert expire(client, b"x") == (E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
        answer = client.ask(DescribeDelegationTokenRequest(owners=None), 3)
        assert answer.error_code == E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_secret_there_are_none(tmp_path: Path) -> None:
    given = {name: value for name, value in SETTINGS.items() if name != "delegation.token.secret.key"}
    with live_broker(tmp_path, given) as broker, by_plain(broker, "alice") as alice:
        answer = create(alice)
        assert (answer.error_code, answer.issue_timestamp_ms) == (E.DELEGATION_TOKEN_AUTH_DISABLED, 0)
        assert renew(alice, b"x") == (E.DELEGATION_TOKEN_AUTH_DISABLED, 0)
        assert expire(alice, b"x") == (E.DELEGATION_TOKEN_AUTH_DISABLED, 0)
        described = alice.ask(DescribeDelegationTokenRequest(owners=None), 3)
        assert described.error_code == E.DELEGATION_TOKEN_AUTH_DISABLED
        with WireClient(broker.address) as client:
            assert by_token(client, "id", b"x").error_code == E.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("how", ["revoked", "sooner", "another"])
def test_a_revoked_token_ends_its_connections(broker: LiveBroker, alice: WireClient, how: str) -> None:
    """At once, those of no other; one that ends sooner as well, so that the session does not outlast it."""
    token, other = create(alice), create(alice)
    with WireClient(broker.address) as client:
        assert by_token(client, token.token_id, bytes(token.hmac)).error_code == 0
        ends = {"revoked": (token, -1), "sooner": (token, HOUR), "another": (other, -1)}[how]
        assert expire(alice, bytes(ends[0].hmac), ends[1])[0] == 0
        if how == "another":
            assert renew(alice, bytes(token.hmac))[0] == 0
            assert client.ask(MetadataRequest(topics=[]), 12).brokers
        else:
            assert closed(client)
    assert alice.ask(MetadataRequest(topics=[]), 12).brokers


def test_tokens_outlive_the_broker(tmp_path: Path) -> None:
    """With another secret they are there, and good for nobody."""
    with live_broker(tmp_path, SETTINGS) as broker, by_plain(broker, "alice") as alice:
        token, gone = create(alice, "bob"), create(alice)
        assert renew(alice, bytes(token.hmac), HOUR) == (0, NOW + HOUR)
        assert expire(alice, bytes(gone.hmac))[0] == 0
    with live_broker(tmp_path, SETTINGS) as broker, by_plain(broker, "bob") as bob:
        assert described(bob, everything=True) == [token.token_id]
        with WireClient(broker.address) as client:
            assert by_token(client, token.token_id, bytes(token.hmac)).session_lifetime_ms == HOUR
        assert renew(bob, bytes(token.hmac), 2 * HOUR) == (0, NOW + 2 * HOUR)
    other = {**SETTINGS, "delegation.token.secret.key": "other"}
    with live_broker(tmp_path, other) as broker, WireClient(broker.address) as client:
        assert by_token(client, token.token_id, bytes(token.hmac)).error_code == E.SASL_AUTHENTICATION_FAILED


@pytest.mark.setting("delegation.token.secret.key")
@pytest.mark.setting("delegation.token.expiry.check.interval.ms")
@pytest.mark.setting("delegation.token.expiry.time.ms")
@pytest.mark.setting("delegation.token.max.lifetime.ms")
def test_what_has_expired_is_deleted(tmp_path: Path) -> None:
    more = {
        "delegation.token.expiry.check.interval.ms": "50",
        "delegation.token.expiry.time.ms": "1000",
        "delegation.token.max.lifetime.ms": "3000",
    }
    with live_broker(tmp_path, {**SETTINGS, **more}) as broker, by_plain(broker, "alice") as alice:
        token = create(alice)
        times = token.issue_timestamp_ms, token.expiry_timestamp_ms, token.max_timestamp_ms
        assert times == (NOW, NOW + 1000, NOW + 3000)
        broker.clock.ms += 1000
        assert described(alice, everything=True) == [token.token_id]
        broker.clock.ms += 1
        until(lambda: described(alice, everything=True) == [], "the deletion")
        assert broker.call(broker.broker.metadata.delegation_tokens) == []


def test_what_the_disk_refuses(broker: LiveBroker, alice: WireClient) -> None:
    token = create(alice)
    broker.call(broker.broker.metadata._connection.execute, "PRAGMA query_only = ON")
    refused = create(alice)
    assert (refused.error_code, refused.token_id, bytes(refused.hmac)) == (E.KAFKA_STORAGE_ERROR, "", b"")
    assert renew(alice, bytes(token.hmac)) == (E.KAFKA_STORAGE_ERROR, 0)
    assert expire(alice, bytes(token.hmac)) == (E.KAFKA_STORAGE_ERROR, 0)
    assert described(alice, everything=True) == [token.token_id]
