"""Clients that others wrote log in by each mechanism, over TLS: each writes records and reads them in a group."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import jars, secured_clients
from support.broker_process import running_broker
from support.secured_clients import Fresh
from support.tls_peer import Certificates
from support.waiting import free_port

NAME, PASSWORD = "alice", "open, the = door"
MECHANISMS = pytest.mark.parametrize(
    "mechanism",
    ["SCRAM-SHA-512", *(pytest.param(one, marks=pytest.mark.long) for one in ("PLAIN", "SCRAM-SHA-256"))],
)


class Secured(NamedTuple):
    address: str
    trusted: str
    certificates: Certificates


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    folder = tmp_path_factory.mktemp("sasl")
    ours = Certificates(folder)
    address, open_address = (f"127.0.0.1:{free_port()}" for _ in range(2))
    settings = {
        "listeners": f"SASL_SSL://{address},PLAINTEXT://{open_address}",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "offsets.topic.num.partitions": "1",
    }
    with running_broker(folder / "data", settings):
        admin = AdminClient({"bootstrap.servers": open_address})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            upsertion = UserScramCredentialUpsertion(
                NAME, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode()
            )
            for future in admin.alter_user_scram_credentials([upsertion]).values():
                future.result(60)
        yield Secured(address, ours.trusted, ours)


def librdkafka_settings(secured: Secured, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": secured.trusted,
        "sasl.mechanism": mechanism,
        "sasl.username": NAME,
        "sasl.password": PASSWORD,
    }


def python_settings(secured: Secured, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": secured.address,
        "security_protocol": "SASL_SSL",
        "ssl_context": secured.certificates.client(),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": NAME,
        "sasl_plain_password": PASSWORD,
    }


@MECHANISMS
@pytest.mark.client("confluent-kafka")
def test_confluent_kafka(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    secured_clients.confluent_kafka(librdkafka_settings(secured, mechanism), fresh)


@MECHANISMS
@pytest.mark.client("kafka-python")
def test_kafka_python(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    secured_clients.kafka_python(python_settings(secured, mechanism), fresh)


@MECHANISMS
@pytest.mark.client("aiokafka")
def test_aiokafka(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    secured_clients.aiokafka(python_settings(secured, mechanism), fresh)


@MECHANISMS
@pytest.mark.client("kcat")
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)")
def test_kcat(secured: Secured, fresh: Fresh, mechanism: str) -> None:
    secured_clients.kcat(librdkafka_settings(secured, mechanism), fresh)


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_java(secured: Secured, fresh: Fresh, tmp_path: Path, mechanism: str) -> None:
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
    secured_clients.java_console("4.3.1", secured.address, config, fresh)
    user = ("--entity-type", "users", "--entity-name", fresh("user"), "--command-config", str(config))
    for what in (
        ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=5000,password=p]"),
        ("--alter", "--delete-config", "SCRAM-SHA-256"),
    ):
        secured_clients.java_tool("4.3.1", secured.address, "kafka.admin.ConfigCommand", *user, *what)
