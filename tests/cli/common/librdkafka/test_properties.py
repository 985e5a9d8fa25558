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
