"""A relay's plan as a flow: which source is begun with, what names the position, and where kaf-relay is followed."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_forward.flows.spec import Guarantee, Start
from leafcuttr_forward.relay.files import read_files
from leafcuttr_forward.relay.plan import RelayPlan
from leafcuttr_forward.relay.planning import make_plan
from leafcuttr_forward.relay.spec import RelayOptions, relay_run, relay_spec
from leafcuttr_forward.relay.takeover import TargetEnds

TEXT = """
[topics]
orders = "orders_copy"
bills = "fixed:1"
one = "joined"
two = "joined"
[[sources]]
name = "a"
servers = ["a:1"]
[[sources]]
name = "b"
servers = ["b:1"]
[[sources]]
name = "c"
servers = ["c:1"]
[target]
servers = ["hub:1"]
"""


@pytest.fixture
def plan(tmp_path: Path) -> RelayPlan:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    return make_plan(read_files([str(file)]))


def begun_with(plan: RelayPlan, mode: str) -> tuple[list[str], int]:
    run = relay_run(replace(plan, mode=mode), RelayOptions())
    return [each.name for each in run.sources], run.first


def test_the_first_source_is_begun_with(plan: RelayPlan) -> None:
    assert begun_with(plan, "single") == (["a"], 0)
    assert begun_with(plan, "failover") == (["a", "b", "c"], 0)


def test_or_one_by_chance(plan: RelayPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = replace(plan, pool=replace(plan.pool, randomize=True))

    def last(count: int) -> int:
        return count - 1

    monkeypatch.setattr(random, "randrange", last)
    assert begun_with(chance, "single") == (["c"], 0)
    assert begun_with(chance, "failover") == (["a", "b", "c"], 2)


def test_positions_are_found_again_whichever_source_is_read(plan: RelayPlan) -> None:
    names = {
        (
            relay_spec(replace(plan, mode=mode), RelayOptions()).name,
            relay_spec(plan, RelayOptions()).source_id,
        )
        for mode in ("single", "failover")
    }
    assert names == {("relay-a", "relay-a")}
    assert relay_spec(plan, RelayOptions(name="mine")).name == "mine"


def test_kaf_relay_is_followed_where_offsets_are_the_same(plan: RelayPlan) -> None:
    found = relay_spec(plan, RelayOptions()).positions
    assert isinstance(found, TargetEnds)
    assert found._topics == {"orders"}


@pytest.mark.parametrize("given", [{"options": RelayOptions(start="earliest")}, {"filters": ("f",)}])
def test_and_nowhere_else(plan: RelayPlan, given: dict[str, Any]) -> None:
    spec = relay_spec(plan, given.get("options", RelayOptions()), given.get("filters", ()))
    assert spec.positions is None


def test_options(plan: RelayPlan) -> None:
    options = RelayOptions(None, True, "latest", 1 << 20, 5.0, "dead")
    spec = relay_spec(replace(plan, stop_at_end=True), options)
    assert spec.guarantee is Guarantee.AT_LEAST_ONCE
    assert spec.start is Start.LATEST
    assert (spec.buffer_bytes, spec.throttle_bytes_s, spec.dead_letter_topic) == (1 << 20, 5.0, "dead")
    assert spec.stop_at_end
    assert relay_spec(plan, RelayOptions()).guarantee is Guarantee.EXACTLY_ONCE
