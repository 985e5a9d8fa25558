"""Clients that others wrote over TLS, with certificates of their own: each writes records and reads them in a group."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import jars, secured_clients
from support.broker_process import running_broker
from support.secured_clients import Fresh
from support.tls_peer import Certificates, Identity
from support.waiting import free_port


class Secured(NamedTuple):
    address: str
    certificates: Certificates
    own: Identity


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A listener that requires certificates of its clients."""
    folder = tmp_path_factory.mktemp("tls")
    ours = Certificates(folder)
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"SSL://{address},PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
        "ssl.client.auth": "required",
        "offsets.topic.num.partitions": "1",
    }
    with running_broker(folder / "data", settings):
        yield Secured(address, ours, ours.issue("device.test", common_name="device"))


def librdkafka_settings(secured: Secured) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.address,
        "security.protocol": "SSL",
        "ssl.ca.location": secured.certificates.trusted,
        "ssl.certificate.location": secured.own.file,
        "ssl.key.location": secured.own.file,
    }


def python_settings(secured: Secured) -> dict[str, Any]:
    return {
        "bootstrap_servers": secured.address,
        "security_protocol": "SSL",
        "ssl_context": secured.certificates.client(secured.own),
    }


@pytest.mark.client("confluent-kafka")
def test_confluent_kafka(secured: Secured, fresh: Fresh) -> None:
    secured_clients.confluent_kafka(librdkafka_settings(secured), fresh)


@pytest.mark.client("kafka-python")
def test_kafka_python(secured: Secured, fresh: Fresh) -> None:
    secured_clients.kafka_python(python_settings(secured), fresh)


@pytest.mark.client("aiokafka")
def test_aiokafka(secured: Secured, fresh: Fresh) -> None:
    secured_clients.aiokafka(python_settings(secured), fresh)


@pytest.mark.client("kcat")
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)")
def test_kcat(secured: Secured, fresh: Fresh) -> None:
    secured_clients.kcat(librdkafka_settings(secured), fresh)


@pytest.mark.long
@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.parametrize("version", ["4.3.1", pytest.param("3.9.1", marks=pytest.mark.long)])
def test_java(secured: Secured, fresh: Fresh, tmp_path: Path, version: str) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.certificates.trusted}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={_pkcs8(secured, tmp_path)}\n"
    )
    secured_clients.java_console(version, secured.address, config, fresh)


def _pkcs8(secured: Secured, folder: Path) -> Path:
    """Java reads keys of this form only."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(secured.own.key.encode(), None)
    file = folder / "own.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + secured.own.chain.encode()
    )
    return file
