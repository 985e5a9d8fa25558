"""Clients that are not let in, over the network: what they send ends their connection, and the next one is served."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from leafcuttr.client.sasl.scram import Scram
from leafcuttr.client.settings import ClientSasl
from leafcuttr.errors import ErrorCode
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialUpsertion
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW
from support.token_issuer import Issuer
from support.wire_client import WireClient

SCRAM, OAUTH = "SCRAM-SHA-256", "OAUTHBEARER"
INVALID = b'{"status":"invalid_token"}'
BEFORE = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


class Attacked(NamedTuple):
    broker: LiveBroker
    issuer: Issuer

    def client(self) -> WireClient:
        found = WireClient(self.broker.address)
        found.socket.settimeout(60)
        return found


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("attacked")
    issuer = Issuer(NOW / 1000)
    issuer.add("RS256", "a")
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM},{OAUTH}",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.write(folder / "keys.json"),
        "connection.failed.authentication.delay.ms": "0",
        "delegation.token.secret.key": "sesame",
    }
    with live_broker(folder / "data", settings) as broker:
        kind = ScramMechanism.SCRAM_SHA_256
        upsertion = CredentialUpsertion("alice", kind, new_credential(kind, b"open sesame", 4096))
        broker.run(broker.broker.users.alter, [upsertion], [])
        yield Attacked(broker, issuer)


def closed(client: WireClient) -> bool:
    try:
        return client.socket.recv(1) == b""
    except ConnectionError:
        return True


def is_served(attacked: Attacked) -> bool:
    """Whether one who knows the password comes in."""
    with attacked.client() as client:
        return by_scram(client, "open sesame")[0] == 0 and bool(
            client.ask(MetadataRequest(topics=[]), 12).brokers
        )


def by_scram(client: WireClient, password: str) -> tuple[int, bytes]:
    """How it ends, and the proof."""
    ours = Scram(ClientSasl(mechanism=SCRAM, username="alice", password=password))
    assert client.ask(SaslHandshakeRequest(mechanism=SCRAM), 1).error_code == 0
    challenge = client.ask(SaslAuthenticateRequest(auth_bytes=ours.first()), 2)
    proof = ours.respond(bytes(challenge.auth_bytes)) or b""
    return int(client.ask(SaslAuthenticateRequest(auth_bytes=proof), 2).error_code), proof


@pytest.mark.parametrize("when", ["first", "after the handshake", "in the exchange"])
def test_every_request_before_the_log_in(attacked: Attacked, when: str) -> None:
    """Nothing of them is even read: their bodies are empty."""
    for key, api in APIS.items():
        if key in BEFORE:
            continue
        with attacked.client() as client:
            if when != "first":
                client.ask(SaslHandshakeRequest(mechanism=SCRAM), 1)
            if when == "in the exchange":
                client.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=x"), 2)
            version = api.max_version
            frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
            client.socket.sendall(len(frame).to_bytes(4, "big") + frame)
            assert closed(client), api.name
    assert is_served(attacked)


def test_a_proof_that_is_sent_again(attacked: Attacked) -> None:
    with attacked.client() as client:
        code, proof = by_scram(client, "open sesame")
        assert code == 0
    first = b"n,,n=alice,r=" + proof.partition(b",r=")[2].partition(b",")[0][:32]
    for messages in ([first, proof], [proof], [first, first], [first, first, proof]):
        with attacked.client() as client:
            client.ask(SaslHandshakeRequest(mechanism=SCRAM), 1)
            answers = []
            for message in messages:
                answers.append(client.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code)
                if answers[-1]:
                    break
            assert answers[-1] == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert closed(client)
    assert is_served(attacked)


def test_messages_in_another_order(attacked: Attacked) -> None:
    authenticate, handshake = SaslAuthenticateRequest(auth_bytes=b"x"), SaslHandshakeRequest(mechanism=SCRAM)
    with attacked.client() as client:
        assert client.ask(authenticate, 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert closed(client)
    with attacked.client() as client:
        assert client.ask(handshake, 1).error_code == 0
        assert client.ask(handshake, 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert closed(client)


def test_one_who_asks_for_versions_again_and_again_holds_up_nobody_else(attacked: Attacked) -> None:
    """For how long it may: tests/server/login/test_logins.py."""
    with attacked.client() as client:
        for _ in range(200):
            assert client.ask(ApiVersionsRequest(), 2).error_code == 0
        assert is_served(attacked)


def odd_tokens(issuer: Issuer) -> dict[str, str]:
    """Each is refused."""
    now = NOW // 1000
    good = issuer.token("a")
    body = good.split(".")[1]
    public = issuer.keys["a"][1].as_pem(private=False)

    def by_hand(header: dict[str, Any], key: bytes | None = None) -> str:
        head = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
        signature = b"" if key is None else hmac.digest(key, f"{head}.{body}".encode(), hashlib.sha256)
        return f"{head}.{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"

    return {
        "none": by_hand({"alg": "none"}),
        "nOnE": by_hand({"alg": "nOnE", "kid": "a"}),
        "the public key as a secret": by_hand({"alg": "HS256", "kid": "a"}, public),
        "the set of keys as a secret": by_hand({"alg": "HS256", "kid": "a"}, issuer.key_set().encode()),
        "a path as kid": by_hand({"alg": "RS256", "kid": "../../../../dev/null"}, b""),
        "a list as kid": by_hand({"alg": "RS256", "kid": ["a"]}, b""),
        "its own key": by_hand({"alg": "RS256", "jwk": issuer.public("a"), "jku": "http://127.0.0.1/"}, b"x"),
        "without its signature": good.rpartition(".")[0] + ".",
        "of the past": issuer.token("a", iat=now - 7200, exp=now - 3600),
        "of the future": issuer.token("a", iat=now + 3600, exp=now + 7200),
        "not yet": issuer.token("a", nbf=now + 3600),
        "without an end": issuer.token("a", exp=None),
        "without a name": issuer.token("a", sub=None),
        "an empty name": issuer.token("a", sub="  "),
    }


def test_odd_tokens(attacked: Attacked) -> None:
    for what, token in odd_tokens(attacked.issuer).items():
        with attacked.client() as client:
            assert client.ask(SaslHandshakeRequest(mechanism=OAUTH), 1).error_code == 0
            message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
            answer = client.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
            assert (answer.error_code, bytes(answer.auth_bytes)) == (0, INVALID), what
            client.send(MetadataRequest(topics=[]), 12)
            assert closed(client), what


def test_the_token_that_they_are_made_of_is_good(attacked: Attacked) -> None:
    good = f"n,,\x01auth=Bearer {attacked.issuer.token('a')}\x01\x01".encode()
    with attacked.client() as client:
        client.ask(SaslHandshakeRequest(mechanism=OAUTH), 1)
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=good), 2)
        assert (answer.error_code, bytes(answer.auth_bytes)) == (0, b"")
        assert client.ask(MetadataRequest(topics=[]), 12).brokers


@pytest.mark.parametrize("name", ["a\0b", "a,b", "a=b", "ü" * 300, "User:alice"])
def test_odd_names_are_names(attacked: Attacked, name: str) -> None:
    """Of a token that is right: they mean nothing else."""
    message = f"n,,\x01auth=Bearer {attacked.issuer.token('a', sub=name)}\x01\x01".encode()
    with attacked.client() as client:
        client.ask(SaslHandshakeRequest(mechanism=OAUTH), 1)
        assert client.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code == 0
        created = client.ask(
            CreateDelegationTokenRequest(
                owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
            ),
            3,
        )
        assert (created.error_code, created.principal_type, created.principal_name) == (0, "User", name)


def test_a_flood_of_half_log_ins(attacked: Attacked) -> None:
    """Those that stop in the middle hold nobody else up."""
    clients = [attacked.client() for _ in range(100)]
    try:
        for at, client in enumerate(clients):
            if at % 3:
                client.send(SaslHandshakeRequest(mechanism=SCRAM), 1)
            if at % 3 == 2:
                client.send(SaslAuthenticateRequest(auth_bytes=b"n,,n=nobody,r=x"), 2)
            if not at % 10:
                client.socket.sendall(b"\0\0")
        assert is_served(attacked)
    finally:
        for client in clients:
            client.socket.close()
