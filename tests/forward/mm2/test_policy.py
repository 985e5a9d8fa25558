"""The names of topics at the target. `test_java` compares them with MirrorMaker's own policies."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leafcuttr_forward.mm2.policy import ReplicationPolicy

NAMES = st.lists(
    st.sampled_from(["edge", "hub", "orders", "heartbeats", "x", "mm2", "checkpoints", "internal"]),
    max_size=5,
)
POLICIES = [
    ReplicationPolicy("edge"),
    ReplicationPolicy("edge", separator="_", internal_separator="_"),
    ReplicationPolicy("edge", separator="--"),
    ReplicationPolicy("edge", identity=True),
]


def test_names_by_default() -> None:
    policy = ReplicationPolicy("edge")
    assert policy.remote("orders") == "edge.orders"
    assert policy.source_of("edge.orders") == "edge"
    assert policy.upstream("far.edge.orders") == "edge.orders"
    assert policy.original("far.edge.orders") == "orders"
    assert policy.source_of("orders") is None and policy.upstream("orders") is None
    assert policy.source_of("orders.") is None
    assert policy.checkpoints_topic() == "edge.checkpoints.internal"
    assert policy.offset_syncs_topic("hub") == "mm2-offset-syncs.hub.internal"


def test_names_with_another_separator() -> None:
    policy = ReplicationPolicy("edge", separator="_", internal_separator="_")
    assert policy.remote("orders") == "edge_orders"
    assert policy.checkpoints_topic() == "edge_checkpoints_internal"
    assert policy.offset_syncs_topic("hub") == "mm2-offset-syncs_hub_internal"
    assert policy.is_internal("edge_checkpoints_internal")


def test_names_of_identity() -> None:
    policy = ReplicationPolicy("edge", identity=True)
    assert policy.remote("orders") == "orders"
    assert policy.remote("heartbeats") == "edge.heartbeats"
    assert policy.source_of("orders") == "edge" and policy.upstream("orders") == "orders"
    assert policy.original("far.edge.heartbeats") == "heartbeats"
    assert policy.is_cycle("hub.heartbeats", "hub") and not policy.is_cycle("hub.orders", "hub")


@pytest.mark.parametrize("policy", POLICIES, ids=["default", "_", "--", "identity"])
@pytest.mark.parametrize("joint", [".", "_", "--", ".."])
@given(parts=NAMES)
@example(parts=["hub", "", ""])
@example(parts=["", "hub", "orders"])
def test_the_expressions_say_what_the_functions_say(
    policy: ReplicationPolicy, joint: str, parts: list[str]
) -> None:
    topic = joint.join(parts)
    for patterns, said in (
        (policy.cycle_patterns("hub"), policy.is_cycle(topic, "hub")),
        (policy.internal_patterns(), policy.is_internal(topic)),
        ((policy.heartbeats_pattern(),), policy.is_heartbeats(topic)),
    ):
        assert any(re.fullmatch(pattern, topic) for pattern in patterns) == said, (topic, patterns)
