"""Settings for clients of librdkafka."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from leafcuttr.cli.common.librdkafka.client import client_settings


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
