"""Each rule has an example to which it applies, and which breaks or not as the rule says."""

from __future__ import annotations

import pytest

from leafcuttr_registry.protobuf.compare import breaking, differences
from leafcuttr_registry.protobuf.rules import BREAKING, RULES, sentence
from leafcuttr_sdk.schemas import SchemaRule
from registry.protobuf.parsing import parsed


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.type)
def test_an_example(rule: SchemaRule) -> None:
    reader, writer = parsed(rule.new), parsed(rule.old)
    found = {each.type: each for each in differences(reader, writer)}
    assert rule.type in found
    assert bool(breaking(reader, writer)) == rule.breaks
    message = found[rule.type].message
    assert message.startswith(found[rule.type].path)
    assert message.endswith(".")
    assert "\n" not in message


def test_names_are_given_once() -> None:
    names = [rule.type for rule in RULES]
    assert len(names) == len(set(names)) == 28
    assert {rule.type for rule in RULES if rule.breaks} == BREAKING


def test_a_sentence_without_values() -> None:
    assert sentence("PACKAGE_CHANGED", "#/", None, "a") == "#/: The package was none and is a."
