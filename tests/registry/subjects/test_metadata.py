"""Metadata and rule sets: read, merged, refused."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_registry.subjects import metadata as m

RULE = {"name": "a", "type": "CEL", "mode": "WRITE"}


def test_metadata_have_one_form() -> None:
    given = {
        "tags": {"b": ["y", "x", "x"], "a": []},
        "properties": {"p": "2", "o": "1"},
        "sensitive": ["p", "o"],
    }
    assert m.read_metadata(given) == {
        "tags": {"a": [], "b": ["x", "y"]},
        "properties": {"o": "1", "p": "2"},
        "sensitive": ["o", "p"],
    }
    assert list(m.read_metadata(given)["properties"]) == ["o", "p"]  # type: ignore[index]
    assert m.read_metadata({}) == {} and m.read_metadata(None) is None


@pytest.mark.parametrize(
    "given",
    [
        5,
        {"tags": 5},
        {"tags": {"a": "b"}},
        {"tags": {"a": [1]}},
        {"properties": {"a": 1}},
        {"sensitive": "a"},
    ],
)
def test_metadata_that_are_none(given: Any) -> None:
    with pytest.raises(ValueError, match="metadata"):
        m.read_metadata(given)


def test_rules_have_defaults() -> None:
    assert m.read_rules(
        {"domainRules": [{"name": "a", "type": "CEL", "params": {"b": "1", "a": "2"}, "tags": ["t", "s"]}]}
    ) == {
        "domainRules": [
            {
                "name": "a",
                "kind": "TRANSFORM",
                "mode": "WRITEREAD",
                "type": "CEL",
                "tags": ["s", "t"],
                "params": {"a": "2", "b": "1"},
                "disabled": False,
            }
        ]
    }


@pytest.mark.parametrize(
    "rule", [5, {"kind": "NONE"}, {"mode": "NONE"}, {"disabled": "no"}, {"name": 5}, {"params": {"a": 1}}]
)
def test_rules_that_are_none(rule: Any) -> None:
    with pytest.raises(ValueError, match="ruleSet"):
        m.read_rules({"domainRules": [rule]})
    with pytest.raises(ValueError, match="ruleSet"):
        m.read_rules({"domainRules": rule if isinstance(rule, int) else {"a": rule}})


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"domainRules": [RULE, RULE]}, "duplicate name 'a'"),
        ({"domainRules": [RULE], "migrationRules": [{**RULE, "mode": "UPGRADE"}]}, "duplicate name 'a'"),
        ({"domainRules": [{"type": "CEL"}]}, "Missing rule name"),
        ({"domainRules": [{"name": "", "type": "CEL"}]}, "Empty rule name"),
        ({"domainRules": [{"name": "a" * 257, "type": "CEL"}]}, "too long"),
        ({"domainRules": [{"name": "1", "type": "CEL"}]}, "initial character"),
        ({"domainRules": [{"name": "a b", "type": "CEL"}]}, "Illegal character"),
        ({"domainRules": [{"name": "a"}]}, "Missing rule type"),
        ({"domainRules": [{**RULE, "mode": "UPGRADE"}]}, "Domain rules can only be"),
        ({"encodingRules": [{**RULE, "mode": "UPGRADE"}]}, "Encoding rules can only be"),
        ({"migrationRules": [RULE]}, "Migration rules can only be"),
        ({"domainRules": [{**RULE, "onFailure": "DLQ,NONE"}]}, "Multiple actions"),
    ],
)
def test_rules_that_are_refused(rules: Any, why: str) -> None:
    with pytest.raises(m.RuleError, match=why):
        m.check_rules(m.read_rules(rules))


def test_rules_that_are_taken() -> None:
    m.check_rules(None)
    m.check_rules(m.read_rules({"domainRules": [{**RULE, "mode": "WRITEREAD", "onFailure": "DLQ,NONE"}]}))


def test_merging() -> None:
    old = {"tags": {"a": ["x"]}, "properties": {"p": "1", "q": "1"}, "sensitive": ["p"]}
    new = {"tags": {"a": ["y"]}, "properties": {"p": "2"}, "sensitive": ["z"]}
    assert m.merge_metadata(old, new) == {
        "tags": {"a": ["y"]},
        "properties": {"p": "2", "q": "1"},
        "sensitive": ["p", "z"],
    }
    assert m.merge_metadata(None, new) is new and m.merge_metadata(old, None) is old
    one, two = {"name": "a", "type": "1"}, {"name": "a", "type": "2"}
    other = {"name": "b", "type": "1"}
    assert m.merge_rules({"domainRules": [one, other], "enableAt": "CLIENT"}, {"domainRules": [two]}) == {
        "domainRules": [other, two],
        "enableAt": "CLIENT",
    }
    assert m.merge_rules(None, {"domainRules": [two]}) == {"domainRules": [two]}
    assert m.without_rules({"domainRules": [one, other], "enableAt": "CLIENT"}, ["a"]) == {
        "domainRules": [other],
        "enableAt": "CLIENT",
    }
    assert m.has_rule_of_type({"encodingRules": [two]}, "2") and not m.has_rule_of_type(None, "2")


def test_the_version_as_a_property() -> None:
    assert m.with_version(None, 3) == {"properties": {m.VERSION: "3"}}
    assert m.without_version({"properties": {m.VERSION: "3"}}) is None
    assert m.without_version({"properties": {m.VERSION: "3", "a": "1"}}) == {"properties": {"a": "1"}}
    assert m.without_version({}) == {}
