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
    with pytest.raises(ValueError, match=r"ssl.truststore.type=JKS: only PEM can be read"):
        for_librdkafka({"ssl.truststore.location": "/x.jks"})
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


def test_stores_of_java_are_refused_with_what_converts_them(tmp_path: Path) -> None:
    file = tmp_path / "store"
    file.write_bytes(b"\xfe\xed\xfe\xed\0\0")
    with pytest.raises(
        ValueError, match=r"ssl\.keystore\.type=JKS: only PEM and PKCS12 can be read: .*keytool -import"
    ):
        for_librdkafka({"ssl.keystore.location": str(file)})


def test_certificates_as_text() -> None:
    java = {
        "ssl.truststore.certificates": "A",
        "ssl.keystore.certificate.chain": "B",
        "ssl.keystore.key": "C",
    }
    assert for_librdkafka(java) == {"ssl.ca.pem": "A", "ssl.certificate.pem": "B", "ssl.key.pem": "C"}
    own = {"ssl.ca.location": "/ca", "sasl.mechanisms": "PLAIN", "sasl.username": "a"}
    assert for_librdkafka(own) == own
