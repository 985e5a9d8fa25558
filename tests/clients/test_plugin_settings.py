"""Settings of a plugin through the admin clients that people have: librdkafka's and Kafka's own kafka-configs.sh."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from support import jars, librdkafka
from support.acme import SOURCE
from support.broker_process import running_broker
from support.plugin_folders import install

P = "lc.plugin.acme."
SECRET = "open sesame"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with the plugin in the folder of `lc.plugins.path`, its settings from the environment."""
    folder = tmp_path_factory.mktemp("broker")
    install(folder / "plugins", "acme", SOURCE).rename(folder / "plugins" / "acme.py")
    environ = {
        "KAFKA_LC_PLUGINS_PATH": str(folder / "plugins"),
        "KAFKA_LC_PLUGIN_ACME_WEIGHT": "4",
        "KAFKA_LC_PLUGIN_ACME_SECRET": SECRET,
        "KAFKA_LC_PLUGIN_ACME_ROUTE_York/+": "north",
    }
    with running_broker(folder, environ=environ) as broker:
        yield broker.address
    assert SECRET not in broker.log


@pytest.mark.client("confluent-kafka")
def test_librdkafka_sees_and_changes_them(address: str) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import ConfigResource, ResourceType

    client = librdkafka.admin(address)

    def describe(kind: ResourceType, name: str) -> dict[str, str | None]:
        resource = ConfigResource(kind, name)
        entries = client.describe_configs([resource])[resource].result(60)
        own = {name.removeprefix(P): entry.value for name, entry in entries.items() if name.startswith(P)}
        assert {name for name, value in own.items() if value is None} <= {"secret", "token"}
        return own

    librdkafka.create(address, "t", lc_plugin_acme_limit="7", lc_plugin_acme_token=SECRET)
    librdkafka.alter(address, "topic", "t", {f"{P}colour": "blue", f"{P}map.Key": "5"})
    found = describe(ResourceType.TOPIC, "t")
    assert found == {"limit": "7", "colour": "blue", "map.Key": "5", "labels": "new", "token": None}
    librdkafka.alter(address, "broker", "1", {f"{P}weight": "8"})
    found = describe(ResourceType.BROKER, "1")
    assert (found["weight"], found["maker"], found["route.York/+"]) == ("8", "Acme", "north")
    with pytest.raises(
        KafkaException, match=r"Cannot update these configs dynamically: \[lc\.plugin\.acme\.maker\]"
    ):
        librdkafka.alter(address, "broker", "1", {f"{P}maker": "Other"})
    with pytest.raises(
        KafkaException, match=r"Invalid value \[hidden\] for configuration lc\.plugin\.acme\.token"
    ):
        librdkafka.alter(address, "topic", "t", {f"{P}token": "short"})
    librdkafka.alter(address, "broker", "1", {f"{P}weight": None})
    assert describe(ResourceType.BROKER, "1")["weight"] == "4"


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.client("Kafka's Java tools", version="4.3.1")
def test_kafka_configs_sees_and_changes_them(address: str) -> None:
    def configs(*words: str) -> str:
        command = jars.java("4.3.1", "kafka.admin.ConfigCommand", "--bootstrap-server", address, *words)
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-1000:]
        assert SECRET not in done.stdout + done.stderr
        return done.stdout

    librdkafka.create(address, "j")
    topic, broker = (
        ("--entity-type", "topics", "--entity-name", "j"),
        ("--entity-type", "brokers", "--entity-name", "1"),
    )
    everyone = ("--entity-type", "brokers", "--entity-default")
    configs("--alter", *topic, "--add-config", f"{P}colour=blue,{P}labels=[a,b],{P}token={SECRET}")
    said = configs("--describe", *topic)
    assert f"{P}colour=blue sensitive=false" in said
    assert f"{P}labels=a,b sensitive=false" in said
    assert f"{P}token=null sensitive=true synonyms={{DYNAMIC_TOPIC_CONFIG:{P}token=null}}" in said
    configs("--alter", *topic, "--delete-config", f"{P}colour")
    assert f"{P}colour=red sensitive=false" in configs("--describe", "--all", *topic)
    configs("--alter", *everyone, "--add-config", f"{P}weight=6,{P}towns=[Bath,York]")
    said = configs("--describe", "--all", *broker)
    assert f"{P}weight=6 sensitive=false" in said
    places = f"DYNAMIC_DEFAULT_BROKER_CONFIG:{P}weight=6, STATIC_BROKER_CONFIG:{P}weight=4, DEFAULT_CONFIG:{P}weight=2"
    assert places in said
    assert f"{P}secret=null sensitive=true" in said
