"""No setting is left out: each that is honoured is seen to act by a test, each other one says why it has no effect.

A test registers for a setting by its mark, and is held to it while it runs (see `support.setting_marks`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.config.catalog import BROKER, CORE, GROUP, OF_TOPICS, TOPIC
from leafcuttr.config.setting import ConfigKey, Effect
from leafcuttr.plugins.catalogue import catalog_of
from leafcuttr.plugins.settings_page import bundled
from support.setting_marks import registered

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
REGISTERED = registered()
NOT_HONOURED = [
    setting
    for table in (BROKER, TOPIC, GROUP)
    for setting in table.values()
    if setting.effect is not Effect.HONOURED
]

# The settings that users of Kafka expect to act: all that is topics', and the broker's of these families.
FAMILIES = (
    "log.",
    "group.",
    "offsets.",
    "transaction",
    "producer.id.",
    "max.connection",
    "connections.",
    "socket.",
    "queued.",
    "message.",
    "auto.create.",
    "delete.topic.enable",
    "num.partitions",
)
# What of them has no effect here, because what it is about is not here. A new one has to be honoured or put here.
ABOUT_WHAT_IS_NOT_HERE = {
    "replication": {
        "offsets.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    },
    "tiered storage": {"log.local.retention.bytes", "log.local.retention.ms"},
    "a controller": {"log.dir.failure.timeout.ms"},
    "connections to other brokers": {
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    },
    "threads of a coordinator, and what they share": {
        "group.coordinator.background.threads",
        "group.coordinator.cached.buffer.max.bytes",
    },
    "two-phase commit": {"transaction.two.phase.commit.enable"},
    "another protocol than the classic": {"group.coordinator.rebalance.protocols"},
}
OTHER_GROUPS = ("group.consumer.", "group.share.", "group.streams.")
TOPICS_WITHOUT_EFFECT = {
    "follower.replication.throttled.replicas": "replication",
    "leader.replication.throttled.replicas": "replication",
    "min.insync.replicas": "replica",
    "unclean.leader.election.enable": "replica",
    "local.retention.bytes": "tiered storage",
    "local.retention.ms": "tiered storage",
    "remote.log.copy.disable": "tiered storage",
    "remote.log.delete.on.disable": "tiered storage",
    "remote.storage.enable": "Tiered Storage",
}
# Those of the plugins that come with us. What has one choice only cannot be given another.
BUNDLED = catalog_of(bundled())
OF_PLUGINS = {
    setting.name: setting
    for section in BUNDLED.sections
    for setting in (*section.broker, *section.topic)
    if len(setting.choices) != 1
}


def seen_to_act() -> set[str]:
    """Names with a test; one of a topic setting in all its places is also one of the default that brokers give it."""
    return {each.name for each in REGISTERED} | defaults_changed()


def defaults_changed() -> set[str]:
    """The broker's settings and families that give a topic setting its default, where a test changes it everywhere."""
    names = {each.name for each in REGISTERED if each.everywhere and each.name in TOPIC}
    return {OF_TOPICS[name] if name in OF_TOPICS else TOPIC[name].synonyms[0][0] for name in names}


def test_every_honoured_setting_is_seen_to_act() -> None:
    tables = (BROKER, CORE.families, TOPIC)
    honoured = {s.name for t in tables for s in t.values() if s.effect is Effect.HONOURED}
    assert honoured - seen_to_act() == set(), "no test is marked for these"
    assert OF_PLUGINS.keys() - seen_to_act() == set(), "no test is marked for these of plugins"


def test_every_one_that_changes_while_running_is_changed_by_a_test() -> None:
    by_tests = {each.name for each in REGISTERED if each.while_running} | defaults_changed()
    tables = (BROKER, CORE.families)
    dynamic = {s.name for t in tables for s in t.values() if s.dynamic and s.effect is Effect.HONOURED}
    # Those of topics are no settings of the broker: tests give them to topics that are there.
    of_brokers = {setting.name for section in BUNDLED.sections for setting in section.broker}
    dynamic |= {name for name, setting in OF_PLUGINS.items() if setting.dynamic and name in of_brokers}
    assert dynamic - by_tests == set()


def test_every_topic_setting_is_changed_in_all_its_places() -> None:
    everywhere = {each.name for each in REGISTERED if each.everywhere}
    assert {s.name for s in TOPIC.values() if s.effect is Effect.HONOURED} == everywhere


def test_marks_are_about_settings_that_are_honoured() -> None:
    table = BROKER | TOPIC | OF_PLUGINS
    wrong = [
        each
        for each in REGISTERED
        if each.name not in table or table[each.name].effect is not Effect.HONOURED
    ]
    assert wrong == []


def test_what_is_expected_to_act_does() -> None:
    allowed = set().union(*ABOUT_WHAT_IS_NOT_HERE.values())
    ignored = {
        setting.name
        for setting in BROKER.values()
        if setting.effect is not Effect.HONOURED
        and setting.name.startswith(FAMILIES)
        and not setting.name.startswith(OTHER_GROUPS)
    }
    assert ignored == allowed
    assert {s.name for s in TOPIC.values() if s.effect is not Effect.HONOURED} == set(TOPICS_WITHOUT_EFFECT)


@pytest.mark.parametrize("name", TOPICS_WITHOUT_EFFECT)
def test_a_topic_setting_without_effect_says_why(name: str) -> None:
    assert TOPICS_WITHOUT_EFFECT[name] in TOPIC[name].reason


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """The rows of the reference's tables, by name of the setting."""
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            found.setdefault(line.split("`")[1], []).append(line)
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("setting", NOT_HONOURED, ids=lambda setting: setting.name)
def test_what_is_not_honoured_says_why_in_the_reference(
    rows: dict[str, list[str]], setting: ConfigKey
) -> None:
    reason = setting.reason.rstrip(".")
    assert reason
    assert any(f"{setting.effect.value}: {reason}" in row for row in rows[setting.name])
