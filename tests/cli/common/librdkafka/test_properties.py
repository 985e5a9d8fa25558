"""Settings of Java clients, given to librdkafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.cli.common.librdkafka.properties import for_librdkafka
from leafcuttr.cli.common.pairs import read_properties


def test_settings_of_java_are_translated(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "! a comment\nbuffer.memory=33554432\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '   username="alice" password="a \\\\"secret\\\\"";\n'
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
        "ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\nssl.keystore.type=PEM\n"
        "ssl.keystore.location=/me.pem\nssl.endpoint.identification.algorithm=\nreceive.buffer.bytes=-1\n"
    )
    assert for_librdkafka(read_properties(file)) == {
        "queue.buffering.max.kbytes": "32768",
        "sasl.username": "alice",
        "sasl.password": 'a "secret"',
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/me.pem",
        "ssl.key.location": "/me.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "socket.receive.buffer.bytes": "0",
    }
    with pytest.raises(ValueError, match=r"^ssl.truststore.type=BCFKS: expected one of JKS, PKCS12, PEM$"):
        for_librdkafka({"ssl.truststore.location": "/x", "ssl.truststore.type": "BCFKS"})
    file.write_text("just words\n")
    with pytest.raises(ValueError, match="line 1: expected NAME=VALUE"):
        read_properties(file)


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        (b"-----BEGIN", {"ssl.certificate.location": "FILE", "ssl.key.location": "FILE"}),
        (b"\x30\x82\x01", {"ssl.keystore.location": "FILE", "ssl.keystore.password": "x"}),
        (None, {"ssl.keystore.location": "FILE", "ssl.keystore.password": "x"}),
    ],
)
def test_a_keystore_is_what_it_looks_like(
    tmp_path: Path, begin: bytes | None, expected: dict[str, str]
) -> None:
    """librdkafka's own setting of this name means PKCS#12; Java's means what its type says."""
    file = tmp_path / "store"
    if begin is not None:
        file.write_bytes(begin + b" more")
    found = for_librdkafka({"ssl.keystore.location": str(file), "ssl.keystore.password": "x"})
    assert found == {name: value.replace("FILE", str(file)) for name, value in expected.items()}


STORES = Path(__file__).parents[3] / "net" / "keystores"


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_truststores_of_java_are_given_as_text(kind: str) -> None:
    given = {
        "ssl.truststore.location": str(STORES / f"trust.{kind}"),
        "ssl.truststore.password": "trust-secret",
    }
    found = for_librdkafka(given)
    assert found.keys() == {"ssl.ca.pem"}
    assert found["ssl.ca.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(ValueError, match=r"trust\.\w+: .*ssl\.truststore\.password does not open it"):
        for_librdkafka({**given, "ssl.truststore.password": "x"})


def test_keystores_of_java_are_given_as_text() -> None:
    given = {
        "ssl.keystore.location": str(STORES / "key.jks"),
        "ssl.keystore.password": "store-secret",
        "ssl.key.password": "key-secret",
    }
    found = for_librdkafka(given)
    assert found["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----\n")
    assert found["ssl.certificate.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert found["ssl.certificate.pem"].count("BEGIN") == 1
    assert found.keys() == {"ssl.key.pem", "ssl.certificate.pem", "ssl.key.password"}
    with pytest.raises(ValueError, match=r"key\.jks: ssl\.keystore\.password does not open the private key"):
        for_librdkafka({name: value for name, value in given.items() if name != "ssl.key.password"})


def test_certificates_as_text() -> None:
    java = {
        "ssl.truststore.certificates": "A",
        "ssl.keystore.certificate.chain": "B",
        "ssl.keystore.key": "C",
    }
    assert for_librdkafka(java) == {"ssl.ca.pem": "A", "ssl.certificate.pem": "B", "ssl.key.pem": "C"}
    own = {"ssl.ca.location": "/ca", "sasl.mechanisms": "PLAIN", "sasl.username": "a"}
    assert for_librdkafka(own) == own
