"""Settings of log-ins act, at the start and while the broker runs."""

from __future__ import annotations

import logging
import re
import socket
import time
from typing import Any

import pytest
from confluent_kafka import KafkaException

from leafcuttr.errors import ConfigError, ErrorCode, InvalidRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.changing import alter_broker
from support.live_broker import LiveBroker
from support.logs import batch
from support.refused_start import refusal
from support.tls_peer import Certificates
from support.waiting import until
from support.wire_client import WireClient

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
OF_LISTENER = "listener.name.sasl_plaintext."
JAAS = f"{OF_LISTENER}plain.sasl.jaas.config"
GIVEN = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    JAAS: f'{MODULE} required user_alice="secret";',
    "connection.failed.authentication.delay.ms": "0",
}


def connect(broker: LiveBroker) -> WireClient:
    client = WireClient(f"127.0.0.1:{broker.broker.listeners[1].port}")
    client.socket.settimeout(60)
    return client


def log_in(client: WireClient, password: str = "secret", mechanism: str = "PLAIN") -> Any:
    handshake = client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    if handshake.error_code:
        return handshake
    return client.ask(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{password}".encode()), 2)


def code(broker: LiveBroker, password: str = "secret") -> int:
    with connect(broker) as client:
        return int(log_in(client, password).error_code)


@pytest.mark.setting("sasl.enabled.mechanisms", while_running=True)
def test_mechanisms(serve: Any) -> None:
    with serve(GIVEN) as broker:
        assert code(broker) == 0
        alter_broker(broker.address, "1", {f"{OF_LISTENER}sasl.enabled.mechanisms": "SCRAM-SHA-256"})
        with connect(broker) as client:
            answer = log_in(client)
            assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
            assert list(answer.mechanisms) == ["SCRAM-SHA-256"]
    wanted = "sasl.enabled.mechanisms=NTLM: NTLM is not offered; allowed are GSSAPI, OAUTHBEARER, "
    wanted += "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; lc.sasl.mechanisms names those of plugins"
    assert refusal(serve, {**GIVEN, "sasl.enabled.mechanisms": "NTLM"}) == wanted


@pytest.mark.setting("sasl.jaas.config", while_running=True)
def test_users_of_plain(serve: Any) -> None:
    with serve(GIVEN) as broker:
        assert (code(broker), code(broker, "other")) == (0, ErrorCode.SASL_AUTHENTICATION_FAILED)
        # What is no entry would let nobody log in any more; the old one stays.
        with pytest.raises(
            KafkaException, match=r"configuration .*: a quotation mark has no other"
        ) as refused:
            alter_broker(broker.address, "1", {JAAS: f'{MODULE} required user_alice="other'})
        assert "other" not in str(refused.value).replace("has no other", "")
        assert (code(broker), code(broker, "other")) == (0, ErrorCode.SASL_AUTHENTICATION_FAILED)
        alter_broker(broker.address, "1", {JAAS: f'{MODULE} required user_alice="other";'})
        assert (code(broker), code(broker, "other")) == (ErrorCode.SASL_AUTHENTICATION_FAILED, 0)
    line = re.escape(f"{JAAS}=[hidden] (-o): a quotation mark has no other")
    with (
        pytest.raises(ConfigError, match=f"^{line}$"),
        serve({**GIVEN, JAAS: 'M required user_alice="secret'}),
    ):
        pass


@pytest.mark.setting("connections.max.reauth.ms")
def test_the_end_of_a_session(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    """As in Kafka what comes after it has to be a log-in: one who only waits is left alone."""
    metadata = MetadataRequest(topics=[])
    with (
        serve({**GIVEN, "connections.max.reauth.ms": "60000"}) as broker,
        connect(broker) as client,
        connect(broker) as waiting,
        caplog.at_level(logging.INFO),
    ):
        assert log_in(client).session_lifetime_ms == 60_000
        assert log_in(waiting).session_lifetime_ms == 60_000
        assert client.ask(metadata, 12).brokers
        broker.clock.ms += 60_000
        until(lambda: _is_refused(client), "the end of the session")
        assert "its client has not logged in again within connections.max.reauth.ms" in caplog.text
        assert not _is_closed(waiting.socket)
        waiting.socket.settimeout(60)
        assert log_in(waiting).session_lifetime_ms == 60_000
        assert waiting.ask(metadata, 12).brokers


def test_what_is_repeated_ends_with_the_session_too(serve: Any) -> None:
    """Produce requests that are like the one before have a short way through the broker."""
    with serve({**GIVEN, "connections.max.reauth.ms": "60000"}) as broker, connect(broker) as client:
        log_in(client)
        client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        for _ in range(100):
            assert client.produce("t", batch(1)).error_code == 0
        broker.clock.ms += 60_000
        until(lambda: _is_over(client), "the end of the session")
    with serve(GIVEN) as broker, connect(broker) as client:
        log_in(client)
        assert client.produce("t", batch(1)).error_code == 0


def _is_over(client: WireClient) -> bool:
    try:
        client.produce("t", batch(1))
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        ({"connections.max.reauth.ms": "60000"}, 60_000),
        ({f"{OF_LISTENER}connections.max.reauth.ms": "7000"}, 7000),
        ({f"{OF_LISTENER}plain.connections.max.reauth.ms": "5000"}, 5000),
        ({f"{OF_LISTENER}plain.connections.max.reauth.ms": "0"}, 0),
        (
            {
                f"{OF_LISTENER}connections.max.reauth.ms": "7000",
                f"{OF_LISTENER}plain.connections.max.reauth.ms": "5000",
            },
            5000,
        ),
        ({f"{OF_LISTENER}scram-sha-256.connections.max.reauth.ms": "5000"}, 9000),
    ],
)
def test_the_narrowest_end_of_a_session_counts(serve: Any, own: dict[str, str], wanted: int) -> None:
    given = {**GIVEN, "connections.max.reauth.ms": "9000", **own}
    with serve(given) as broker, connect(broker) as client:
        assert log_in(client).session_lifetime_ms == wanted


