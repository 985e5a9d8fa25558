"""What `/health` says of programs of plugins."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from leafcuttr.server.admin.plugged import child_checks
from leafcuttr.state.plugged import Plugged
from leafcuttr_sdk import Finding


class State(NamedTuple):
    name: str = "one"
    plugin: str = "mine"
    up: bool = False
    is_done: bool = False
    trouble: str = ""
    restarts: int = 0
    memory_bytes: int = 0
    stop_s: float = 10.0


@pytest.mark.parametrize(
    ("state", "finding"),
    [
        (State(up=True), Finding(True)),
        (State(is_done=True), Finding(True, "it has ended")),
        (State(), Finding(False, "it is starting")),
        (State(trouble="it ended with status 1"), Finding(False, "it ended with status 1")),
    ],
)
def test_how_one_fares(state: State, finding: Finding) -> None:
    plugged = Plugged()
    plugged.children["mine", "one"] = state
    (check,) = child_checks(plugged)
    assert (check.name, check.required) == ("child:mine:one", False)
    assert check.look() == finding


def test_those_of_a_plugin() -> None:
    plugged = Plugged()
    ours, others = State(), State(plugin="other")
    plugged.children |= {("mine", "one"): ours, ("other", "one"): others}
    assert plugged.children_of("mine") == [ours]
    assert [check.name for check in child_checks(plugged)] == ["child:mine:one", "child:other:one"]
