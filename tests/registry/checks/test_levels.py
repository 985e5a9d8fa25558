"""What compatibility levels ask for."""

from __future__ import annotations

import pytest

from leafcuttr_registry.checks.levels import Directions, asked_for, directions
from leafcuttr_registry.subjects.config import LEVELS


@pytest.mark.parametrize(
    ("level", "found", "of_three"),
    [
        ("NONE", (False, False, False), ()),
        ("BACKWARD", (True, False, False), (3,)),
        ("BACKWARD_TRANSITIVE", (True, False, True), (3, 2, 1)),
        ("FORWARD", (False, True, False), (3,)),
        ("FORWARD_TRANSITIVE", (False, True, True), (3, 2, 1)),
        ("FULL", (True, True, False), (3,)),
        ("FULL_TRANSITIVE", (True, True, True), (3, 2, 1)),
    ],
)
def test_levels(level: str, found: tuple[bool, bool, bool], of_three: tuple[int, ...]) -> None:
    assert level in LEVELS
    assert directions(level) == Directions(*found)
    assert tuple(asked_for(level, [1, 2, 3])) == of_three
    assert tuple(asked_for(level, [])) == ()
