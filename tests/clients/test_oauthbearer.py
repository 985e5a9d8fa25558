"""Clients that others wrote log in with tokens: each writes records and reads them in a group, and brings a new token
before the old one ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import jars, secured_clients
from support.broker_process import running_broker
from support.secured_clients import Fresh
from support.tls_peer import Certificates
from support.token_issuer import Endpoint, Issuer
from support.waiting import free_port

SHORT_S = 8
"""How long a token lasts that has to be replaced."""


class Secured(NamedTuple):
    address: str
    certificates: Certificates
    issuer: Issuer
    endpoint: Endpoint

    def token(self, seconds: int = 3600) -> tuple[str, float]:
        """A new one, and when it ends."""
        ends = int(time.time()) + seconds
        return self.issuer.token("a", exp=ends, aud="kafka"), float(ends)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("oauthbearer")
    ours, issuer, address = Certificates(folder), Issuer(), f"127.0.0.1:{free_port()}"
    issuer.add("RS256", "a")
    with issuer.endpoint() as endpoint:
        endpoint.make_token = lambda: issuer.token("a", aud="kafka")
        settings = {
            "listeners": f"SASL_SSL://{address}",
            "ssl.keystore.location": ours.issue("127.0.0.1").file,
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": endpoint.url,
            "sasl.oauthbearer.expected.audience": "kafka",
            "offsets.topic.num.partitions": "1",
        }
        with running_broker(folder / "data", settings):
            yield Secured(address, ours, issuer, endpoint)


def librdkafka_settings(secured: Secured) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": secured.certificates.trusted,
        "sasl.mechanism": "OAUTHBEARER",
    }


def python_settings(secured: Secured, provider: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": secured.address,
        "security_protocol": "SASL_SSL",
        "ssl_context": secured.certificates.client(),
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": provider,
    }


@pytest.mark.client("confluent-kafka")
def test_confluent_kafka(secured: Secured, fresh: Fresh) -> None:
    settings = {**librdkafka_settings(secured), "oauth_cb": lambda _: secured.token()}
    secured_clients.confluent_kafka(settings, fresh)


@pytest.mark.client("kafka-python")
def test_kafka_python(secured: Secured, fresh: Fresh) -> None:
    from kafka.net.sasl.oauth import AbstractTokenProvider  # type: ignore[import-untyped]

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return secured.token()[0]

    secured_clients.kafka_python(python_settings(secured, Provider()), fresh)


@pytest.mark.client("aiokafka")
def test_aiokafka(secured: Secured, fresh: Fresh) -> None:
    from aiokafka.abc import AbstractTokenProvider  # type: ignore[import-untyped]

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            await asyncio.sleep(0)
            return secured.token()[0]

    secured_clients.aiokafka(python_settings(secured, Provider()), fresh)


@pytest.mark.client("confluent-kafka")
@pytest.mark.long
def test_confluent_kafka_with_an_issuer(secured: Secured, fresh: Fresh) -> None:
    """librdkafka requests the tokens itself, with a client id and a secret."""
    oidc = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "confluent",
        "sasl.oauthbearer.client.secret": "sesame",
        "sasl.oauthbearer.token.endpoint.url": secured.endpoint.url.replace("/keys", "/token"),
    }
    secured_clients.confluent_kafka({**librdkafka_settings(secured), **oidc}, fresh)


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.long
def test_java(secured: Secured, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As librdkafka. Java has to be told to do so, by default it has no token; and that it may request the URL."""
    url = secured.endpoint.url.replace("/keys", "/token")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.certificates.trusted}\n"
        "sasl.mechanism=OAUTHBEARER\n"
        "sasl.login.callback.handler.class="
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={url}\n"
        "sasl.oauthbearer.client.credentials.client.id=java\n"
        "sasl.oauthbearer.client.credentials.client.secret=sesame\n"
        "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;\n"
    )
    secured_clients.java_console("4.3.1", secured.address, config, fresh)


@pytest.mark.client("confluent-kafka")
@pytest.mark.long
def test_confluent_kafka_brings_a_new_token_in_time(secured: Secured, fresh: Fresh) -> None:
    """Over three lifetimes, on the connection that it has: one that was closed would be an error of the client."""
    from confluent_kafka import Producer

    errors: list[str] = []
    topic = fresh("topic")
    producer = Producer(
        {
            **librdkafka_settings(secured),
            "oauth_cb": lambda _: secured.token(SHORT_S),
            "error_cb": lambda error: errors.append(str(error)),
        }
    )
    sent, ends = 0, time.monotonic() + 3 * SHORT_S
    while time.monotonic() < ends:
        producer.produce(topic, b"x")
        assert producer.flush(30) == 0
        sent += 1
        time.sleep(0.05)
    assert errors == []
