"""What of the settings is refused at the start, and how they are read: from a file, and from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.config.catalog import CORE, Catalog
from leafcuttr.config.declared import section
from leafcuttr.config.load import examine, load_settings
from leafcuttr.errors import ConfigError
from leafcuttr_mqtt.mapping.settings import EGRESS, KEYS, MAPPING, PROPERTIES, read_options, settings
from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.testing import fixed_settings

LETTERS = "the name of a Kafka topic has letters and digits of ASCII, '.', '_' and '-' only"
EGRESS_FIELDS = "{client_id} is none of its fields: allowed are {topic}, {partition}, {key}, {header.<name>}"


def catalog() -> Catalog:
    return CORE.with_plugin(section(Plugin("mqtt", 1, "A part"), tuple(settings()), (), bundled=True))


def errors(text: str, folder: Path) -> list[str]:
    """What `config check` says of a file."""
    file = folder / "server.properties"
    file.write_text(text)
    _, found = examine(file, {}, (), lambda _: catalog())
    return [finding.line for finding in found if finding.level.name == "ERROR"]


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("mqtt.topic.mapping.a/#/b=t", "a/#/b is no topic filter: # is allowed at the end only"),
        ("mqtt.topic.mapping.a=no topic", LETTERS),
        ("mqtt.topic.mapping.a=__mqtt_sessions", "names that begin with __ are those of internal topics"),
        ("mqtt.topic.mapping.a/+=t{2}", "{2} is none of its fields: allowed are {1}"),
        ("mqtt.topic.key={1}", "{1} is none of its fields: allowed are {topic}, {client_id}"),
        ("mqtt.topic.key.a/+={2}", "{2} is none of its fields: allowed are {topic}, {client_id}, {1}"),
        ("mqtt.topic.key.a+={1}", "a+ is no topic filter: + has to be a level of its own"),
        ("mqtt.refused.v3=ignore", "allowed is one of dead-letter, drop, close"),
        ("mqtt.dead.letter.topic=a b", LETTERS),
        ("mqtt.kafka.bootstrap.servers=kafka", "allowed are addresses as kafka-1:9092, separated by commas"),
        ("mqtt.kafka.bootstrap.servers=a:1,b:70000", "allowed are addresses as kafka-1:9092, separated by commas"),
        ("mqtt.topic.egress.a\\ b=t", LETTERS),
        ("mqtt.topic.egress.a=t/+", "it is no MQTT topic: it has a wildcard, + or #"),
        ("mqtt.topic.egress.a=", "it is no MQTT topic: it is empty"),
        ("mqtt.topic.egress.a=$SYS/x", "topics that begin with $ are the broker's own"),
        ("mqtt.topic.egress.a={client_id}", EGRESS_FIELDS),
        ("mqtt.egress.qos=3", "allowed is a whole number from 0 to 2"),
    ],
)  # fmt: skip
def test_what_the_start_refuses(setting: str, why: str, tmp_path: Path) -> None:
    (line,) = errors(f"{setting}\n", tmp_path)
    assert line.endswith(f"(server.properties:1): {why}")


def test_properties_of_librdkafka_are_passed_on_and_stay_secret() -> None:
    with pytest.raises(ConfigError) as raised:
        load_settings(None, {}, ["mqtt.kafka.property.acks=1"], lambda _: catalog())
    assert "acks is set by the broker itself" in str(raised.value)
    given, _ = load_settings(None, {}, ["mqtt.kafka.property.sasl.password=hunter2"], lambda _: catalog())
    assert given.family(PROPERTIES) == {"sasl.password": "hunter2"}
    assert "hunter2" not in repr(given)


def test_what_is_right_is_not_refused(tmp_path: Path) -> None:
    assert not errors(
        "mqtt.topic.mapping.test/topic/+=from-mqtt\n"
        "mqtt.topic.mapping.#=all-{1}\n"
        "mqtt.topic.key=\n"
        "mqtt.topic.key.test/topic/+={1}-{client_id}\n"
        "mqtt.kafka.bootstrap.servers=a:9092, [::1]:9093\n"
        "mqtt.topic.egress.orders=orders/{key}/{header.unit}/{partition}/{topic}\n",
        tmp_path,
    )


def test_a_mapping_from_the_environment() -> None:
    given, warnings = load_settings(
        None,
        {
            "KAFKA_MQTT_TOPIC_MAPPING_TEST/TOPIC/+": "from-mqtt",
            "KAFKA_MQTT_TOPIC_MAPPING_Site/#": "site",
            "KAFKA_MQTT_TOPIC_KEY_Site/#": "{client_id}",
        },
        ["mqtt.topic.mapping.SITE/+=upper"],
        lambda _: catalog(),
    )
    assert not warnings
    assert given.family(MAPPING) == {"test/topic/+": "from-mqtt", "Site/#": "site", "SITE/+": "upper"}
    assert given.family(KEYS) == {"Site/#": "{client_id}"}
    values = {f"mqtt.topic.mapping.{name}": value for name, value in given.family(MAPPING).items()}
    options = read_options(fixed_settings(settings(), values))
    assert [each.kafka_topic for each in options.rules.destinations("test/topic/temperature")] == [
        "from-mqtt"
    ]


def test_the_defaults() -> None:
    options = read_options(fixed_settings(settings()))
    assert not options.rules
    assert (options.refused_v3, options.dead_letters) == ("dead-letter", "mqtt-dead-letters")
    assert (options.bootstrap, options.client_id, dict(options.properties)) == (None, "mqtt-kafka-proxy", {})
    assert (dict(options.egress), options.egress_qos, options.egress_retain, options.replay) == (
        {},
        1,
        False,
        False,
    )


def test_a_key_without_a_mapping_stops_the_start() -> None:
    with pytest.raises(
        ValueError, match=r"^mqtt.topic.key.b: no mapping has this filter: mqtt.topic.mapping.b"
    ):
        read_options(fixed_settings(settings(), {"mqtt.topic.mapping.a": "t", "mqtt.topic.key.b": "x"}))


def test_ways_down() -> None:
    options = read_options(fixed_settings(settings(), {EGRESS.replace("<kafka topic>", "orders"): "o/{key}"}))
    assert options.egress["orders"].fields == ("key",)
