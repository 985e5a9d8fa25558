"""`min.insync.replicas` as tools of others see it: for all brokers, from the first start on, and never removed."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ConfigSource, ResourceType

from support import jars, librdkafka
from support.changing import alter_broker

NAME = "min.insync.replicas"


def test_librdkafka_sees_where_it_comes_from(serve: Any) -> None:
    with serve() as broker:
        librdkafka.create(broker.address, "t")
        client = librdkafka.admin(broker.address)

        def told(kind: ResourceType, name: str) -> tuple[str, ConfigSource, bool]:
            resource = ConfigResource(kind, name)
            entry = client.describe_configs([resource])[resource].result(60)[NAME]
            return entry.value, ConfigSource(entry.source), entry.is_default

        default = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        for kind, name in ((ResourceType.BROKER, "1"), (ResourceType.TOPIC, "t")):
            assert told(kind, name) == ("1", default, False)
        with pytest.raises(KafkaException, match=r"Broker-level min\.insync\.replicas cannot be altered"):
            librdkafka.alter(broker.address, "broker", "1", {NAME: "2"})
        alter_broker(broker.address, "", {NAME: "2"})
        assert told(ResourceType.TOPIC, "t")[:2] == ("2", default)
        librdkafka.alter(broker.address, "topic", "t", {NAME: "3"})
        assert told(ResourceType.TOPIC, "t")[:2] == ("3", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        librdkafka.alter(broker.address, "topic", "t", {NAME: None})
        assert told(ResourceType.TOPIC, "t")[:2] == ("2", default)


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_kafka_configs_changes_it_and_cannot_remove_it(serve: Any) -> None:
    with serve() as broker:

        def configs(*words: str, fails: bool = False) -> str:
            at = ("--bootstrap-server", broker.address, "--entity-type", "brokers")
            command = jars.java("4.3.1", "kafka.admin.ConfigCommand", *at, *words)
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
            assert (done.returncode != 0) == fails, done.stderr[-2000:] + done.stdout[-1000:]
            return done.stdout + done.stderr

        place = f"DYNAMIC_DEFAULT_BROKER_CONFIG:{NAME}"
        said = configs("--describe", "--entity-default")
        assert f"{NAME}=1 sensitive=false synonyms={{{place}=1}}" in said
        configs("--alter", "--entity-default", "--add-config", f"{NAME}=2")
        said = configs("--alter", "--entity-default", "--delete-config", NAME, fails=True)
        assert "Cluster-level min.insync.replicas cannot be removed while ELR is enabled." in said
        said = configs("--describe", "--entity-name", "1", "--all")
        assert f"{NAME}=2 sensitive=false synonyms={{{place}=2, DEFAULT_CONFIG:{NAME}=1}}" in said
