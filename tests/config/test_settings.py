"""Values in layers: who wins, where it came from, who is told."""

import pytest

from leafcuttr.config.catalog import BROKER, CORE
from leafcuttr.config.settings import Given, Settings, Source, Synonym
from leafcuttr.errors import ConfigError, InvalidRequest


def test_accessors_by_type() -> None:
    settings = Settings({"log.retention.ms": "5", "ssl.keystore.location": "/x"})
    assert settings.int("num.partitions") == 1
    assert settings.int("log.retention.ms") == 5
    assert settings.float("log.cleaner.min.cleanable.ratio") == 0.5
    assert settings.bool("auto.create.topics.enable") is True
    assert settings.text("compression.type") == "producer"
    assert settings.optional_text("broker.rack") is None
    assert settings.optional_text("ssl.keystore.location") == "/x"
    assert settings.list("log.cleanup.policy") == ("delete",)


@pytest.mark.parametrize("accessor", ["int", "float", "bool", "text", "list"])
def test_the_wrong_accessor_is_a_mistake_of_ours(accessor: str) -> None:
    name = "auto.create.topics.enable" if accessor != "bool" else "num.partitions"
    with pytest.raises(TypeError, match=name):
        getattr(Settings(), accessor)(name)
    with pytest.raises(KeyError):
        getattr(Settings(), accessor)("no.such.setting")


def test_a_bad_value_names_its_source() -> None:
    with pytest.raises(ConfigError, match=r"^num\.partitions=0 \(KAFKA_NUM_PARTITIONS\): .*at least 1$"):
        Settings({"num.partitions": Given("0", "KAFKA_NUM_PARTITIONS")})


def test_this_broker_over_all_brokers_over_the_start_over_the_default() -> None:
    settings = Settings({"message.max.bytes": "1"})
    settings.replace_dynamic({"message.max.bytes": "2"}, cluster=True)
    assert settings.int("message.max.bytes") == 2
    assert settings.source("message.max.bytes") is Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    settings.replace_dynamic({"message.max.bytes": "3"})
    assert settings.int("message.max.bytes") == 3
    assert settings.synonyms(["message.max.bytes"]) == (
        Synonym("message.max.bytes", "3", Source.DYNAMIC_BROKER_CONFIG),
        Synonym("message.max.bytes", "2", Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        Synonym("message.max.bytes", "1", Source.STATIC_BROKER_CONFIG),
        Synonym("message.max.bytes", "1048588", Source.DEFAULT_CONFIG),
    )
    settings.replace_dynamic({})
    settings.replace_dynamic({}, cluster=True)
    assert settings.int("message.max.bytes") == 1
    assert settings.source("message.max.bytes") is Source.STATIC_BROKER_CONFIG
    assert settings.source("num.partitions") is Source.DEFAULT_CONFIG


def test_synonyms_begin_with_the_first_name() -> None:
    settings = Settings({"log.retention.hours": "5"})
    names = ["log.retention.ms", "log.retention.minutes", "log.retention.hours"]
    assert settings.synonyms(names) == ()
    settings.replace_dynamic({"log.retention.ms": "7"})
    assert settings.synonyms(names) == (
        Synonym("log.retention.ms", "7", Source.DYNAMIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "5", Source.STATIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "168", Source.DEFAULT_CONFIG),
    )


@pytest.mark.parametrize(
    ("given", "retention"),
    [
        ({}, 7 * 24 * 3_600_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-5"}, -1),
    ],
)
def test_retention_comes_in_three_units(given: dict[str, str], retention: int) -> None:
    settings = Settings(given)
    assert settings.resolve("log.retention.ms") == retention
    assert settings.topic_default("retention.ms") == retention


def test_rolling_and_flushing() -> None:
    settings = Settings(
        {"log.roll.hours": "2", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": "9"}
    )
    assert settings.topic_default("segment.ms") == 7_200_000
    assert settings.topic_default("segment.jitter.ms") == 3_600_000
    assert settings.topic_default("flush.ms") == 9
    assert settings.topic_default("flush.messages") == 2**63 - 1


def test_callbacks_are_told_what_changed() -> None:
    settings = Settings()
    told: list[frozenset[str]] = []
    settings.on_change(told.append)
    settings.replace_dynamic({"num.io.threads": "8"})
    assert told == []
    settings.replace_dynamic({"message.max.bytes": "5"})
    settings.replace_dynamic({"log.retention.ms": "5", "max.connections": "3"}, cluster=True)
    settings.replace_dynamic({}, cluster=True)
    assert told == [
        {"message.max.bytes"},
        {"log.retention.ms", "max.connections"},
        {"log.retention.ms", "max.connections"},
    ]


def test_defaults_of_topics_keep_their_identity_until_one_changes() -> None:
    settings = Settings()
    before = settings.topic_defaults
    settings.replace_dynamic({"max.connections": "5"})
    assert settings.topic_defaults is before
    settings.replace_dynamic({"log.retention.ms": "5"})
    assert settings.topic_defaults is not before
    assert settings.topic_default("retention.ms") == 5


def test_a_bad_change_changes_nothing() -> None:
    settings = Settings()
    with pytest.raises(InvalidRequest, match="Value must be at least 1048576"):
        settings.replace_dynamic({"message.max.bytes": "5", "log.segment.bytes": "1"})
    assert settings.int("message.max.bytes") == 1048588


def test_a_secret_has_no_text() -> None:
    settings = Settings({"ssl.key.password": "hunter2"})
    (synonym,) = settings.synonyms(["ssl.key.password"])
    assert synonym.value is None


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.a.max.connections", "max.connections"),
        ("listener.name.a.connections.max.reauth.ms", "connections.max.reauth.ms"),
        ("listener.name.a.sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.expected.issuer"),
        ("listener.name.a.oauthbearer.sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.expected.issuer"),
        ("listener.name.a.scram-sha-512.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.a.gssapi.connections.max.reauth.ms", "connections.max.reauth.ms"),
        ("listener.name.a.plain.num.partitions", None),
        ("listener.name.a.plain.max.connections", None),
        ("listener.name.a.num.partitions", None),
        ("listener.name.a.sasl.jaas.config", None),
        ("listener.name.a.digest-md5.sasl.jaas.config", None),
        ("listener.name.A.plain.sasl.jaas.config", None),
        ("listener.name.a.PLAIN.sasl.jaas.config", None),
    ],
)
def test_what_a_listener_and_a_mechanism_may_have(name: str, base: str | None) -> None:
    """KIP-103, KIP-86"""
    found = CORE.broker_setting(name)
    assert (found and CORE.base_of(name)) == base
    if found is not None and base is not None:
        assert found == BROKER[base]._replace(name=name)


def test_what_is_given_for_one_listener_is_given() -> None:
    assert not Settings({}).is_given("lc.sasl.mechanisms")
    assert Settings({"lc.sasl.mechanisms": "X"}).is_given("lc.sasl.mechanisms")
    assert Settings({"listener.name.inner.lc.sasl.mechanisms": "X"}).is_given("lc.sasl.mechanisms")
