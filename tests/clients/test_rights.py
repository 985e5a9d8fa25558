"""Clients that others wrote have the rights of whom they log in as, and no others, however they do so: each writes and
reads in a group what ACLs allow, and is refused the rest. Sessions are short, so that they log in again meanwhile."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import jars, secured_clients
from support.secured_broker import NAME, SecuredBroker, secured_broker
from support.secured_clients import Fresh

SESSION_S = 3
SECURITIES = pytest.mark.parametrize(
    "security", [pytest.param(one, marks=pytest.mark.long) for one in ("MTLS", "PLAIN", "SCRAM-SHA-512")]
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(
        tmp_path_factory.mktemp("rights"),
        offsets_topic_num_partitions="1",
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
        connections_max_reauth_ms=str(SESSION_S * 1000),
        listener_name_mtls_ssl_principal_mapping_rules=f"RULE:.+/{NAME}/",
    ) as broker:
        _allow(broker.addresses["PLAINTEXT"])
        yield broker


def _allow(address: str) -> None:
    """All that the scenario needs, on names that begin so."""
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    wanted = [
        *((ResourceType.TOPIC, "topic", each) for each in ("WRITE", "READ", "CREATE")),
        # Java's console consumer makes the name of its group itself.
        *((ResourceType.GROUP, each, "READ") for each in ("group", "console-consumer")),
    ]
    acls = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.PREFIXED,
            f"User:{NAME}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for kind, name, operation in wanted
    ]
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_acls(acls).values():
        future.result(60)


@SECURITIES
@pytest.mark.client("confluent-kafka")
def test_confluent_kafka(secured: SecuredBroker, fresh: Fresh, security: str) -> None:
    secured_clients.confluent_kafka(secured_clients.librdkafka_settings(secured, security), fresh)


@SECURITIES
@pytest.mark.client("confluent-kafka")
def test_confluent_kafka_without_a_right(secured: SecuredBroker, fresh: Fresh, security: str) -> None:
    from confluent_kafka import KafkaError, Producer

    outcomes: list[Any] = []
    producer = Producer(secured_clients.librdkafka_settings(secured, security))
    producer.produce(fresh("other"), b"x", callback=lambda error, _: outcomes.append(error))
    assert producer.flush(60) == 0
    assert [each.code() for each in outcomes] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize(
    "security", [pytest.param(one, marks=pytest.mark.long) for one in ("PLAIN", "SCRAM-SHA-512")]
)
@pytest.mark.client("confluent-kafka")
def test_confluent_kafka_logs_in_again(secured: SecuredBroker, fresh: Fresh, security: str) -> None:
    """Over three sessions, on the connection that it has: one that was closed would be an error of the client."""
    from confluent_kafka import Producer

    errors: list[str] = []
    settings = {
        **secured_clients.librdkafka_settings(secured, security),
        "error_cb": lambda error: errors.append(str(error)),
    }
    producer, topic = Producer(settings), fresh("topic")
    ends = time.monotonic() + 3 * SESSION_S
    while time.monotonic() < ends:
        producer.produce(topic, b"x")
        assert producer.flush(30) == 0
        time.sleep(0.05)
    assert errors == []


@SECURITIES
@pytest.mark.client("kafka-python")
def test_kafka_python(secured: SecuredBroker, fresh: Fresh, security: str) -> None:
    secured_clients.kafka_python(secured_clients.python_settings(secured, security), fresh)


@SECURITIES
@pytest.mark.client("aiokafka")
def test_aiokafka(secured: SecuredBroker, fresh: Fresh, security: str) -> None:
    secured_clients.aiokafka(secured_clients.python_settings(secured, security), fresh)


@SECURITIES
@pytest.mark.client("kcat")
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)")
def test_kcat(secured: SecuredBroker, fresh: Fresh, security: str) -> None:
    secured_clients.kcat(secured_clients.librdkafka_settings(secured, security), fresh)


@SECURITIES
@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_java(secured: SecuredBroker, fresh: Fresh, tmp_path: Path, security: str) -> None:
    properties = secured.client("MTLS") if security == "MTLS" else secured.client("SASL_SSL", security)
    if security == "MTLS":
        properties["ssl.keystore.location"] = str(_pkcs8(Path(secured.own), tmp_path))
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    secured_clients.java_console("4.3.1", properties["bootstrap.servers"], config, fresh)


def _pkcs8(own: Path, folder: Path) -> Path:
    """Java reads keys of this form only."""
    from cryptography.hazmat.primitives import serialization

    key, begins, chain = own.read_text().partition("-----BEGIN CERTIFICATE-----")
    made = serialization.load_pem_private_key(key.encode(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "own.pem"
    file.write_text(made.decode() + begins + chain)
    return file
