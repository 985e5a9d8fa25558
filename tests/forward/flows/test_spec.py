"""Rules and names of a flow."""

from __future__ import annotations

from leafcuttr_forward.flows.spec import FlowSpec, TopicRule


def test_rules() -> None:
    assert TopicRule(source="a.b").fits("a.b")
    assert not TopicRule(source="a.b").fits("axb")
    pattern = TopicRule(source="a.b", is_pattern=True, exclude=["a-b", "c.*"], target="x.{topic}")
    assert pattern.fits("axb")
    assert not pattern.fits("a-b")
    assert not pattern.fits("axbc")
    assert pattern.target_of("axb") == "x.axb"
    assert TopicRule(source="a").target_of("a") == "a"


def test_the_first_rule_that_fits_counts() -> None:
    first, second = TopicRule(source="a", target="b"), TopicRule(source=".*", is_pattern=True)
    spec = FlowSpec(name="f", rules=[first, second])
    assert spec.rule_of("a") is first
    assert spec.rule_of("c") is second
    assert FlowSpec(name="f", rules=[first]).rule_of("c") is None


def test_names() -> None:
    spec = FlowSpec(name="f", rules=[])
    assert (spec.group, spec.transactional_id, spec.claim) == (
        "leafcuttr-f",
        "leafcuttr-f",
        "leafcuttr-f-owner",
    )
