"""The committed page on compatibility is what the code's tables say, and each of its examples does what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_registry.compatibility_page import page
from leafcuttr_registry.formats import formats
from leafcuttr_sdk.schemas import SchemaFormat, SchemaRule

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "compatibility.md"
RULES = [(format, rule) for format in formats() for rule in format.rules]


def test_the_committed_page_is_the_code_s() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "see the docstring of leafcuttr_registry.compatibility_page"
    )


def test_every_rule_is_on_it() -> None:
    text = page()
    assert len(RULES) > 150
    assert all(f"| `{rule.type}` |" in text for _, rule in RULES)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "format, rule", RULES, ids=[f"{format.name}-{rule.type}-{at}" for at, (format, rule) in enumerate(RULES)]
)
def test_its_example(format: SchemaFormat, rule: SchemaRule) -> None:
    old, new = format.parse(rule.old, {}), format.parse(rule.new, {})
    found = {each.type for each in format.differences(new, old)}
    assert (rule.type in found) if rule.breaks else not found
