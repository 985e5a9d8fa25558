"""No topic setting is left out: each is seen to act by a test, or it is said why it has no effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leafcuttr.config.catalog import TOPIC
from leafcuttr.config.setting import Effect

KAFKAS = Path(__file__).parent.parent / "config" / "kafka-4.3-configs.tsv"
WITHOUT_EFFECT = {
    "follower.replication.throttled.replicas": "no replication",
    "leader.replication.throttled.replicas": "no replication",
    "min.insync.replicas": "no replication",
    "unclean.leader.election.enable": "no replication",
    "local.retention.bytes": "no tiered storage",
    "local.retention.ms": "no tiered storage",
    "remote.log.copy.disable": "no tiered storage",
    "remote.log.delete.on.disable": "no tiered storage",
    "remote.storage.enable": "no tiered storage",
}


def names_tested() -> set[str]:
    """The names in `@pytest.mark.setting(...)` of this folder's tests."""
    found = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        found.update(re.findall(r'^@pytest\.mark\.setting\("([a-z0-9.]+)"\)', path.read_text(), re.MULTILINE))
    return found


def test_each_is_tested_or_has_a_reason() -> None:
    rows = [line.split("\t") for line in KAFKAS.read_text().splitlines() if not line.startswith("#")]
    kafkas = {row[1] for row in rows if row[0] == "topic"}
    assert kafkas <= set(TOPIC)
    assert names_tested() | set(WITHOUT_EFFECT) == set(TOPIC)
    assert not names_tested() & set(WITHOUT_EFFECT)


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_what_has_no_effect_says_so_in_the_reference(name: str) -> None:
    setting = TOPIC[name]
    assert setting.effect is not Effect.HONOURED
    assert setting.reason
