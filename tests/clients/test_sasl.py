"""Clients that others wrote log in by each mechanism, over TLS: each writes records and reads them in a group."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import jars, secured_clients
from support.secured_broker import NAME, PASSWORD, SecuredBroker, secured_broker
from support.secured_clients import Fresh

MECHANISMS = pytest.mark.parametrize(
    "mechanism",
    ["SCRAM-SHA-512", *(pytest.param(one, marks=pytest.mark.long) for one in ("PLAIN", "SCRAM-SHA-256"))],
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("sasl"), offsets_topic_num_partitions="1") as broker:
        yield broker


@MECHANISMS
@pytest.mark.client("confluent-kafka")
def test_confluent_kafka(secured: SecuredBroker, fresh: Fresh, mechanism: str) -> None:
    secured_clients.confluent_kafka(secured_clients.librdkafka_settings(secured, mechanism), fresh)


@MECHANISMS
@pytest.mark.client("kafka-python")
def test_kafka_python(secured: SecuredBroker, fresh: Fresh, mechanism: str) -> None:
    secured_clients.kafka_python(secured_clients.python_settings(secured, mechanism), fresh)


@MECHANISMS
@pytest.mark.client("aiokafka")
def test_aiokafka(secured: SecuredBroker, fresh: Fresh, mechanism: str) -> None:
    secured_clients.aiokafka(secured_clients.python_settings(secured, mechanism), fresh)


@MECHANISMS
@pytest.mark.client("kcat")
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)")
def test_kcat(secured: SecuredBroker, fresh: Fresh, mechanism: str) -> None:
    secured_clients.kcat(secured_clients.librdkafka_settings(secured, mechanism), fresh)


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_java(secured: SecuredBroker, fresh: Fresh, tmp_path: Path, mechanism: str, version: str) -> None:
    """`kafka-configs` creates and deletes a user too."""
    config = tmp_path / "client.properties"
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    config.write_text(
        "security.protocol=SASL_SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.trusted}\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required "
        f'username="{NAME}" password="{PASSWORD}";\n'
    )
    secured_clients.java_console(version, secured.addresses["SASL_SSL"], config, fresh)
    user = ("--entity-type", "users", "--entity-name", fresh("user"), "--command-config", str(config))
    for what in (
        ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=5000,password=p]"),
        ("--alter", "--delete-config", "SCRAM-SHA-256"),
    ):
        secured_clients.java_tool(
            version, secured.addresses["SASL_SSL"], "kafka.admin.ConfigCommand", *user, *what
        )
