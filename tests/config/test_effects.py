"""A setting that is said to be honoured is read somewhere, and one that is said to have no effect is not."""

import re
from pathlib import Path
from typing import Final

import pytest

import leafcuttr
from leafcuttr.config.catalog import BROKER, TOPIC
from leafcuttr.config.setting import ConfigType, Effect

PACKAGE: Final = Path(leafcuttr.__file__).parent
# Read where the settings themselves are made sense of, not by the part that acts on them.
RESOLVED: Final = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "listener.security.protocol.map",
    "log.dir",
    "log.dirs",
    "process.roles",
}
# Read by `net.tls_files`, which puts its prefix before them.
OF_A_PREFIX: Final = {
    "lc.metrics.ssl.client.auth",
    "lc.metrics.ssl.key.password",
    "lc.metrics.ssl.truststore.location",
}


@pytest.fixture(scope="module")
def source() -> str:
    files = [file for file in PACKAGE.rglob("*.py") if "config" not in file.relative_to(PACKAGE).parts]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_broker_settings(source: str) -> None:
    of_topics = {name for setting in TOPIC.values() for name, _ in setting.synonyms}
    honoured = {s.name for s in BROKER.values() if s.effect is Effect.HONOURED}
    honoured -= RESOLVED | OF_A_PREFIX | of_topics
    assert {name for name in honoured if f'"{name}"' not in source} == set()


def test_settings_without_effect(source: str) -> None:
    ignored = [s.name for s in BROKER.values() if s.effect is not Effect.HONOURED]
    assert {
        name for name in ignored if re.search(rf'\.(int|bool|str|list|float)\("{re.escape(name)}"\)', source)
    } == set()


def test_topic_settings(source: str) -> None:
    for setting in TOPIC.values():
        attribute = setting.name.replace(".", "_")
        if setting.name in {"cleanup.policy", "message.timestamp.type"}:
            continue  # read through properties of TopicConfig
        used = re.search(rf"\.{attribute}\b", source) is not None
        assert used == (setting.effect is Effect.HONOURED), setting.name


ACCESSORS: Final = {
    "int": {ConfigType.INT, ConfigType.SHORT, ConfigType.LONG},
    "float": {ConfigType.DOUBLE},
    "bool": {ConfigType.BOOLEAN},
    "text": {ConfigType.STRING, ConfigType.CLASS, ConfigType.PASSWORD},
    "optional_text": {ConfigType.STRING, ConfigType.CLASS, ConfigType.PASSWORD},
    "list": {ConfigType.LIST},
}


def test_every_accessor_fits_its_setting(source: str) -> None:
    uses = re.findall(r'settings\.(optional_text|int|float|bool|text|list)\(\s*"([^"]+)"', source)
    assert uses
    for accessor, name in uses:
        assert BROKER[name].type in ACCESSORS[accessor], f'settings.{accessor}("{name}")'
        if accessor in {"int", "text"}:
            assert BROKER[name].default is not None, f'settings.{accessor}("{name}") may have no value'
