"""Settings for clients of librdkafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.librdkafka.client import client, client_settings, topics
from support.live_broker import live_broker
from support.tls_peer import Certificates
from support.waiting import free_port


def test_names_of_java_are_translated() -> None:
    given = [
        "security.protocol=SASL_SSL",
        'sasl.jaas.config=M required username="a" password="b";',
        "ssl.truststore.type=PEM",
        "ssl.truststore.location=/ca.pem",
        "linger.ms=5",
    ]
    assert client_settings("hub:9092", given, acks="all") == {
        "bootstrap.servers": "hub:9092",
        "log_level": 2,
        "acks": "all",
        "security.protocol": "SASL_SSL",
        "sasl.username": "a",
        "sasl.password": "b",
        "ssl.ca.location": "/ca.pem",
        "linger.ms": "5",
    }
    assert client_settings("hub:9092", ["bootstrap.servers=other:1"])["bootstrap.servers"] == "other:1"


@pytest.mark.parametrize("given", ["linger.ms", "sasl.jaas.config=nonsense"])
def test_what_librdkafka_cannot_take_is_wrong_usage(given: str) -> None:
    with pytest.raises(click.UsageError):
        client_settings("hub:9092", [given])


def test_a_damaged_keystore_of_java_is_wrong_usage(tmp_path: Path) -> None:
    (store := tmp_path / "x.jks").write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    with pytest.raises(click.UsageError, match=r"x\.jks"):
        client_settings("hub:9092", [f"ssl.truststore.location={store}"])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["AdminClient", "Producer", "Consumer"])
def test_a_wrong_password_is_what_the_line_says(tmp_path: Path, kind: str) -> None:
    """And where that was: the address of the properties, which is not that of the option."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    from confluent_kafka.admin import AdminClient

    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "connection.failed.authentication.delay.ms": "0",
    }
    told: list[Any] = []
    with live_broker(tmp_path / "data", settings) as broker:
        given = {
            "bootstrap.servers": broker.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "admin",
            "sasl.password": "wrong",
            "group.id": "g",
            "error_cb": told.append,
        }
        if kind != "Consumer":
            del given["group.id"]
        made = client(
            AdminClient if kind == "AdminClient" else getattr(confluent_kafka, kind),
            {"log_level": 2, **given},
        )
        with pytest.raises(Failure) as failed:
            topics(made, "localhost:9092", 5)
    assert str(failed.value).startswith(f"{broker.address}: ")
    assert str(failed.value).endswith("invalid credentials with SASL mechanism SCRAM-SHA-256")
    assert told, "who asked for errors has them too"


def test_a_listener_with_tls_is_not_one_that_does_not_answer(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    from confluent_kafka.admin import AdminClient

    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": Certificates(tmp_path).issue("127.0.0.1").file,
    }
    with live_broker(tmp_path / "data", settings) as broker, pytest.raises(Failure) as failed:
        topics(client(AdminClient, client_settings(broker.address)), broker.address, 5)
    assert str(failed.value) == (
        f"{broker.address} closed the connection at once: it wants TLS (security.protocol=SSL or SASL_SSL) or is no "
        "Kafka"
    )


def test_a_listener_with_log_in_is_not_one_that_does_not_answer(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    from confluent_kafka.admin import AdminClient

    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    with live_broker(tmp_path / "data", settings) as broker, pytest.raises(Failure) as failed:
        topics(client(AdminClient, client_settings(broker.address)), broker.address, 5)
    assert str(failed.value) == (
        f"{broker.address} closed the connection; its listener may want authentication "
        "(security.protocol=SASL_PLAINTEXT)"
    )


def test_an_address_that_only_librdkafka_understands_is_none_that_answers() -> None:
    pytest.importorskip("confluent_kafka")
    from confluent_kafka.admin import AdminClient

    with pytest.raises(Failure, match=r"^no broker answers at 127\.0\.0\.1:99999$"):
        topics(client(AdminClient, client_settings("127.0.0.1:99999")), "", 0.5)


def test_the_address_of_the_properties_is_the_one_that_does_not_answer() -> None:
    pytest.importorskip("confluent_kafka")
    from confluent_kafka.admin import AdminClient

    nowhere = f"127.0.0.1:{free_port()}"
    made = client(AdminClient, client_settings("localhost:9092", [f"bootstrap.servers={nowhere}"]))
    with pytest.raises(Failure, match=f"^no broker answers at {nowhere}$"):
        topics(made, "localhost:9092", 0.5)
