"""The lists of names, held to the clients that have them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leafcuttr.client.known_names import JAVA, LIBRDKAFKA
from support import jars

_PRINTS = """
class Names {
    public static void main(String[] words) {
        org.apache.kafka.clients.consumer.ConsumerConfig.configNames().forEach(System.out::println);
        org.apache.kafka.clients.producer.ProducerConfig.configNames().forEach(System.out::println);
        org.apache.kafka.clients.admin.AdminClientConfig.configNames().forEach(System.out::println);
    }
}
"""


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_java_has_these_names(tmp_path: Path) -> None:
    program = tmp_path / "Names.java"
    program.write_text(_PRINTS)
    command = ["java", "-cp", f"{jars.home('4.3.1')}/libs/*", str(program)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    assert {*printed.split()} == JAVA


def test_librdkafka_has_these_names() -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    def known(name: str) -> bool:
        try:
            # No text of this kind is a value of anything but free text.
            AdminClient({name: "no such value \x01", "log_level": 0})
        except KafkaException as error:
            return "No such configuration property" not in error.args[0].str()
        except (TypeError, ValueError):
            pass
        return True

    assert not known("bootstrap.server")
    assert [name for name in sorted(LIBRDKAFKA) if not known(name)] == []
    assert not LIBRDKAFKA & JAVA
