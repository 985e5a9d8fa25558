"""Every scenario in every version on both brokers; the gate takes each one's oldest and newest version."""

from __future__ import annotations

import os

import pytest

from parity.allowed import ALLOWED, Allowed
from parity.compare import table
from parity.run import compare_one
from parity.scenario import Scenario, load_all
from support.peer_contract import keeps_contract

Brokers = tuple[tuple[str, int], tuple[str, int]]
NEEDED: set[Allowed] = set()
DONE: set[str] = set()
CASES = {f"{one.api}.{one.name}.v{version}": (one, version) for one in load_all() for version in one.versions}


@pytest.mark.parametrize(
    ("scenario", "version"),
    [
        pytest.param(one, version, id=name, marks=() if version in one.edges else pytest.mark.long)
        for name, (one, version) in CASES.items()
    ],
)
def test_same_answers(brokers: Brokers, scenario: Scenario, version: int) -> None:
    rows, used = compare_one(*brokers, scenario, version)
    NEEDED.update(used)
    DONE.add(f"{scenario.api}.{scenario.name}.v{version}")
    if rows:
        pytest.fail(f"{len(rows)} differences\n{table(rows)}", pytrace=False)


@pytest.mark.long
async def test_kafka_keeps_the_contract_of_peers(brokers: Brokers) -> None:
    """Part of it: all is in tests/client/test_contract.py. After the scenarios, which would see its topics."""
    (host, port), _ = brokers
    await keeps_contract(f"{host}:{port}", "order", "refusals", "waiting", "transactions", "claims")


@pytest.mark.long
def test_every_allowed_difference_is_needed() -> None:
    if set(CASES) != DONE or os.environ.get("LEAFCUTTR_PARITY_PEER"):
        pytest.skip("says something only after all scenarios ran against LeafCuttr")
    unused = [entry for entry in ALLOWED if entry not in NEEDED and not (entry.by_chance or entry.walked)]
    assert not unused, "\n".join(map(str, unused))