def _is_refused(client: WireClient) -> bool:
    try:
        client.ask(MetadataRequest(topics=[]), 12)
    except ConnectionError:
        return True
    return False


def _is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.setting("connection.failed.authentication.delay.ms")
def test_what_a_wrong_password_costs(serve: Any) -> None:
    with serve({**GIVEN, "connection.failed.authentication.delay.ms": "700"}) as broker:
        began = time.monotonic()
        assert code(broker, "wrong") == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert time.monotonic() - began >= 0.7


@pytest.mark.setting("sasl.server.max.receive.size")
def test_the_largest_message_before_the_log_in(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    with serve({**GIVEN, "sasl.server.max.receive.size": "1000"}) as broker:
        with connect(broker) as client:
            client.socket.sendall((1001).to_bytes(4, "big"))
            assert client.socket.recv(1) == b""
        assert "1001 bytes are announced before the log-in; at most 1000 are read" in caplog.text
        assert code(broker) == 0


def test_a_file_that_kafka_opts_names(serve: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(f'KafkaServer {{ {MODULE} required user_alice="of the file"; }};')
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1G -Djava.security.auth.login.config={file}")
    given = {name: value for name, value in GIVEN.items() if name != JAAS}
    with serve(given) as broker:
        assert (code(broker), code(broker, "of the file")) == (ErrorCode.SASL_AUTHENTICATION_FAILED, 0)
    monkeypatch.setenv("KAFKA_OPTS", "-Djava.security.auth.login.config=/nowhere")
    assert refusal(serve, given) == "KAFKA_OPTS: /nowhere: No such file or directory"


@pytest.mark.setting("config.providers", while_running=True)
def test_a_client_can_have_nothing_looked_up(serve: Any, tmp_path: Any) -> None:
    """It would read files of the broker. A reference is a text like any other then."""
    kind = "config.providers.f.class"
    (tmp_path / "secrets").write_text("x=7")
    with serve(GIVEN) as broker, connect(broker) as client:
        assert log_in(client).error_code == 0
        tried: list[dict[str, str | None]] = [
            {"config.providers": "f"},
            {"config.providers": "f", kind: "FileConfigProvider"},
        ]
        for names in tried:
            with pytest.raises(Exception, match="it acts at the start only"):
                alter_broker(broker.address, "1", names)
        with pytest.raises(InvalidRequest, match="it acts at the start only"):
            broker.call(broker.broker.settings.replace_dynamic, {"config.providers": "f"})
        reference = f"${{f:{tmp_path}/secrets:x}}"
        with pytest.raises(Exception, match="Not a number of type LONG"):
            alter_broker(broker.address, "1", {"log.retention.ms": reference})
    given = {**GIVEN, "config.providers": "f", JAAS: GIVEN[JAAS]}
    with serve(given) as broker:
        assert broker.broker.settings.list("config.providers") == ("f",)


@pytest.mark.parametrize(
    ("host", "protocol", "warns"),
    [
        ("0.0.0.0", "SASL_PLAINTEXT", True),
        ("127.0.0.1", "SASL_PLAINTEXT", False),
        ("0.0.0.0", "SASL_SSL", False),
    ],
)
def test_passwords_that_others_could_read_have_a_warning(
    serve: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture, host: str, protocol: str, warns: bool
) -> None:
    settings = {
        "listeners": f"IN://{host}:0",
        "advertised.listeners": "IN://127.0.0.1:9092",
        "listener.security.protocol.map": f"IN:{protocol}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.in.plain.sasl.jaas.config": f'{MODULE} required user_alice="secret";',
        "ssl.keystore.location": Certificates(tmp_path).issue("127.0.0.1").file,
    }
    with serve(settings):
        pass
    line = (
        "listener IN takes passwords by PLAIN without TLS: all who see the network can read them (SASL_SSL)"
    )
    assert (line in caplog.messages) is warns
