"""The tables against what a real Apache Kafka 4.3.1 answered to DescribeConfigs (kafka-4.3-configs.tsv)."""

import re
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from leafcuttr.config import topic_settings
from leafcuttr.config.catalog import BROKER, FAMILIES, GROUP, KAFKA_DEFAULTS, TOPIC
from leafcuttr.config.setting import ConfigKey, Effect, render
from leafcuttr.config.settings import Settings

# What Kafka documents as the default of settings that the observed broker was given.
DOCUMENTED: Final = {
    "advertised.listeners": None,
    "broker.id": "-1",
    "listener.security.protocol.map": (
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"
    ),
    "controller.quorum.voters": "",
    "group.initial.rebalance.delay.ms": "3000",
    "log.dirs": None,
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.replication.factor": "3",
}
# Where ours is another, for the reason that the setting's help gives.
OURS: Final = {
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://localhost:9092",
    "log.dir": "./leafcuttr-data",
    "node.id": "1",
    "process.roles": "broker,controller",
}


class Row(NamedTuple):
    scope: str
    name: str
    type: str
    value: str
    change: str
    source: str


ROWS: Final = [
    Row(*line.split("\t"))
    for line in Path(__file__).with_name("kafka-4.3-configs.tsv").read_text().splitlines()
    if not line.startswith("#")
]
TABLES: Final = {"broker": BROKER, "topic": TOPIC, "group": GROUP}
EVERY: Final = [*BROKER.values(), *TOPIC.values(), *GROUP.values()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.scope}:{row.name}")
def test_every_setting_of_kafka(row: Row) -> None:
    setting = TABLES[row.scope][row.name]
    assert setting.type.name == row.type
    expected = None if row.value == "null" else row.value
    if row.scope == "broker":
        expected = {**DOCUMENTED, **OURS}.get(row.name, expected)
    assert render(setting.default) == expected
    assert setting.dynamic == (row.change == "dynamic")


def test_nothing_else_but_our_own() -> None:
    known = {(row.scope, row.name) for row in ROWS}
    more = {(scope, name) for scope, table in TABLES.items() for name in table} - known
    assert more == {
        # Of Kafka's StandardAuthorizer, which DescribeConfigs does not know.
        ("broker", "allow.everyone.if.no.acl.found"),
        ("broker", "super.users"),
        ("broker", "lc.audit.log"),
        ("broker", "lc.authorizer"),
        ("broker", "lc.filters.dead.letter.topic"),
        ("broker", "lc.isolated"),
        ("broker", "lc.listeners.open"),
        ("broker", "lc.log.min.free.bytes"),
        ("broker", "lc.log.sync.always"),
        ("broker", "lc.metrics.auth"),
        ("broker", "lc.metrics.enable"),
        ("broker", "lc.metrics.host"),
        ("broker", "lc.metrics.max.group.partitions"),
        ("broker", "lc.metrics.max.partitions"),
        ("broker", "lc.metrics.port"),
        ("broker", "lc.metrics.ssl.client.auth"),
        ("broker", "lc.metrics.ssl.key.password"),
        ("broker", "lc.metrics.ssl.keystore.location"),
        ("broker", "lc.metrics.ssl.keystore.type"),
        ("broker", "lc.metrics.ssl.truststore.location"),
        ("broker", "lc.plugins.disabled"),
        ("broker", "lc.plugins.path"),
        ("broker", "lc.plugins.required"),
        ("broker", "lc.plugins.strict"),
        ("broker", "lc.records.check"),
        ("broker", "lc.sasl.mechanisms"),
        ("broker", "lc.tls.reload.interval.ms"),
        ("topic", "lc.filters"),
        ("topic", "lc.filters.dead.letter.topic"),
        ("topic", "lc.log.sync.always"),
        ("topic", "lc.records.check"),
        ("topic", "lc.validators"),
    }


@pytest.mark.parametrize("name", sorted({row.name for row in ROWS if row.source == "static"} - set(OURS)))
def test_the_default_of_a_given_setting_is_written_down(name: str) -> None:
    assert name in DOCUMENTED


@pytest.mark.parametrize("setting", EVERY, ids=lambda setting: setting.name)
def test_a_row_says_what_it_is(setting: ConfigKey) -> None:
    assert re.fullmatch(r"[A-Z](?!.*[.?!] [A-Z]).*\.", setting.help), "one sentence"
    assert (setting.effect is Effect.HONOURED) == (not setting.reason)
    if setting.default is not None:
        setting.validate(setting.default)
    if setting.type.name in {"INT", "LONG"} and setting.name.endswith(
        (".ms", ".bytes", ".seconds", ".minutes")
    ):
        assert setting.unit


@pytest.mark.parametrize("setting", [*TOPIC.values(), *GROUP.values()], ids=lambda setting: setting.name)
def test_synonyms_are_broker_settings_of_the_same_type(setting: ConfigKey) -> None:
    for name, factor in setting.synonyms:
        assert BROKER[name].type is setting.type or (factor > 1 and BROKER[name].type.name == "INT")


def test_a_setting_without_a_value_falls_back_on_those_that_cannot_change() -> None:
    for setting in [one for one in BROKER.values() if one.synonyms]:
        assert setting.default is None
        assert not any(BROKER[name].dynamic or BROKER[name].synonyms for name, _ in setting.synonyms)


def test_what_a_topic_overrides_is_declared_with_the_broker() -> None:
    declared = {s.overridden_by.name: s for s in (*BROKER.values(), *FAMILIES.values()) if s.overridden_by}
    own = {setting.name for setting in topic_settings.SETTINGS}
    assert own | declared.keys() == TOPIC.keys()
    assert not own & (declared.keys() | BROKER.keys() | {f"log.{name}" for name in own})
    for name, setting in declared.items():
        assert TOPIC[name].synonyms == (() if setting.is_family else ((setting.name, 1), *setting.synonyms))


@pytest.mark.parametrize("name", TOPIC)
def test_the_default_of_a_topic_is_what_the_broker_gives(name: str) -> None:
    assert Settings().topic_default(name) == TOPIC[name].default


@pytest.mark.parametrize("setting", GROUP.values(), ids=lambda setting: setting.name)
def test_the_default_of_a_group_is_what_the_broker_gives(setting: ConfigKey) -> None:
    if setting.synonyms:
        assert (setting.default, setting.unit) == (
            BROKER[setting.synonyms[0][0]].default,
            BROKER[setting.synonyms[0][0]].unit,
        )


def test_defaults_that_differ_from_kafka_say_so() -> None:
    assert all("Kafka" in BROKER[name].help or name == "process.roles" for name in OURS)
    assert set(KAFKA_DEFAULTS) == set(OURS)
