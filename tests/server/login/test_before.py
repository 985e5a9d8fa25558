"""What is answered before a client has logged in, and what ends the connection."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.client.sasl.scram import Scram
from leafcuttr.client.settings import ClientSasl
from leafcuttr.errors import ErrorCode
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.live_broker import LiveBroker, live_broker
from support.waiting import until
from support.wire_client import WireClient

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    "connection.failed.authentication.delay.ms": "0",
}
GOOD, BAD = b"\0alice\0secret", b"\0alice\0wrong"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path, SETTINGS) as found:
        yield found


@pytest.fixture
def client(broker: LiveBroker) -> Iterator[WireClient]:
    with WireClient(broker.address) as found:
        found.socket.settimeout(60)
        yield found


def closed(client: WireClient) -> bool:
    try:
        return client.socket.recv(1) == b""
    except ConnectionError:
        return True


def plain(client: WireClient, data: bytes, version: int = 2) -> Any:
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    return client.ask(SaslAuthenticateRequest(auth_bytes=data), version)


@pytest.mark.parametrize("version", range(3))
def test_a_log_in(client: WireClient, version: int) -> None:
    assert client.ask(ApiVersionsRequest(), 2).error_code == 0
    handshake = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (handshake.error_code, list(handshake.mechanisms)) == (0, ["PLAIN", "SCRAM-SHA-256"])
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=GOOD), version)
    assert (answer.error_code, answer.error_message, answer.session_lifetime_ms) == (0, None, 0)
    assert client.ask(MetadataRequest(topics=[]), 12).brokers


def test_bare_messages(client: WireClient) -> None:
    """After version 0 of SaslHandshake they have no header (KIP-43)."""
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    client.socket.sendall(len(GOOD).to_bytes(4, "big") + GOOD)
    assert client.socket.recv(4) == bytes(4), "an empty message"
    assert client.ask(MetadataRequest(topics=[]), 12).brokers


def test_a_bare_message_that_is_refused(client: WireClient) -> None:
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    client.socket.sendall(len(BAD).to_bytes(4, "big") + BAD)
    assert closed(client)


def test_a_refusal_is_answered_and_then_the_connection_ends(
    client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = plain(client, BAD)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "Authentication failed: Invalid username or password"
        assert closed(client)
    (line,) = [each.getMessage() for each in caplog.records]
    assert line.endswith("on SASL_PLAINTEXT: Authentication failed: Invalid username or password")
    assert "wrong" not in line


def test_a_mechanism_that_is_not_enabled(client: WireClient) -> None:
    answer = client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert list(answer.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]
    assert closed(client)


def test_a_request_before_the_log_in_ends_it(client: WireClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        client.send(MetadataRequest(topics=[]), 12)
        assert closed(client)
        until(lambda: "a request of kind Metadata came before the log-in" in caplog.text, "the line")


def test_between_handshake_and_the_end_of_the_log_in_too(client: WireClient) -> None:
    client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    assert client.ask(SaslAuthenticateRequest(auth_bytes=b"n,,n=a,r=x"), 2).error_code == 0
    client.send(MetadataRequest(topics=[]), 12)
    assert closed(client)


def test_a_newer_client_learns_the_versions(client: WireClient) -> None:
    """KIP-511"""
    client.socket.sendall(bytes.fromhex("0000000b 0012 7fff 00000007 ffff 00"))
    size = int.from_bytes(client.socket.recv(4), "big")
    answer = b""
    while len(answer) < size:
        answer += client.socket.recv(size - len(answer))
    assert (answer[:4], answer[4:6]) == (bytes((0, 0, 0, 7)), bytes((0, 35)))
    assert plain(client, GOOD).error_code == 0


@pytest.mark.parametrize(
    "sent",
    [
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\0\x08\0\x01",
        b"\0\0\0\x03abc",
        b"\0\0\0\x0a\0\x11\0\x01\0\0\0\x01\0\x50",
        b"\0\0\0\x0c\0\x11\0\x01\0\0\0\x01\xff\xff\x7f\xff",
        b"\0\0\0\x08\x7f\xff\0\0\0\0\0\x01",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_hostile_bytes_end_the_connection(broker: LiveBroker, client: WireClient, sent: bytes) -> None:
    client.socket.sendall(sent)
    client.socket.shutdown(socket.SHUT_WR)
    assert closed(client)
    with WireClient(broker.address) as other:
        assert plain(other, GOOD).error_code == 0


def test_what_comes_behind_the_log_in_at_once(broker: LiveBroker, client: WireClient) -> None:
    """Also more than the buffer of a connection holds at first."""
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    login, metadata = SaslAuthenticateRequest(auth_bytes=GOOD), MetadataRequest(topics=[])
    client.send(login, 2)
    many = 300
    for _ in range(many):
        client.send(metadata, 12)
    assert client.take(login, 2).error_code == 0
    for _ in range(many):
        assert client.take(metadata, 12).brokers


def test_on_a_listener_without_it(broker: LiveBroker) -> None:
    port = broker.broker.listeners[1].port
    with WireClient(f"127.0.0.1:{port}") as client:
        answer = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert (answer.error_code, list(answer.mechanisms)) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        assert (
            client.ask(SaslAuthenticateRequest(auth_bytes=GOOD), 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
        )
        assert client.ask(MetadataRequest(topics=[]), 12).brokers


def test_a_client_that_is_in_may_log_in_again(client: WireClient) -> None:
    """KIP-368"""
    for _ in range(3):
        assert plain(client, GOOD).error_code == 0
        assert client.ask(MetadataRequest(topics=[]), 12).brokers


def test_a_later_log_in_that_fails_ends_the_connection(client: WireClient) -> None:
    assert plain(client, GOOD).error_code == 0
    assert plain(client, BAD).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert closed(client)


def test_a_message_without_a_handshake_ends_it_too(client: WireClient) -> None:
    assert plain(client, GOOD).error_code == 0
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=GOOD), 2)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert closed(client)


def by_scram(client: WireClient, name: str, password: str) -> int:
    ours = Scram(ClientSasl(mechanism="SCRAM-SHA-256", username=name, password=password))
    assert client.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
    challenge = client.ask(SaslAuthenticateRequest(auth_bytes=ours.first()), 2)
    proof = ours.respond(bytes(challenge.auth_bytes)) or b""
    return int(client.ask(SaslAuthenticateRequest(auth_bytes=proof), 2).error_code)


def test_a_changed_password_ends_the_connections_of_the_old_one(
    broker: LiveBroker, client: WireClient
) -> None:
    """Those that logged in by what the settings say of a user of this name go on."""

    def set_password(password: str) -> None:
        credential = new_credential(ScramMechanism.SCRAM_SHA_256, password.encode(), 4096)
        upsertion = CredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, credential)
        broker.run(broker.broker.users.alter, [upsertion], [])

    set_password("one")
    with WireClient(broker.address) as other:
        other.socket.settimeout(60)
        assert by_scram(client, "alice", "one") == 0
        assert plain(other, GOOD).error_code == 0
        set_password("two")
        assert closed(client)
        assert other.ask(MetadataRequest(topics=[]), 12).brokers
    with WireClient(broker.address) as again:
        assert by_scram(again, "alice", "two") == 0


def test_a_deleted_user_that_waits_is_cut_within_a_second(broker: LiveBroker, client: WireClient) -> None:
    """A long poll would last 30 seconds."""
    credential = new_credential(ScramMechanism.SCRAM_SHA_256, b"one", 4096)
    upsertion = CredentialUpsertion("alice", ScramMechanism.SCRAM_SHA_256, credential)
    broker.run(broker.broker.users.alter, [upsertion], [])
    with WireClient(f"127.0.0.1:{broker.broker.listeners[1].port}") as admin:
        admin.ask(
            MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True), 12
        )
    assert by_scram(client, "alice", "one") == 0
    poll = FetchRequest(
        max_wait_ms=30_000,
        min_bytes=1,
        max_bytes=1000,
        topics=[FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])],
    )
    client.send(poll, 11)
    until(lambda: len(broker.broker.delayed_requests) == 1, "the wait")
    began = time.monotonic()
    deletion = CredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)
    broker.run(broker.broker.users.alter, [], [deletion])
    assert closed(client)
    assert time.monotonic() - began < 5


def test_a_changed_user_of_the_settings_ends_too(broker: LiveBroker, client: WireClient) -> None:
    """And a user of the settings who is as before goes on."""
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    other = JAAS.replace(";", ' user_bob="b";')
    assert plain(client, GOOD).error_code == 0
    broker.call(broker.broker.settings.replace_dynamic, {name: other})
    assert client.ask(MetadataRequest(topics=[]), 12).brokers
    broker.call(broker.broker.settings.replace_dynamic, {name: other.replace("secret", "new")})
    assert closed(client)


def test_nothing_is_handled_behind_a_later_log_in_that_fails(client: WireClient) -> None:
    assert plain(client, GOOD).error_code == 0
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    login, metadata = SaslAuthenticateRequest(auth_bytes=BAD), MetadataRequest(topics=[])
    client.send(login, 2)
    client.send(metadata, 12)
    assert client.take(login, 2).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    with pytest.raises(ConnectionError):
        client.take(metadata, 12)


def test_nor_behind_another_mechanism(client: WireClient) -> None:
    assert plain(client, GOOD).error_code == 0
    handshake, metadata = SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), MetadataRequest(topics=[])
    client.send(handshake, 1)
    client.send(metadata, 12)
    assert client.take(handshake, 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
    with pytest.raises(ConnectionError):
        client.take(metadata, 12)


def test_a_later_log_in_has_the_size_and_the_delay_of_the_first(tmp_path: Path) -> None:
    more = {"sasl.server.max.receive.size": "100", "connection.failed.authentication.delay.ms": "300"}
    with live_broker(tmp_path, {**SETTINGS, **more}) as broker, WireClient(broker.address) as client:
        assert plain(client, GOOD).error_code == 0
        began = time.monotonic()
        answer = plain(client, b"\0alice\0" + b"x" * 100)
        assert time.monotonic() - began >= 0.3
        assert (answer.error_code, answer.error_message) == (
            ErrorCode.SASL_AUTHENTICATION_FAILED,
            "the message has more than 100 bytes (sasl.server.max.receive.size)",
        )
        assert closed(client)
